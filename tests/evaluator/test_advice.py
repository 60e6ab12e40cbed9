"""Advice on rows that lack something: a price, a command, an end, an end of doubt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from evaluator.advice import Advice, advice_of, as_published, budget_words, span
from evaluator.affordable import BudgetVerdict, BudgetWord
from evaluator.candidates import Candidate
from evaluator.facts import declared
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.offers import Offering
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from evaluator.shortlist import shortlist
from evaluator.spending import Cost, money
from tests.evaluator.machines import machine, serve, train

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
QUOTE = Quote(Decimal(20), "USD", TimeUnit.HOUR, Basis.MACHINE)
BUDGET = {"amount": 5000, "currency": "USD"}


def row_of(workload: Workload, of: Machine, at: int = -1, **offer: Any) -> tuple[Candidate, Advice]:
    """The last row of a shortlist of one offering, with its advice."""
    stated: dict[str, Any] = {
        "key": "1",
        "configuration": of.fingerprint(),
        "provider": "Ridge",
        "title": "Big box",
        "region": "north",
        "quotes": (QUOTE,),
        "availability": Availability.AVAILABLE,
    }
    offering = Offering(**(stated | offer))
    found = shortlist(workload, Fleet.of([offering], {of.fingerprint(): of}), now=NOW)
    rows = (*found.rows, *found.unranked, *found.near_misses)
    return rows[at], advice_of(workload, rows[at], of, NOW, found.rows[0] if found.rows else None)


SWITCHED = machine(gb=80, link=LinkClass.NVSWITCH, vcpus=declared(128))


def test_a_row_that_cannot_be_had_says_so_and_what_would_help() -> None:
    _, advice = row_of(serve("llama-3.1-70b"), SWITCHED, availability=Availability.SOLD_OUT)
    assert "It does not serve as it stands" in advice.rent
    assert "sold out (Wait, or ask elsewhere)" in advice.rent


def test_what_does_not_serve_gets_no_command_but_the_change_that_would_admit_it() -> None:
    small = machine("L4", count=1)
    _, advice = row_of(serve("llama-3.1-70b"), small)
    assert not advice.commands
    assert "No command, as it does not serve. It would: " in advice.launch
    assert advice.launch.count(".") > 1


def test_what_stands_for_something_else_in_a_command_is_explained_beside_it() -> None:
    _, advice = row_of(train("qwen3-8b"), SWITCHED)
    assert '"$CONFIG"' in advice.commands
    assert "CONFIG is torchtitan's own file" in advice.launch


def test_without_a_comparable_price_there_is_no_cost_and_the_reason_is_given() -> None:
    reserved = replace(QUOTE, purchase=Purchase.RESERVED, term="1 year")
    _, advice = row_of(serve("llama-3.1-70b"), SWITCHED, quotes=(reserved,))
    assert "reserved for 1 year" in advice.rent
    assert "only a reserved price is published" in advice.rent
    assert advice.cost == "No comparable price, so no cost."
    monthly = replace(QUOTE, amount=Decimal("1290.00000000"), basis=Basis.UNKNOWN)
    _, doubtful = row_of(serve("llama-3.1-70b"), SWITCHED, quotes=(monthly,))
    assert "Published: 1,290.00 USD per hour." in doubtful.rent
    _, unpriced = row_of(serve("llama-3.1-70b"), SWITCHED, quotes=())
    assert "No price is published." in unpriced.rent


def test_a_machine_of_another_maker_is_checked_with_its_own_tools() -> None:
    _, advice = row_of(serve("llama-3.1-8b"), machine("MI300X"))
    assert "run `rocm-smi" in advice.check
    assert "nvidia-smi" not in advice.check.partition("Not stated")[0]


def test_the_check_says_what_its_command_has_to_show() -> None:
    row, advice = row_of(serve("llama-3.1-8b"), SWITCHED, at=0)
    assert row.plan.plan.gpus == 1
    assert "MiB or more on each of 8 GPUs" in advice.check


def test_machines_whose_network_nobody_knows_get_no_command() -> None:
    job = train("llama-3.1-70b", recompute="full", tokens_to_train=10**9)
    row, advice = row_of(job, machine(gb=80, vcpus=declared(128)))
    assert row.plan.plan.nodes > 1
    assert "No command while it is open" in advice.launch
    assert advice.commands == ""
    assert advice.rent.startswith(f"{row.rentals} × “Big box”")
    assert f"All {row.rentals} are needed at once." in advice.rent


def test_a_job_has_dates_and_a_server_has_none() -> None:
    job = train("llama-3.1-8b", tokens_to_train=10**9, deadline_hours=1, budget=BUDGET)
    _, advice = row_of(job, SWITCHED)
    assert "between Mon 2026-11-30" in advice.ends or "between Tue 2026-12-01" in advice.ends
    assert "too late" in advice.ends
    assert "the budget" in advice.cost
    _, server = row_of(serve("llama-3.1-8b"), SWITCHED)
    assert server.ends.startswith("Whenever you stop it; the first step comes")


def test_a_training_without_an_end_says_what_it_lacks() -> None:
    _, advice = row_of(train("llama-3.1-8b"), SWITCHED)
    assert "states no tokens_to_train" in advice.ends
    assert "per 1,000,000 tokens" in advice.cost


def test_a_job_of_centuries_has_no_date() -> None:
    _, advice = row_of(train("llama-3.1-8b", tokens_to_train=10**15), SWITCHED)
    assert "after the rental starts." in advice.ends


def test_without_a_machine_the_plan_alone_is_told() -> None:
    row, _ = row_of(serve("llama-3.1-8b"), SWITCHED, at=0)
    advice = advice_of(serve("llama-3.1-8b"), row, None)
    assert advice.launch == "one GPU."
    assert advice.commands == ""


def test_utilisation_is_stated_beside_the_price_of_tokens() -> None:
    half = serve("llama-3.1-8b", costs={"utilisation": 0.5})
    _, busy = row_of(serve("llama-3.1-8b"), SWITCHED)
    row, advice = row_of(half, SWITCHED)
    assert "busy 50% of the time, as the workload states" in advice.cost
    assert "busy all the time" in busy.cost
    assert row.outlook is not None
    assert row.outlook.per_million is not None
    assert row.outlook.per_million_used is not None
    assert row.outlook.per_million_used.typical == pytest.approx(
        2 * row.outlook.per_million.typical
    )


def test_a_row_on_spot_capacity_says_from_which_stay_on_it_pays() -> None:
    spot = replace(QUOTE, amount=Decimal(8), purchase=Purchase.SPOT)
    job = train("llama-3.1-8b", tokens_to_train=10**9, needs={"spot": True})
    row, advice = row_of(job, SWITCHED, quotes=(QUOTE, spot))
    assert row.rate.quote == spot
    assert "it pays off where a machine stays" in advice.cost
    assert "restarts on spot capacity" in advice.cost.partition("Not counted")[2]


@pytest.mark.parametrize(
    ("word", "left", "words"),
    [
        (BudgetWord.INSIDE, 5, "It is inside the budget, 5.00 USD to spare."),
        (BudgetWord.MAY_EXCEED, -5, "It may exceed the budget; up to 5.00 USD are missing."),
        (BudgetWord.EXCEEDS, -500, "It exceeds the budget; up to 500 USD are missing."),
    ],
)
def test_a_budget_in_words(word: BudgetWord, left: int, words: str) -> None:
    assert budget_words(BudgetVerdict(word, Decimal(left)), "USD") == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0", "0.00"),
        ("0.004", "0.004"),
        ("9.999", "10.00"),
        ("123.4", "123"),
        ("1e6", "1,000,000"),
    ],
)
def test_money_in_words(amount: str, words: str) -> None:
    assert money(Decimal(amount)) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [("1290.00000000", "1,290.00"), ("389.9", "389.90"), ("0.00012500", "0.000125")],
)
def test_a_published_amount_keeps_every_digit_that_was_read(amount: str, words: str) -> None:
    assert as_published(Decimal(amount)) == words


def test_a_span_whose_ends_read_alike_is_one_figure() -> None:
    assert span(Cost(Decimal("100.1"), Decimal("100.2"), Decimal("100.3"))) == "100"
    assert span(Cost(Decimal(3), Decimal(2), Decimal(1))) == "1.00 to 3.00"
    assert span(None) == "not stated"


# --- what is added never takes away


def serving(workload: Workload, of: Machine) -> set[str]:
    """Whether the one offering serves, ranked or not."""
    offering = Offering("1", of.fingerprint(), quotes=(QUOTE,), availability=Availability.AVAILABLE)
    found = shortlist(workload, Fleet.of([offering], {of.fingerprint(): of}))
    return {row.offering.key for row in (*found.rows, *found.unranked) if row.status.serves}


@pytest.mark.parametrize("budget", [1, 100, 10**6])
@pytest.mark.parametrize("deadline", [1, 100, 10**6])
def test_a_budget_and_a_deadline_remove_no_candidate(budget: int, deadline: int) -> None:
    plain = train("llama-3.1-8b", tokens_to_train=10**9)
    asked = train(
        "llama-3.1-8b",
        tokens_to_train=10**9,
        deadline_hours=deadline,
        budget={"amount": budget, "currency": "USD"},
    )
    assert serving(asked, SWITCHED) == serving(plain, SWITCHED) == {"1"}


GB = 10**9
GROWING = (1 * GB, 100 * GB, 2_000 * GB, 20_000 * GB)


@pytest.mark.parametrize("fact", ["ram_bytes", "local_storage_bytes"])
def test_more_ram_or_disk_removes_no_candidate(fact: str) -> None:
    job = train("llama-3.1-8b", offload="optimizer", dataset_bytes=100 * GB)
    of = replace(SWITCHED, persistent_storage=declared(False))
    found = [serving(job, replace(of, **{fact: declared(size)})) for size in GROWING]
    assert all(less <= more for less, more in pairwise(found))
    assert found[0] < found[-1]
