"""What no ranked candidate of a whole list beats in cost, time and evidence at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluator.candidates import Candidate
from evaluator.choices import UNTIMED, Choices, Speed, weakest
from evaluator.clerk import Clerk, Entry
from evaluator.contest import Field, order
from evaluator.hardware import Column
from evaluator.pareto import merits_of, pareto
from evaluator.rules import Goal
from evaluator.timing import ServingTimes


def front_of(
    leaders: Field, choices: Choices, clerk: Clerk, single: Entry | None
) -> tuple[Candidate, ...]:
    """Of the first group of every lane, whose others cost more and are alike in all else, and of
    row 0; the cheapest first. Only those that no other beats by columns are written out.
    """
    ranked = leaders.keep(np.flatnonzero(leaders.serves & ~leaders.unranked))
    choices.settle(ranked.case)
    plan = choices.plan[ranked.case]
    left = unbeaten_rows(_ends(ranked, plan, choices))
    entries = [Entry(int(ranked.offer[row]), int(plan[row])) for row in left]
    alone = [single] if single and (single.offer, single.plan) not in _pairs(entries) else []
    written = clerk.candidates([*alone, *entries])
    best = pareto([one for one in written if one.rate.ranked])
    return tuple(sorted(best, key=lambda one: merits_of(one).ends))


def _pairs(entries: Sequence[Entry]) -> set[tuple[int, int]]:
    return {(entry.offer, entry.plan) for entry in entries}


def _ends(of: Field, plan: Column, choices: Choices) -> tuple[Column, Column, Column]:
    """Money, time and doubt: the lower the better. What is not timed has no money either."""
    speed = choices.speed.at(of.case)
    unknown = speed.promise == UNTIMED
    money = order(of, plan, speed, choices)[2]
    time = _time(of, plan, speed, choices)
    doubt = -weakest(choices.judged, choices.hardware, of.case, plan).astype(float)
    return np.where(unknown, np.inf, money), np.where(unknown, np.inf, time), doubt


def _time(of: Field, plan: Column, speed: Speed, choices: Choices) -> Column:
    """As `pareto.merits_of`: hours to an end, else seconds per token."""
    if choices.rule.goal is Goal.FINISH:
        return choices.hours(of.case, plan, speed.work, of.spot)
    if choices.workload.serving is None:
        found: Column = 1 / speed.rate
        return found
    return _seconds_per_token(choices, of.case, plan)


def _seconds_per_token(choices: Choices, case: Column, plan: Column) -> Column:
    """At the slow end, of each machine and plan once."""
    judged, known = choices.judged, np.full(len(case), np.inf)
    pairs, place = np.unique(np.stack([judged.kind[case], plan]), axis=1, return_inverse=True)
    for number, (kind, of) in enumerate(pairs.T.tolist()):
        times = judged.clock.times(of, kind)
        if isinstance(times, ServingTimes):
            known[place.ravel() == number] = times.tpot.value.high
    return known


def unbeaten_rows(ends: Sequence[Column]) -> Column:
    """Rows that no other beats: nowhere higher, and somewhere lower. Equal ones all stay."""
    held = np.stack(ends)
    if not held.shape[1]:
        return np.zeros(0, dtype=np.int64)
    distinct, place = np.unique(held, axis=1, return_inverse=True)
    left: list[int] = []
    for at in range(distinct.shape[1]):  # in order of the first end: only earlier ones can beat
        earlier = distinct[:, left]
        if not (earlier <= distinct[:, [at]]).all(axis=0).any():
            left.append(at)
    rows: Column = np.flatnonzero(np.isin(place.ravel(), left))
    return rows
