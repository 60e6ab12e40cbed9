"""The only crossing from rows to the evaluator: a listing and its facts make a Machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from evaluator.connections import Topology, from_plain, merge
from evaluator.facts import UNKNOWN, Fact, Grade, RanBy, declared, strongest
from evaluator.findings import Code
from evaluator.gpus import SIZE_TOLERANCE, GpuSpec, candidates, known_sizes_gb
from evaluator.machine import Conflict, LinkClass, Machine, worst_usable_bytes
from evaluator.units import GB, GIB
from marketplace import models
from marketplace.locks import lock_in
from marketplace.models import Listing, RentedMachine
from marketplace.models.evidence import COUNTING
from marketplace.rented import counting_facts

COLUMNS = (
    "gpu_model",
    "form_factor",
    "link",
    "inter_node",
    "vcpus",
    "ram_bytes",
    "local_storage_bytes",
)
"""Attributes that a column of the same name declares."""

OTHERS = (
    "link_bytes_per_s",
    "inter_node_bytes_per_s",
    "persistent_storage",
    "pcie_generation",
    "pcie_lanes",
    "shm_bytes",
    "power_limit_watts",
    "virtual",
    "open_ports",
    "download_bytes_per_s",
    "driver_version",
    "cuda_version",
    "nccl_version",
)
"""Attributes that no catalog declares: only a correction or evidence sets them."""

HARDWARE = (*COLUMNS, "vram_bytes_per_gpu", "gpu_count", "nodes", "gpu_fraction")
"""Columns that a machine is read from, where no person and no fact adds to them."""

MEANINGS: Mapping[str, Callable[[Any], Any]] = {"link": LinkClass, "topology": from_plain}
"""How a stored value becomes the evaluator's word."""

SLICE_BELOW = 0.9
"""A share of a GPU states less memory than the card has; otherwise the figure is the card's."""


def machine_of(
    listing: Listing,
    rented: RentedMachine | None = None,
    states: Sequence[str] = COUNTING,
    seen: Iterable[models.Fact] | None = None,
) -> Machine:
    """What a listing declares, with corrections and a curator's facts in place of weaker ones.

    With `rented`, what was seen on that machine counts too, by evidence in one of `states`;
    evidence of one machine never speaks of another. `seen` are the facts of that evidence where
    they were read already. Facts that disagree are all kept in the database; the machine names
    each conflict.
    """
    if seen is None:
        seen = counting_facts(rented, states) if rented else ()
    held = _Held(listing, seen)
    plain = {name: held.judged(name, held.declared(name)) for name in (*COLUMNS, *OTHERS)}
    vram = held.declared("vram_bytes_per_gpu")
    specs = _specs(plain["gpu_model"], plain["form_factor"], held.labels_gb(vram))
    usable = held.judged("usable_bytes_per_gpu", _usable(held, vram, specs))
    specs = _of_size(specs, usable)
    count = held.judged("gpu_count", _per_machine(held.declared("gpu_count"), listing.nodes))
    return Machine(
        specs=specs,
        nodes=listing.nodes,
        fractional=bool(listing.gpu_fraction),
        usable_bytes_per_gpu=usable,
        gpu_count=count,
        topology=held.topology(),
        conflicts=tuple(held.conflicts),
        **plain,
    )


@lru_cache(maxsize=8192)
def plain_machine(hardware: tuple[Any, ...], ambiguous: bool) -> Machine:
    """Of a listing that nobody corrected and that has no facts of its own: many are alike. Its
    facts tell no time and no source, at which no verdict looks.

    `ambiguous` says that the catalog could not tell one GPU's memory from the machine's.
    """
    doubts = [{"code": Code.VRAM_AMBIGUOUS.value}] if ambiguous else []
    return machine_of(Listing(**dict(zip(HARDWARE, hardware, strict=True)), findings=doubts))


def configuration_of(listing: Listing) -> str:
    """Fingerprint of the listing's machine, for `Listing.configuration`."""
    return machine_of(listing).fingerprint()


def lock_of(listing: Listing, column: str) -> Mapping[str, Any] | None:
    """A curator's word on a column of a listing while it holds; see marketplace.corrections."""
    return lock_in(listing.corrections, column)


class _Held:
    """The facts of one listing: what its catalog declares, and what outweighs that."""

    def __init__(self, listing: Listing, seen: Iterable[models.Fact]) -> None:
        self.listing = listing
        self.conflicts: list[Conflict] = []
        now = timezone.now()
        rows = [row for row in listing.facts.all() if not row.evidence_id] if listing.pk else []
        self._measured = [(row.name, fact_of(row, now)) for row in (*rows, *seen)]

    def declared(self, column: str) -> Fact[Any]:
        """A curator's correction of a column, else the catalog's value."""
        correction = lock_of(self.listing, column)
        if correction:
            return _corrected(column, correction)
        value = getattr(self.listing, column, None)
        seen = self.listing.last_seen
        return declared(_meant(column, value or None), _source(self.listing), as_of=seen)

    def labels_gb(self, vram: Fact[int]) -> list[int | None]:
        """Label sizes that the words may mean: the stated one, and its share where the catalog
        could not tell one GPU's memory from the machine's. A curator's word settles that.
        """
        if vram.value is None:
            return [None]
        label = round(vram.value / GB)
        count = self.declared("gpu_count").value
        if vram.ran_by is RanBy.CURATOR or not count or not is_ambiguous(self.listing.findings):
            return [label]
        sizes = known_sizes_gb(self.declared("gpu_model").value or "")
        return [label, *(size for size in sizes if size * count == label)]

    def topology(self) -> Fact[Topology]:
        """All that stands of one machine's pairs as one picture. An expired look is left out: it
        may be of another state of the machine.
        """
        found = [fact for name, fact in self._measured if name == "topology"]
        fresh = [fact for fact in found if not fact.caveat.endswith(EXPIRED) and fact.value]
        newest = sorted(fresh, key=lambda fact: (fact.grade, fact.as_of or NEVER), reverse=True)
        if not newest:
            return UNKNOWN
        merged = merge(fact.value for fact in newest if fact.value)
        self.conflicts += _disagreements([fact for fact in newest if fact.value])
        return replace(newest[0], value=merged)

    def judged(self, attribute: str, by_catalog: Fact[Any]) -> Fact[Any]:
        """The strongest fact of an attribute. Those that disagree with it become conflicts."""
        facts = [by_catalog, *(fact for name, fact in self._measured if name == attribute)]
        best = strongest(facts)
        against = [
            one for one in facts if one.known and _disagree(attribute, best.value, one.value)
        ]
        if against:
            self.conflicts.append(Conflict(attribute, _said(best), _said(strongest(against))))
        return best


EXPIRED = "Expired."
NEVER = datetime.min.replace(tzinfo=UTC)


def _disagreements(looks: list[Fact[Topology]]) -> Iterator[Conflict]:
    """Looks at one machine that show a pair in two classes: the newest judges."""
    newest, *older = [look.value for look in looks if look.value]
    for one in older:
        pairs = [p for p in newest.pairs if one.gpus == newest.gpus and _differ(newest, one, p)]
        if pairs:
            first = pairs[0]
            words = f"GPUs {first[0]} and {first[1]} {{}} in an output"
            yield Conflict(
                "topology",
                words.format(newest.between(*first)),
                words.format(one.between(*first)),
            )


def _differ(one: Topology, other: Topology, pair: tuple[int, int]) -> bool:
    words = {one.between(*pair), other.between(*pair)} - {None}
    return len(words) > 1


REFINES = {
    (LinkClass.NVSWITCH, LinkClass.NVLINK),
    (LinkClass.NVLINK, LinkClass.NVSWITCH),
    (LinkClass.NVLINK_PAIRS, LinkClass.NVLINK_BRIDGE),
    (LinkClass.PCIE, LinkClass.PCIE_P2P),
    (LinkClass.NVLINK_BRIDGE, LinkClass.NVLINK_PAIRS),
    (LinkClass.PCIE_P2P, LinkClass.PCIE),
    (LinkClass.P2P_DISABLED, LinkClass.PCIE),
}
"""The first contradicts the second in nothing: it says more, or it is a matrix, which shows links
between all GPUs and neither the switch between them nor peer access.
"""


def _disagree(attribute: str, best: Any, other: Any) -> bool:
    """Whether two values cannot both hold. Sizes vary a little with driver and reserve."""
    if best == other or (best, other) in REFINES:
        return False
    if attribute == "form_factor":  # SXM4 says more than SXM, and nothing else
        return not best.startswith(other) and not other.startswith(best)
    if "bytes" in attribute:
        return not _close(best, other)
    return True


def is_ambiguous(findings: Iterable[Mapping[str, Any]]) -> bool:
    return any(found["code"] == Code.VRAM_AMBIGUOUS.value for found in findings)


def _said(fact: Fact[Any]) -> str:
    return f"{fact.grade.word} {str(fact.value).replace('_', ' ')}"


def _source(listing: Listing) -> str:
    """The digest of the page as it was fetched, where it is at hand; else its number."""
    if Listing._meta.get_field("seen_in").is_cached(listing):
        return f"snapshot {listing.seen_in.sha256[:12]} of {listing.seen_in.url}"
    return f"snapshot {listing.seen_in_id}"


def _meant(attribute: str, value: Any) -> Any:
    meaning = MEANINGS.get(attribute)
    return meaning(value) if meaning and value is not None else value


def fact_of(row: models.Fact, now: datetime) -> Fact[Any]:
    """A stored fact. What has expired counts as a declaration with its date."""
    expired = row.expires_at is not None and row.expires_at <= now
    return Fact(
        value=_meant(row.name, row.value),
        grade=Grade.DECLARED if expired else Grade(row.grade),
        source=row.source,
        ran_by=RanBy(row.ran_by),
        as_of=row.as_of,
        expires=row.expires_at,
        caveat=f"{row.caveat} {EXPIRED}".strip() if expired else row.caveat,
    )


def _corrected(column: str, correction: Mapping[str, Any]) -> Fact[Any]:
    """A curator's value. A correction to nothing says that the catalog's value is not believed."""
    value = _meant(column, correction.get("value"))
    if value is None:
        return UNKNOWN
    grade = correction.get("grade", Grade.DECLARED)
    return Fact(
        value=value,
        grade=Grade.from_word(grade) if isinstance(grade, str) else Grade(grade),
        source=str(correction.get("source", "")),
        ran_by=RanBy.CURATOR,
        as_of=parse_datetime(str(correction.get("as_of") or "")),
    )


def _per_machine(total: Fact[int], nodes: int) -> Fact[int]:
    """GPUs of one machine. A total that the machines cannot share evenly leaves it unknown."""
    if total.value is None or total.value % nodes:
        return UNKNOWN
    return replace(total, value=total.value // nodes)


def _specs(
    model: Fact[str], form_factor: Fact[str], labels_gb: Iterable[int | None]
) -> tuple[GpuSpec, ...]:
    """Every card that model, form factor and memory leave possible."""
    if model.value is None:
        return ()
    found = {
        spec.id: spec
        for label in labels_gb
        for spec in candidates(model.value, label_gb=label, form_factor=form_factor.value)
    }
    return tuple(found.values())


def _of_size(specs: tuple[GpuSpec, ...], usable: Fact[int]) -> tuple[GpuSpec, ...]:
    """The cards that have the memory which a driver reported; all where none has, or none did."""
    if not usable.at_least(Grade.MEASURED) or usable.value is None:
        return specs
    seen = usable.value
    found = (
        one for one in specs if one.usable_bytes and _close(one.usable_bytes // one.devices, seen)
    )
    return tuple(found) or specs


def _close(one: int, other: int) -> bool:
    """Sizes vary a little with driver and reserve."""
    return abs(one - other) <= SIZE_TOLERANCE * other


def _usable(held: _Held, stated: Fact[int], cards: tuple[GpuSpec, ...]) -> Fact[int]:
    """What the driver reports on the smallest card that is meant, never the label of a known card.

    A model of several sizes without a stated one is unknown. A size that no published card has (a
    modified card, an unlisted model) counts 10^9 bytes per GB: no published card reports less.
    """
    worst = worst_usable_bytes(cards)
    if held.listing.gpu_fraction:
        whole = min((spec.label_gb * GB for spec in cards), default=0)
        return stated if (stated.value or whole) < SLICE_BELOW * whole else UNKNOWN
    sizes = known_sizes_gb(cards[0].model) if cards else ()
    if stated.value is None:
        basis = held.declared("gpu_model")
        return _with_value(basis, worst if len(sizes) == 1 else None)
    if round(stated.value / GB) in sizes:
        return _with_value(stated, worst)
    return replace(stated, value=_at_least(stated.value), caveat="No published size: a lower end.")


def _at_least(stated_bytes: int) -> int:
    """A size that was stated in GiB or MiB, as decimal GB; one stated in GB as it is."""
    return stated_bytes if stated_bytes % GB == 0 else round(stated_bytes / GIB) * GB


def _with_value(basis: Fact[Any], value: int | None) -> Fact[int]:
    """The published figure of the card, known as firmly as the words that named the card."""
    return UNKNOWN if value is None or not basis.known else replace(basis, value=value)
