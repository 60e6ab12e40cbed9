"""Which plan of a case counts: the best by the rule, and beside it the narrowest that will do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluator.answers import NONE
from evaluator.facts import Grade
from evaluator.hardware import Column, Hardware
from evaluator.jobs import Workload
from evaluator.judging import Judged, Serving
from evaluator.pace import Pace, Starts
from evaluator.rules import Goal, Rule, rule_of
from evaluator.verdict import FACTS, stands_on

KEPT, BROKEN, UNTIMED = 0, 1, 2
"""Whether the promises hold at the slow end. What cannot be timed comes last."""
NO_TIER = 127


@dataclass(frozen=True, slots=True)
class Speed:
    """At the slow end: whether targets hold, tokens/s, hours of work; NaN is not timed."""

    promise: Column
    rate: Column
    work: Column

    @classmethod
    def untimed(cls, count: int) -> Speed:
        return cls(np.full(count, UNTIMED), np.full(count, np.nan), np.full(count, np.nan))

    def at(self, rows: Column) -> Speed:
        return Speed(self.promise[rows], self.rate[rows], self.work[rows])

    def put(self, rows: Column, other: Speed) -> None:
        self.promise[rows] = other.promise
        self.rate[rows] = other.rate
        self.work[rows] = other.work


@dataclass(frozen=True, slots=True)
class Choices:
    """Plans to choose among. `tier` is the best of each case, NO_TIER where nothing serves.

    `plan` and `speed` are those of the best plan for the cases that were asked for: what does not
    come near the top is never timed. Until then `plan` is the narrowest of the best tier.
    """

    judged: Judged
    hardware: Hardware
    starts: Starts
    rule: Rule
    serving: Serving
    tier: Column
    plan: Column
    speed: Speed
    asked: Column
    bound: Speed
    fewest: Column
    bounded: Column

    @classmethod
    def of(cls, judged: Judged, hardware: Hardware, workload: Workload) -> Choices:
        """`workload` is of the fingerprint that was judged, with demands and costs of its own.

        Kept with what was judged, for all demands and costs that choose alike.
        """
        key = (workload.needs.min_grade, workload.costs)
        if key not in judged.choices:
            judged.choices[key] = cls._new(judged, hardware, workload)
        found: Choices = judged.choices[key]
        return found

    @classmethod
    def _new(cls, judged: Judged, hardware: Hardware, workload: Workload) -> Choices:
        count = len(judged.kind)
        serving = _known_enough(judged, hardware, workload.needs.min_grade)
        tier = np.full(count, NO_TIER, dtype=np.int8)
        np.minimum.at(tier, serving.case, serving.tier)
        plan = np.full(count, NONE)
        best = np.flatnonzero(serving.tier == tier[serving.case])[::-1]
        plan[serving.case[best]] = serving.plan[best]
        return cls(
            judged=judged,
            hardware=hardware,
            starts=Starts.of(workload, hardware, judged.nodes.max(initial=1)),
            rule=rule_of(workload),
            serving=serving,
            tier=tier,
            plan=plan,
            speed=Speed.untimed(count),
            asked=np.zeros(count, dtype=bool),
            bound=Speed.untimed(count),
            fewest=np.zeros(count, dtype=np.int64),
            bounded=np.zeros(count, dtype=bool),
        )

    @property
    def workload(self) -> Workload:
        return self.starts.workload

    def may_choose(self, case: int, plan: int) -> bool:
        """Whether a plan is one of those that count for a case."""
        held = self.serving
        found = (held.case == case) & (held.plan == plan) & (held.tier == self.tier[case])
        return bool(found.any())

    def settle(self, cases: Column) -> None:
        """Times the plans of the best tier of these cases, and takes the best by the rule.

        Marked at the end: who finds a case marked may read it, in another thread too.
        """
        wanted, rows = self._left(cases, self.asked)
        if self.rule.timed and len(rows):
            self._take(rows)
        self.asked[wanted] = True

    def _left(self, cases: Column, done: Column) -> tuple[Column, Column]:
        """Which of these cases are not done, and the rows of the plans that count for them, case
        by case.
        """
        left = np.zeros(len(self.tier), dtype=bool)
        left[cases[~done[cases]]] = True
        if not left.any():
            return left, cases[:0]
        best = left[self.serving.case] & (self.serving.tier == self.tier[self.serving.case])
        return left, np.flatnonzero(best)

    def _take(self, rows: Column) -> None:
        case, plan = self.serving.case[rows], self.serving.plan[rows]
        speed = self.speed_of(case, plan)
        place = np.lexsort((_effort(speed, self.rule), speed.promise, case))[_starts(case)]
        self.plan[case[place]] = plan[place]
        self.speed.put(case[place], speed.at(place))

    def bounds(self, cases: Column) -> tuple[Speed, Column]:
        """What no plan of the best tier of a case does better than, in any figure, and the fewest
        GPUs of them.
        """
        wanted, rows = self._left(cases, self.bounded)
        if len(rows):
            self._bound(rows)
        self.bounded[wanted] = True
        return self.bound.at(cases), self.fewest[cases]

    def _bound(self, rows: Column) -> None:
        case, plan = self.serving.case[rows], self.serving.plan[rows]
        pace = self.judged.clock.bounds(plan, self.judged.kind[case])
        best, first = _speed(pace, self.rule), _starts(case)
        found = Speed(
            np.minimum.reduceat(best.promise, first),
            np.fmax.reduceat(best.rate, first),
            np.fmin.reduceat(best.work, first),
        )
        self.bound.put(case[first], found)
        self.fewest[case[first]] = np.minimum.reduceat(self.judged.gpus[plan], first)

    def speed_of(self, cases: Column, plans: Column) -> Speed:
        """Of plans on the machines of cases; each pair of a plan and a kind is timed once."""
        if not self.rule.timed or not len(cases):
            return Speed.untimed(len(cases))
        kinds = self.judged.kind[cases]
        return _speed(self.judged.clock.paces(plans, kinds), self.rule)

    def speed_of_singles(self, cases: Column) -> Speed:
        """Of the plan on one GPU of each case, timed once for each of them."""
        wanted = np.zeros(len(self.tier), dtype=bool)
        wanted[cases] = True
        held, speed = np.flatnonzero(wanted), Speed.untimed(len(self.tier))
        speed.put(held, self.speed_of(held, self.judged.single.plan[held]))
        return speed.at(cases)

    def hours(self, cases: Column, plans: Column, work: Column, spot: Column) -> Column:
        """From the start of the rental to the end of a job that has one, at the slow end."""
        if self.rule.goal is not Goal.FINISH or not len(cases):
            return np.full(len(cases), np.nan)
        start = self.starts.at(self.judged.kind[cases], self.judged.nodes[plans])
        hours: Column = start.before + work * np.where(spot, start.factor, 1.0)
        return hours

    def in_time(self, speed: Speed, hours: Column) -> Column:
        """The promise of each, the deadline of a job included."""
        job = self.workload.training
        if job is None or job.deadline_hours is None or self.rule.goal is not Goal.FINISH:
            return speed.promise
        late = np.where(hours > job.deadline_hours, BROKEN, speed.promise)
        return np.where(speed.promise == UNTIMED, UNTIMED, late)

    def narrowest(self, cases: Column) -> Column:
        """The narrowest plans as firm as the best ones; where promises count, that keep them."""
        wanted = np.zeros(len(self.tier), dtype=bool)
        wanted[cases] = True
        firm = self.serving.tier // 2 == self.tier[self.serving.case] // 2
        rows = np.flatnonzero(wanted[self.serving.case] & firm)
        case, plan = self.serving.case[rows], self.serving.plan[rows]
        place = np.lexsort((rows, self._breaks(case, plan), case))[::-1]
        found = np.full(len(self.tier), NONE)
        found[case[place]] = plan[place]
        narrow: Column = found[cases]
        return narrow

    def _breaks(self, cases: Column, plans: Column) -> Column:
        """Whether each plan breaks a promise; none does where nothing was promised."""
        if not self.rule.promised:
            return np.zeros(len(cases), dtype=bool)
        speed, on_demand = self.speed_of(cases, plans), np.zeros(len(cases), dtype=bool)
        hours = self.hours(cases, plans, speed.work, on_demand)
        broken: Column = self.in_time(speed, hours) != KEPT
        return broken


def _starts(cases: Column) -> Column:
    """Where each case begins, in rows that stand case by case."""
    return np.flatnonzero(np.diff(cases, prepend=-1))


def too_little_known(choices: Choices, least: Grade) -> Column:
    """By case: no plan that counts stands on facts of this grade."""
    judged, cases = choices.judged, np.arange(len(choices.tier))
    nearest = weakest(judged, choices.hardware, cases, judged.nearest.plan) < least
    had = np.zeros(len(cases), dtype=bool)
    had[judged.serving.case] = True
    found: Column = np.where(had, choices.tier == NO_TIER, nearest)
    return found


def _known_enough(judged: Judged, hardware: Hardware, least: Grade | None) -> Serving:
    serving = judged.serving
    if least is None:
        return serving
    kept = weakest(judged, hardware, serving.case, serving.plan) >= least
    return Serving(serving.case[kept], serving.plan[kept], serving.tier[kept])


def weakest(judged: Judged, hardware: Hardware, cases: Column, plans: Column) -> Column:
    """The grade of the weakest fact that a plan stands on, as `verdict.weakest_of` names it."""
    stands = np.array([stands_on(plan) for plan in judged.plans] or [(True,) * len(FACTS)])
    grades = hardware.grades([name for name, _ in FACTS])[:, judged.kind[cases]]
    found: Column = np.where(stands[plans].T, grades, max(Grade)).min(axis=0)
    return found


def _speed(pace: Pace, rule: Rule) -> Speed:
    known = ~np.isnan(pace.work if rule.goal is Goal.FINISH else pace.rate)
    kept = np.where(pace.kept | (not rule.promised), KEPT, BROKEN)
    return Speed(np.where(known, kept, UNTIMED), pace.rate, pace.work)


def _effort(speed: Speed, rule: Rule) -> Column:
    """What the money grows with between plans on one machine; all rent as many of it."""
    if rule.goal is Goal.FINISH:
        return np.nan_to_num(speed.work)
    if rule.goal is Goal.TOKENS:
        return np.nan_to_num(1 / speed.rate)
    return np.zeros(len(speed.rate))
