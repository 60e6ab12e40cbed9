from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from marketplace.faults.board import Result, Trial, board, is_ready, totals
from marketplace.faults.catalogue import FAULTS
from marketplace.management.commands import fault_board


def trial(outcome: str, *faults: str) -> Trial:
    return Trial("a test", outcome, faults)


def result(*trials: Trial) -> Result:
    (line,) = board(trials, ["F03"])
    return line.result


def test_a_fault_that_no_test_tried_was_not_tested() -> None:
    assert result(trial("passed", "F04")) is Result.NOT_TESTED


def test_a_skipped_trial_is_none() -> None:
    assert result(trial("skipped", "F03")) is Result.NOT_TESTED


def test_one_failure_among_many_is_a_failure() -> None:
    assert result(trial("passed", "F03"), trial("failed", "F03", "F04")) is Result.WRONG_STATE


@pytest.mark.parametrize(
    ("number", "word"),
    [("F24", "wrong state"), ("F37", "lost"), ("F52", "lost"), ("F80", "let in")],
)
def test_a_failure_says_what_its_promise_was_about(number: str, word: str) -> None:
    (line,) = board([trial("failed", number)], [number])
    assert line.result.value == word


def test_all_trials_that_ran_have_to_pass() -> None:
    assert result(trial("passed", "F03"), trial("skipped", "F03")) is Result.SURVIVED


def test_a_test_that_names_an_unknown_fault_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        board([trial("passed", "F999")])


def test_a_release_needs_every_starred_fault_survived() -> None:
    assert not is_ready(board([]))
    assert is_ready(board([trial("passed", *(fault.number for fault in FAULTS if fault.first))]))
    assert not is_ready(board([trial("failed", "F01")], ["F01"]))


def test_each_fault_stands_there_once_and_is_counted() -> None:
    assert len({fault.number for fault in FAULTS}) == len(FAULTS)
    assert sum(totals(board([])).values()) == len(FAULTS)


def test_the_command_runs_the_trials_and_says_which() -> None:
    out = StringIO()
    call_command("fault_board", "--only", "F81", "--json", stdout=out)
    (line,) = json.loads(out.getvalue())["faults"]
    assert line["result"] == "survived"
    assert len(line["trials"]) > 10


def test_a_starred_fault_without_a_trial_fails_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fault_board, "run_trials", lambda only: [])
    out = StringIO()
    with pytest.raises(CommandError, match="starred"):
        call_command("fault_board", "--only", "F52", stdout=out)
    assert "F52* not tested" in out.getvalue()
