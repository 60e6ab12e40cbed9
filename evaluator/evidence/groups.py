"""What a link matrix says of groups: islands, full meshes, the best place for a group.

An unknown pair stays unknown: it joins nothing, and no mesh is called complete over it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from itertools import combinations

from evaluator.evidence.readings import Matrix, Span

NV = re.compile(r"NV(\d{1,4})")
BELOW = ("XGMI", "C2C", "PIX", "PXB", "PHB", "NODE", "PCIE", "SYS", "NOLINK", "DIS")
"""Classes below NVLink, best first. AMD's word PCIE stands for any road over the host."""

GROUP_SIZES = (2, 4, 8, 16)
MOST_STEPS = 20_000
"""Steps of the search for one group. Real machines need some hundred; a made-up one stops here."""


class Family(StrEnum):
    """Links that bypass the host."""

    NVLINK = "nvlink"
    XGMI = "xgmi"

    def holds(self, link: str | None) -> bool:
        if link is None:
            return False
        return bool(NV.fullmatch(link)) if self is Family.NVLINK else link == "XGMI"


def rank(link: str) -> int:
    """Higher is better; NVLinks by their number."""
    nvlink = NV.fullmatch(link)
    if nvlink:
        return len(BELOW) + 1 + int(nvlink[1])
    return len(BELOW) - BELOW.index(link) if link in BELOW else 0


def pairs(matrix: Matrix) -> Iterator[tuple[int, int, str | None]]:
    """Each pair of GPUs once, with its class."""
    for one, other in combinations(range(len(matrix)), 2):
        yield one, other, matrix[one][other]


def known_classes(matrix: Matrix) -> list[str]:
    """The classes of all known pairs, from best to worst."""
    found = [link for _, _, link in pairs(matrix) if link is not None]
    return sorted(found, key=rank, reverse=True)


def all_to_all(matrix: Matrix, family: Family) -> bool | None:
    """Whether every pair has such a link; None for one GPU, and where it cannot be known."""
    links = [link for _, _, link in pairs(matrix)]
    if not links:
        return None
    if any(link is not None and not family.holds(link) for link in links):
        return False
    return True if all(link is not None for link in links) else None


def islands(matrix: Matrix, family: Family) -> list[list[int]]:
    """GPUs that such links join, directly or through others. Known pairs only."""
    neighbours = _neighbours(matrix, family.holds)
    left, found = set(range(len(matrix))), []
    while left:
        island, edge = set(), [min(left)]
        while edge:
            gpu = edge.pop()
            if gpu not in island:
                island.add(gpu)
                edge.extend(_bits(neighbours[gpu]))
        found.append(sorted(island))
        left -= island
    return found


def largest_clique(matrix: Matrix, family: Family) -> int | None:
    """Size of the largest set in which every pair has such a link. None: too odd to search."""
    neighbours = _neighbours(matrix, family.holds)
    size = 1 if matrix else 0
    while size < len(matrix):
        found = _has_clique(neighbours, size + 1)
        if found is None:
            return None
        if not found:
            break
        size += 1
    return size


def nvlink_counts(matrix: Matrix) -> Span | None:
    """Smallest and largest number of bonded links over the pairs that have NVLink."""
    found = [NV.fullmatch(link) for link in known_classes(matrix)]
    numbers = [int(match[1]) for match in found if match]
    return Span(min(numbers), max(numbers)) if numbers else None


def best_group_worst_class(matrix: Matrix) -> dict[int, str | None] | None:
    """Per group size, the worst link inside the group that is placed best.

    None where a pair is unknown, or there is no pair.
    """
    links = [link for _, _, link in pairs(matrix)]
    if not links or None in links:
        return None
    return {size: _worst_inside(matrix, size) for size in GROUP_SIZES if size <= len(matrix)}


def _worst_inside(matrix: Matrix, size: int) -> str | None:
    for link in dict.fromkeys(known_classes(matrix)):
        found = _has_clique(_neighbours(matrix, partial(_at_least, rank(link))), size)
        if found is None:
            return None
        if found:
            return link
    return None


def _at_least(floor: int, link: str | None) -> bool:
    return link is not None and rank(link) >= floor


def _neighbours(matrix: Matrix, joins: Callable[[str | None], bool]) -> list[int]:
    """One bit mask per GPU: the GPUs that it is joined to."""
    masks = [0] * len(matrix)
    for one, other, link in pairs(matrix):
        if joins(link):
            masks[one] |= 1 << other
            masks[other] |= 1 << one
    return masks


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _has_clique(neighbours: list[int], size: int) -> bool | None:
    """Whether `size` GPUs are all joined to each other; None after too many steps."""
    steps = 0
    waiting = [((1 << len(neighbours)) - 1, 0)]
    while waiting:
        steps += 1
        if steps > MOST_STEPS:
            return None
        free, taken = waiting.pop()
        if taken == size:
            return True
        if taken + free.bit_count() < size:
            continue
        low = free & -free
        gpu = low.bit_length() - 1
        waiting.append((free ^ low, taken))
        waiting.append((free & neighbours[gpu] & ~((low << 1) - 1), taken + 1))
    return False
