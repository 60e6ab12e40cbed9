"""Topology files that lost lines and stayed well-formed: what may have changed does not count."""

from __future__ import annotations

import time

import pytest

from evaluator.evidence import Reading, Sign, Trouble, read_evidence
from evaluator.evidence.readings import troubles
from evaluator.sightings import sight
from tests.evaluator.evidence.structures import (
    HALVES,
    cascade,
    cpu,
    gpu,
    mesh,
    packed,
    switch,
    switched_pairs,
    system,
)


def read(text: str) -> Reading:
    (reading,) = read_evidence(text)
    return reading


def pair(text: str, one: int, other: int) -> tuple[str | None, str | None]:
    """As the file stands, and as far as it counts."""
    reading = read(text)
    assert reading.matrix
    assert reading.believed.matrix
    return reading.matrix[one][other], reading.believed.matrix[one][other]


def without(text: str, *lines: str, after: str = "") -> str:
    """The text without a run of lines that begin so, the first one behind a mark."""
    kept = text.split("\n")
    start = next((at for at, line in enumerate(kept) if after in line), 0)
    for at in range(start, len(kept)):
        found = [line.strip() for line in kept[at : at + len(lines)]]
        if all(line.startswith(want) for line, want in zip(found, lines, strict=True)):
            return "\n".join(kept[:at] + kept[at + len(lines) :])
    raise AssertionError(f"no lines {lines}")


def test_a_whole_file_counts_as_it_stands() -> None:
    reading = read(switched_pairs())
    assert reading.believed.matrix == reading.matrix
    assert reading.believed.numa_node == (0, 0, 0, 0, 1, 1, 1, 1)
    assert {*(reading.matrix or ())[0]} == {"X", "PIX", "NODE", "SYS"}


def test_two_switches_that_lost_the_lines_between_them_prove_no_pair_across() -> None:
    text = without(switched_pairs(), "</pci>", "<pci", after='dev="1"')
    assert pair(text, 0, 2) == ("PIX", None)
    assert pair(text, 0, 1) == ("PIX", "PIX")


def test_two_processors_that_lost_the_lines_between_them_prove_no_pair_across() -> None:
    text = without(switched_pairs(), "</cpu>", "<cpu")
    assert pair(text, 0, 4) == ("NODE", None)
    assert pair(text, 0, 1) == ("PIX", "PIX")
    assert read(text).believed.numa_node == (None,) * 8


def test_switches_whose_buses_follow_each_other_are_still_told_apart() -> None:
    assert pair(packed(), 2, 3) == ("PXB", "PXB")
    text = without(packed(), "</pci>", "<pci", after='dev="0"')
    assert pair(text, 0, 1) == ("PIX", None)


def test_what_all_masks_together_do_not_cover_may_be_a_lost_processor() -> None:
    assert pair(cascade(), 0, 4) == ("NODE", None)
    assert pair(cascade(), 0, 3) == ("PXB", "PXB")


def test_a_link_that_only_one_of_two_names_is_unknown() -> None:
    text = without(mesh([(0, 1, 4)], [0x21, 0x41]), "<nvlink")
    reading = read(text)
    assert pair(text, 0, 1) == (None, None)
    assert troubles(reading.problems) == {Trouble.TRUNCATED}
    assert Sign.INCOMPLETE in reading.signs


def test_a_lost_gpu_leaves_its_number_and_no_other_takes_it() -> None:
    text = system(cpu(0, "ffff", gpu(0x21, 0, 2), gpu(0x61, 2, 2)))
    reading = read(text)
    assert reading.gpu_count == 3
    assert pair(text, 0, 2) == ("NODE", "NODE")
    assert pair(text, 0, 1) == (None, None)
    assert "GPU 1" in reading.problems[0].sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (system(cpu(0, "ffff", gpu(0x21, 0, 2), gpu(0x41, 0, 2))), "a dev of its own"),
        (system(cpu(0, "ffff", gpu(0x21, 0, 2), gpu(0x21, 1, 2))), "an address of its own"),
        (system(cpu(0, "ffff", gpu(0x21, 0, 2), switch(0x40))), "a device below"),
        (mesh([(0, 1, 4)], [0x21, 0x41]).replace('dev="1"', 'dev="0"'), "a dev of its own"),
        (without(switched_pairs(), "<gpu"), "a <gpu> in this device"),
        (
            without(mesh([(0, 1, 4)], [0x21, 0x41]), "<pci", "<gpu", "<nv", "</gpu", "</pci"),
            "GPU 0",
        ),
    ],
)
def test_what_no_dump_has_is_told(text: str, expected: str) -> None:
    told = " ".join(problem.sentence for problem in read(text).problems)
    assert expected in told


def test_a_file_that_lacks_a_gpu_names_no_link_of_the_whole_machine() -> None:
    whole = mesh([(0, 1, 4), (0, 2, 4), (1, 2, 4)], [0x21, 0x41, 0x61])
    cut = without(
        whole, *["<pci", "<gpu", "<nv", "<nv", "</gpu", "</pci"], after='0000:61:00.0" cl'
    )
    links = [
        [one.value for one in sight([read(text)]).facts if one.name == "link"]
        for text in (whole, cut)
    ]
    assert links == [["nvlink"], []]


def test_a_paste_without_its_indentation_proves_no_bridge() -> None:
    flat = "\n".join(line.strip() for line in switched_pairs().split("\n"))
    assert pair(flat, 0, 1) == ("PIX", None)
    assert pair(flat, 0, 4) == ("SYS", "SYS")


def test_many_devices_at_the_ends_of_long_chains_are_compared_soon() -> None:
    """As many as are read, each below bridges of its own: no two have one in common."""

    def chains(count: int) -> str:
        lines = []
        for at in range(count):
            bridge = f'<pci busid="0000:{at % 256:02x}:00.0" class="0x060400">'
            card = f'<pci busid="0001:{at % 256:02x}:00.0" class="0x030200">'
            lines.append(f'{bridge * 40}{card}<gpu dev="{at}" sm="90"/></pci>{"</pci>" * 40}')
        return f'<system><cpu numaid="0">{"".join(lines)}</cpu></system>'

    def seconds(count: int) -> float:
        begun = time.process_time()
        assert read(chains(count)).gpu_count == count
        return time.process_time() - begun

    small, large = seconds(25), seconds(250)
    print(f"250 GPUs against 25: {large / small:.0f} times, 100 times the pairs")
    assert large < 300 * small + 0.5


def test_masks_prove_processors_only_where_each_core_stands_once() -> None:
    def sure(*masks: str) -> bool:
        cpus = [
            cpu(at, mask, gpu(0x21 + 4 * at, 2 * at, 2), gpu(0x22 + 4 * at, 2 * at + 1, 2))
            for at, mask in enumerate(masks)
        ]
        return pair(system(*cpus), 0, 1)[1] == "NODE"

    assert sure("ffff")
    hidden = system(cpu(-1, "ffff", gpu(0x21, 0, 2), gpu(0x22, 1, 2)))
    assert pair(hidden, 0, 1) == ("NODE", None)
    assert sure(*HALVES)
    assert sure("0000,0fffff00,000fffff", "ffff,f00000ff,fff00000")
    assert not sure("0000ffff")
    assert not sure("0000ffff", "0000ffff")
    assert not sure("00ff", "ff01")
    assert not sure("")
