"""Groups of the same hardware, worked out on columns, against a plain loop over the places."""

from __future__ import annotations

import random

import numpy as np
import pytest

from marketplace.views.ranked import GROUPED, Order, _grouped


@pytest.mark.parametrize(("places", "kinds"), [(0, 1), (1, 1), (40, 1), (40, 7), (300, 300)])
def test_a_head_stands_for_all_that_follow_it(places: int, kinds: int) -> None:
    by = random.Random(places + kinds)
    ordered = by.sample(range(1, places + 1), places)
    hardware = [by.randrange(kinds) * 10 for _ in ordered]
    groups: dict[int, list[int]] = {}
    for place, kind in zip(ordered, hardware, strict=True):
        groups.setdefault(kind, []).append(place)

    passing = np.ones(places + 1, dtype=bool)
    order = Order(passing, *_grouped(np.array(ordered, dtype=np.int64), np.array(hardware)))

    assert order.heads.tolist() == [group[0] for group in groups.values()]
    kin = [order.kin(at).tolist() for at in range(len(groups))]
    assert kin == [group[1:] for group in groups.values()]
    assert sorted(order.aside[GROUPED].tolist()) == sorted(one for part in kin for one in part)
