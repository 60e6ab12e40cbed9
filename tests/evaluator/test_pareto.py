"""What no other candidate beats in cost, time and evidence at once."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.facts import Grade
from evaluator.fleet import Fleet
from evaluator.front import unbeaten_rows
from evaluator.jobs import Workload
from evaluator.offers import Offering
from evaluator.pareto import Merits, beats, merits_of, pareto
from evaluator.shortlist import shortlist
from tests.evaluator.machines import TRAIN_70B, preset, serve, train
from tests.evaluator.test_shortlist import MACHINES, OFFERINGS, offer


@pytest.mark.parametrize(
    ("own", "other", "beaten"),
    [
        ((1, 1, Grade.DECLARED), (2, 1, Grade.DECLARED), True),
        ((1, 2, Grade.DECLARED), (2, 1, Grade.DECLARED), False),
        ((1, 1, Grade.DECLARED), (1, 1, Grade.DECLARED), False),
        ((1, 1, Grade.DECLARED), (1, 1, Grade.MEASURED), False),
        ((1, 1, Grade.MEASURED), (1, 1, Grade.DECLARED), True),
        ((1, 1, Grade.DECLARED), (None, 1, Grade.DECLARED), True),
        ((None, None, Grade.DECLARED), (1, 1, Grade.DECLARED), False),
    ],
)
def test_one_beats_another_where_it_is_nowhere_worse(
    own: tuple, other: tuple, beaten: bool
) -> None:
    assert Merits(*own).beats(Merits(*other)) is beaten


ENDS = st.one_of(st.none(), st.integers(1, 4))
MERITS = st.builds(Merits, ENDS, ENDS, st.sampled_from(Grade))


@given(MERITS, MERITS, MERITS)
def test_to_beat_is_an_order(one: Merits, other: Merits, third: Merits) -> None:
    assert not (one.beats(other) and other.beats(one))
    if one.beats(other) and other.beats(third):
        assert one.beats(third)


WEIGHED = [serve("llama-3.1-8b"), train("llama-3.1-8b", lora={"rank": 8}, tokens_to_train=10**9)]


@pytest.mark.parametrize("workload", WEIGHED)
def test_every_row_that_serves_is_in_the_set_or_beaten_by_one_of_it(workload: object) -> None:
    offers = [offer("h100x1", "2"), offer("h100x8", "16"), offer("a40x2", "9"), offer("l4x1", "1")]
    rows = shortlist(workload, Fleet.of(offers, MACHINES)).rows  # type: ignore[arg-type]
    best = pareto(rows)
    assert 0 < len(best) < len(rows)
    for row in rows:
        inside = any(one is row for one in best)
        assert inside != any(merits_of(one).beats(merits_of(row)) for one in best)
    assert min(rows, key=lambda row: merits_of(row).money or Decimal("inf")) in best


SETS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12)


@given(SETS)
def test_columns_keep_what_no_other_beats(ends: list[tuple[int, ...]]) -> None:
    columns = np.array(ends, dtype=float).reshape(-1, 3).T
    kept = [one for one in ends if not any(beats(other, one) for other in ends)]
    assert [ends[row] for row in unbeaten_rows(list(columns))] == kept


@settings(max_examples=60, deadline=None)
@given(OFFERINGS, st.sampled_from([*WEIGHED, preset(TRAIN_70B)]), st.integers(1, 3))
def test_the_front_is_that_of_all_ranked_offers_however_few_are_shown(
    offerings: list[Offering], workload: Workload, limit: int
) -> None:
    fleet = Fleet.of(offerings, MACHINES)
    some = shortlist(workload, fleet, limit, weigh=True)
    every = shortlist(workload, fleet, limit=1000)
    ranked = [row for row in every.rows if row.rate.ranked]
    assert {merits_of(one) for one in some.front} == {merits_of(one) for one in pareto(ranked)}
    assert shortlist(workload, fleet, limit).front == ()
