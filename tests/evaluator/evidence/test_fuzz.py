"""Damaged pastes: an answer or the readers' own error, in a time that grows with the length."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.evidence import Reading, Trouble, UnreadableEvidence, read_evidence, scrub
from tests.fuzz import answer, cases, mutations

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


def matrix(rows: int) -> str:
    """A log that prints the matrix of a two-GPU machine again and again."""
    one = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n"
    return one + "".join(
        f"step {at}: loss 1.234 and a few more words of some log\n" for at in range(rows)
    )


@pytest.mark.parametrize("make", [matrix, lambda rows: "GPU0 " * rows * 9])
def test_a_megabyte_takes_about_ten_times_as_long_as_a_tenth_of_it(make: object) -> None:
    assert callable(make)
    small, large = seconds(make(2_000)), seconds(make(20_000))
    print(f"1 MB against 100 KB: {large / small:.1f} times")
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
