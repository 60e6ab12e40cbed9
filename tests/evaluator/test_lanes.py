"""Offers by lane: the cheaper first, then by place; nothing is lost on the way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evaluator.hardware import Column
from evaluator.lanes import Lanes, Order

OFFERS = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from([1.0, 2.0, np.nan])),
    min_size=1,
    max_size=30,
)


def lanes_of(offers: list[tuple[int, bool, float]]) -> Lanes:
    machine, waits, rate = (np.array(column) for column in zip(*offers, strict=True))
    order = Order.of((machine, waits, np.isnan(rate)), rate)
    return order.lanes(np.arange(len(offers)), np.arange(1, len(offers) + 1))


@given(OFFERS)
def test_each_lane_holds_what_is_alike_by_rate_and_place(
    offers: list[tuple[int, bool, float]],
) -> None:
    lanes = lanes_of(offers)
    assert sorted(lanes.every.offer) == list(range(len(offers)))
    assert lanes.offers.sum() == sum(range(1, len(offers) + 1))
    signs = set()
    for lane in range(len(lanes)):
        held = lanes.every.offer[lanes.members(np.array([lane]))].tolist()
        assert lanes.leaders[lane] == held[0]
        assert held == sorted(held, key=lambda at: (np.nan_to_num(offers[at][2]), at))
        (sign,) = {(*offers[at][:2], bool(np.isnan(offers[at][2]))) for at in held}
        assert sign not in signs
        signs.add(sign)


@given(OFFERS, st.randoms(use_true_random=False))
def test_what_is_kept_stays_in_its_lane_and_order(
    offers: list[tuple[int, bool, float]], by: object
) -> None:
    lanes = lanes_of(offers)
    wanted = np.array([by.random() < 0.5 for _ in offers])  # type: ignore[attr-defined]
    kept, left = lanes.keep(wanted)
    assert kept.every.offer.tolist() == lanes.every.offer[wanted].tolist()
    assert kept.every.size.tolist() == lanes.every.size[wanted].tolist()
    places = np.flatnonzero(wanted)
    assert left[kept.lane_of(kept.places)].tolist() == lanes.lane_of(places).tolist()
    assert kept.every.place[kept.every.offer].tolist() == kept.places.tolist()
    assert (kept.groups > 0).all()


@given(OFFERS, st.randoms(use_true_random=False))
def test_whole_lanes_are_kept_as_group_by_group(
    offers: list[tuple[int, bool, float]], by: object
) -> None:
    lanes = lanes_of(offers)
    marked = np.array([by.random() < 0.5 for _ in range(len(lanes))])  # type: ignore[attr-defined]
    same(lanes.keep_lanes(marked), lanes.keep(np.repeat(marked, lanes.groups)))


def same(quick: tuple[Lanes, Column], kept: tuple[Lanes, Column]) -> None:
    """The same groups in the same lanes, wherever they stand."""
    for one, other in zip(views(*quick), views(*kept), strict=True):
        assert one.tolist() == other.tolist()


def views(lanes: Lanes, left: Column) -> tuple[Column, ...]:
    every = lanes.every.at(lanes.places)
    return (left, every.offer, every.size, lanes.groups, lanes.offers, lanes.leaders)


@given(OFFERS, st.data())
def test_one_can_be_left_out(offers: list[tuple[int, bool, float]], data: st.DataObject) -> None:
    lanes, place = lanes_of(offers), data.draw(st.integers(0, len(offers) - 1))
    same(lanes.without(place), lanes.keep(np.arange(len(offers)) != place))


def test_nothing_makes_no_lanes() -> None:
    nothing = lanes_of([(0, True, 1.0)]).keep(np.array([False]))[0]
    assert len(nothing) == 0
    assert nothing.offers.tolist() == nothing.members(np.array([], dtype=int)).tolist() == []
