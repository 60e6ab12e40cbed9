"""What a column of the whole ranking holds equals what the written row says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from evaluator.candidates import Candidate
from evaluator.fleet import MOST_TERMS, Fleet
from evaluator.jobs import Workload
from evaluator.ranking import Cut, Ranking
from evaluator.shortlist import judge_fleet, shortlist
from tests.evaluator.test_fast_and_plain import WORKLOADS, some_machine, some_offer


def made(name: str, offers: int = 300) -> tuple[Workload, Fleet, Ranking]:
    by, workload = random.Random(name), WORKLOADS[name]
    machines = {one.fingerprint(): one for one in (some_machine(by) for _ in range(40))}
    fleet = Fleet.of([some_offer(by, at, list(machines)) for at in range(offers)], machines)
    everything = np.ones(offers, dtype=bool)
    return (
        workload,
        fleet,
        Ranking.of(workload, fleet, judge_fleet(workload, fleet), everything, None),
    )


def outlook(name: str, end: str, one: Candidate) -> float | None:
    value = getattr(one.outlook, name) if one.outlook else None
    return None if value is None else float(getattr(value, end))


SAID: dict[str, Callable[[Candidate], float | None]] = {
    "gpus": lambda one: one.plan.plan.gpus,
    "hourly": lambda one: float(one.cost_per_hour or 0) if one.rate.ranked else None,
    "memory": lambda one: one.plan.fit.needed.high if one.plan.fit.needed else None,
    "rate": lambda one: outlook("rate", "low", one),
    "hours": lambda one: outlook("hours", "high", one),
    "per_million": lambda one: outlook("per_million", "high", one),
    "finish": lambda one: outlook("cost", "high", one),
    "token": lambda one: outlook("tpot", "high", one),
    "evidence": lambda one: one.plan.weakest.grade,
    "warnings": lambda one: len(one.warnings),
}


def columns_of(workload: Workload) -> list[str]:
    ends = workload.training is not None and workload.training.tokens_to_train is not None
    skipped = {"token"} if workload.training else {"finish", "hours"}
    return [name for name in SAID if name not in skipped and (ends or name != "finish")]


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_column_says_what_its_rows_say(name: str) -> None:
    workload, _, ranking = made(name)
    rows = [ranking.written(place) for place in range(len(ranking))]
    for column in columns_of(workload):
        said = [SAID[column](one) for one in rows]
        expected = np.array([np.nan if value is None else value for value in said], dtype=float)
        np.testing.assert_allclose(ranking.column(column), expected, rtol=1e-5, err_msg=column)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_whole_ranking_is_the_shortlist_without_a_limit(name: str) -> None:
    workload, fleet, ranking = made(name)
    whole = shortlist(workload, fleet, limit=10**6)
    assert [ranking.written(place) for place in range(len(ranking))] == list(whole.rows)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_offer_is_shown_or_counted_whatever_a_cut_leaves_out(name: str) -> None:
    _, _, ranking = made(name)
    places = np.arange(1, len(ranking))
    out, shown = places[places % 3 == 0], places[places % 3 == 1][:4]
    found = ranking.shortlist(Cut(shown.tolist(), aside={"left out": out}))
    written = {0, *shown.tolist()}
    parts = (
        *(one for one in found.rows if one.rank in written),
        *found.unranked,
        *found.near_misses,
    )
    seen = {one.offering.key for one in parts}
    assert len(seen) + sum(found.hidden.values()) == found.total
    assert all(count >= 0 for count in found.hidden.values())
    assert ("left out" in found.hidden) == bool(len(out))


def test_currencies_that_were_asked_for_do_not_pile_up() -> None:
    workload, fleet, _ = made("train in time", 30)
    for name in (*(f"X{chr(65 + at)}X" for at in range(MOST_TERMS + 4)), "USD"):
        asked = replace(workload, budget_amount=Decimal(1), budget_currency=name)
        found = shortlist(asked, fleet, 5, judged=judge_fleet(asked, fleet))
        assert max(map(len, (fleet._rates, fleet._orders, fleet._lanes))) <= MOST_TERMS
    assert found == shortlist(asked, made("train in time", 30)[1], 5)


def test_a_row_is_found_by_its_offer_and_plan() -> None:
    _, _, ranking = made("serve 8b")
    one = ranking.written(5)
    assert ranking.place_of(one.offering.key, one.plan.plan.key) == 5
    assert ranking.place_of(one.offering.key, "no such plan") == -1
    assert 5 in ranking.places_on({one.offering.key})
