"""Damaged pastes: an answer or the readers' own error, in a time that grows with the length."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.connections import Topology, rank_of
from evaluator.evidence import Reading, Trouble, UnreadableEvidence, read_evidence, scrub
from evaluator.facts import Grade
from evaluator.machine import LinkClass
from evaluator.sightings import Sighting, mismatches, sight
from tests.evaluator.evidence.structures import structures
from tests.fuzz import LOSSES, answer, cases, mutations

MUTATIONS = 20_000
SEED = 20_261_130


@pytest.mark.shared
def test_damaged_cases_are_read_or_refused_and_never_fail_otherwise(shared: Path) -> None:
    answers = [answer(text) for text in mutations(cases(shared), MUTATIONS, SEED)]
    assert {*answers} == {"read", "partial", "refused"}


def read(text: str) -> tuple[Reading, ...]:
    try:
        return read_evidence(text)
    except UnreadableEvidence:
        return ()


def links(readings: tuple[Reading, ...]) -> set[tuple[int, int, str]]:
    return {
        (one, other, link)
        for reading in readings[:1]
        for one, row in enumerate(reading.matrix or ())
        for other, link in enumerate(row)
        if link is not None
    }


@pytest.mark.shared
def test_a_text_that_lost_its_end_shows_no_link_that_the_whole_does_not(shared: Path) -> None:
    for text in cases(shared):
        whole = links(read(text))
        for end in range(0, len(text), max(1, len(text) // 40)):
            raised = links(read(text[:end])) - whole
            assert not raised, text[:end][-200:]


MOST_BYTES = 20_000
PARTS = 8
"""Of the losses: so that they can run side by side."""


def shown(text: str) -> Sighting | None:
    readings = read(text)
    return sight(readings) if readings else None


def raised(damaged: Sighting, whole: Sighting) -> Iterator[str]:
    """Everything that a damaged text shows better than the whole one does."""
    yield from raised_pairs(damaged.topology, whole.topology)
    yield from raised_rates(damaged.topology, whole.topology)
    links = [{one.value for one in seen.facts if one.name == "link"} for seen in (damaged, whole)]
    if links[0] - links[1] - {LinkClass.PCIE}:
        yield f"the link became {links[0]}"
    grades = {one.name: one.grade for one in whole.facts}
    for one in damaged.facts:
        if one.grade > grades.get(one.name, Grade.MEASURED):
            yield f"{one.name} is {one.grade.word}"


def raised_pairs(after: Topology, before: Topology) -> Iterator[str]:
    known = range(before.gpus)
    for pair in after.pairs:
        inside = before.matrix and pair[1] in known
        was = before.between(*pair) if inside else None
        if after.matrix and rank_of(after.between(*pair)) < rank_of(was):
            yield f"{pair} {was} became {after.between(*pair)}"
        if pair[1] in known and after.reach(*pair) and before.reach(*pair) is False:
            yield f"{pair} reach each other"
        rates = [rate_of_pair(one, pair) for one in (after, before)]
        if rates[0] > rates[1]:
            yield f"{pair} is faster"


def rate_of_pair(topology: Topology, pair: tuple[int, int]) -> float:
    rows = topology.pair_rates
    return rows[pair[0]][pair[1]] or 0.0 if pair[1] < len(rows) else 0.0


def raised_rates(after: Topology, before: Topology) -> Iterator[str]:
    """No group is faster, and none was benchmarked that was not."""
    best = Counter[tuple[str, int, int]]()
    for rate in before.rates:
        run = rate.operation, rate.ranks, rate.nodes
        best[run] = max(best[run], rate.bytes_per_s)
    for rate in after.rates:
        if rate.bytes_per_s > best[rate.operation, rate.ranks, rate.nodes]:
            yield f"{rate.operation} of {rate.ranks} reached {rate.bytes_per_s}"


def fits(damaged: Sighting, whole: Sighting) -> bool:
    """Whether the damaged text still fits the machine: else it is kept as a conflict alone."""
    return not mismatches(damaged, whole.topology.gpus or None, None)


@pytest.mark.shared
@pytest.mark.parametrize("part", range(PARTS))
def test_a_text_that_lost_something_raises_nothing(shared: Path, part: int) -> None:
    """Lines, words and ends lost, lines joined and repeated, in every kind of text."""
    dice = random.Random(SEED + part)
    texts = [text for text in cases(shared) if len(text) < MOST_BYTES] + structures()
    wholes = [shown(text) for text in texts]
    for _ in range(MUTATIONS // PARTS):
        at = dice.randrange(len(texts))
        text = damaged_once_or_more(texts[at], dice)
        whole, damaged = wholes[at], shown(text)
        if whole and damaged and fits(damaged, whole):
            assert list(raised(damaged, whole)) == [], text


def damaged_once_or_more(text: str, dice: random.Random) -> str:
    for _ in range(dice.choice((1, 1, 2, 4))):
        text = dice.choice(LOSSES)(text, dice)
    return text


def matrix(rows: int) -> str:
    """A log that prints the matrix of a two-GPU machine again and again."""
    one = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"
    return one + "".join(
        f"step {at}: loss 1.234 and a few more words of some log\n" for at in range(rows)
    )


LINES = {
    "a log with a matrix": "step 17: loss 1.234 and a few more words of some training's log\n",
    "one long line": "GPU0 GPU1 ",
    "rows of a matrix": "GPU0\t X \tNV4\tNV4\tNV4\tSYS\tSYS\t0-31,64-95\t0\t\tN/A\n",
    "links of a status": "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n",
    "a long query": "    Product Name                          : NVIDIA H100 80GB HBM3\n",
    "a table of ROCm": "GPU0   0            XGMI         XGMI         PCIE         XGMI\n",
    "channels of a log": "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n",
    "rows of nccl-tests": " 1048576 262144 float sum -1 98.0 10.7 18.7 0 98.0 10.7 18.7 0\n",
    "runs of nccl-tests": "# nThread 1 nGpus 8\n 8 2 float sum -1 1 1.0 1.7 0 1 1.0 1.7 0\n",
    "rows of a query": "NVIDIA H100 80GB HBM3, 81559 MiB, 570.124.06, 0000:19:00.0\n",
    "elements of XML": '<system><pci busid="0000:19:00.0" class="0x030200" link_width="16"/>\n',
    "parts of JSON": '{"testcases": [{"name": "x", "bandwidth_matrix": [["1.0", "2.0"]]}]}\n',
}


@pytest.mark.parametrize("name", LINES)
def test_a_megabyte_takes_about_ten_times_as_long_as_a_tenth_of_it(name: str) -> None:
    times = 100_000 // len(LINES[name])
    small, large = (seconds(matrix(0) + LINES[name] * count) for count in (times, 10 * times))
    print(f"{name}, 1 MB against 100 KB: {large / small:.1f} times")
    assert large < 30 * small + 0.5


def seconds(text: str) -> float:
    begun = time.process_time()
    read(text)
    return time.process_time() - begun


@pytest.mark.parametrize("text", ["x" * 2_000_001, "\n" * 50_001])
def test_a_text_above_the_cap_is_refused_before_it_is_read(text: str) -> None:
    with pytest.raises(UnreadableEvidence) as refused:
        read_evidence(text)
    assert refused.value.trouble is Trouble.TOO_LARGE


@pytest.mark.shared
def test_scrubbing_keeps_every_fact_and_changes_nothing_twice(shared: Path) -> None:
    for text in cases(shared):
        clean = scrub(text).text
        assert scrub(clean).text == clean
        assert read(clean) == read(text)


def names(rows: int) -> str:
    """A log in which every line names another host."""
    return "".join(f"node-a{at}:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1\n" for at in range(rows))


def accounts(rows: int) -> str:
    return "".join(f"node-ann{at}@box{at} /node-ann{at}/x and some more\n" for at in range(rows))


@pytest.mark.parametrize("make", [names, accounts])
def test_scrubbing_a_log_of_many_names_takes_a_time_that_grows_with_its_length(
    make: Callable[[int], str],
) -> None:
    def seconds_of(text: str) -> float:
        begun = time.process_time()
        assert "node-a" not in scrub(text).text
        return time.process_time() - begun

    small, large = seconds_of(make(2_000)), seconds_of(make(20_000))
    assert large < 30 * small + 0.5


def test_the_ten_thousandth_host_keeps_its_number_when_scrubbed_again() -> None:
    clean = scrub(names(10_050)).text
    assert "host-10050" in clean
    assert scrub(clean).text == clean
