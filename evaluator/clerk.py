"""Writes out what was picked: full verdicts with reasons, changes and outlook, for a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from evaluator.candidates import Candidate, candidate_of, price_of, with_findings
from evaluator.choices import Choices
from evaluator.economics import Terms
from evaluator.fleet import Fleet
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.outlook import outlook_at
from evaluator.plans import Plan, narrowness
from evaluator.verdict import MachineVerdict, PlanVerdict, explained, findings_of, judge_plan


@dataclass(frozen=True, slots=True)
class Entry:
    """A picked offer by its place in the fleet, and its plans by their numbers."""

    offer: int
    plan: int
    narrowest: int | None = None


@dataclass
class Clerk:
    """`inside` marks the offers that were looked at. Verdicts are written once for each machine."""

    workload: Workload
    fleet: Fleet
    choices: Choices
    terms: Terms
    inside: Column
    now: datetime | None = None
    machines: dict[tuple[int, frozenset[Plan]], MachineVerdict] = field(default_factory=dict)

    def ranked(self, entries: Sequence[Entry], ranks: Iterable[int]) -> Iterator[Candidate]:
        """Those of the ordered entries that have these ranks."""
        return (replace(self._candidate(entries[rank]), rank=rank) for rank in ranks)

    def candidates(self, entries: Sequence[Entry]) -> Iterator[Candidate]:
        return (self._candidate(entry) for entry in entries)

    def _candidate(self, entry: Entry) -> Candidate:
        at = int(self.fleet.machine[entry.offer])
        plans = self.choices.judged.plans
        plan = self._verdict(at, plans[entry.plan])
        narrowest = None if entry.narrowest is None else self._verdict(at, plans[entry.narrowest])
        group = self.fleet.alike(entry.offer, self.inside)
        made = candidate_of(group, self._machine(at, (plan, narrowest)), plan, self.terms)
        found = with_findings(replace(made, narrowest=narrowest), self.now)
        return self._timed(found, at) if found.status.serves else found

    def _timed(self, candidate: Candidate, at: int) -> Candidate:
        """An outlook is worked out once for each machine, plan, price and what else it costs."""
        plan, judged, workload = candidate.plan.plan, self.choices.judged, self.workload
        price = price_of(candidate)
        key = (at, plan, price, workload.costs, workload.budget_amount)
        if key not in judged.outlooks:
            hardware = self.fleet.hardware
            times = judged.clock.times(plan, int(hardware.kind[at]))
            found = outlook_at(workload, plan, hardware.machines[at], times, price)
            judged.outlooks[key] = found
        return replace(candidate, outlook=judged.outlooks[key])

    def _single(self, at: int) -> PlanVerdict | None:
        judged = self.choices.judged
        number = int(judged.single.plan[judged.case[at]])
        return None if number < 0 else self._verdict(at, judged.plans[number])

    def _verdict(self, at: int, plan: Plan) -> PlanVerdict:
        """With the changes that would admit the plan, where it does not fit."""
        judged, machine = self.choices.judged, self.fleet.hardware.machines[at]
        if (at, plan) not in judged.written:
            verdict = judge_plan(judged.book, plan, machine)
            judged.written[at, plan] = explained(judged.book, verdict)
        return judged.written[at, plan]

    def _machine(self, at: int, shown: tuple[PlanVerdict | None, ...]) -> MachineVerdict:
        """Cut down to the plans that a list shows, narrowest first."""
        held = {one.plan: one for one in (*shown, self._single(at)) if one}
        key = (at, frozenset(held))
        if key not in self.machines:
            self.machines[key] = self._verdict_with(at, held.values())
        return self.machines[key]

    def _verdict_with(self, at: int, plans: Iterable[PlanVerdict]) -> MachineVerdict:
        machine, judged = self.fleet.hardware.machines[at], self.choices.judged
        return MachineVerdict(
            configuration=self.fleet.configurations[at],
            gpu_model=machine.gpu_model.value or "",
            gpu_count=machine.gpu_count.value,
            nodes=machine.nodes,
            plans=tuple(sorted(plans, key=lambda one: (one.plan.nodes, narrowness(one.plan)))),
            findings=findings_of(machine),
            plans_judged=int(judged.tried[judged.case[at]]),
        )
