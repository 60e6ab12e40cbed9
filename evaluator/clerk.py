"""Writes out what was picked: full verdicts with reasons, changes and outlook, for a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from evaluator.answers import NONE
from evaluator.candidates import Candidate, candidate_of, findings_on, price_of
from evaluator.choices import Choices
from evaluator.economics import Terms
from evaluator.fleet import Fleet
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.outlook import Outlook, outlook_at
from evaluator.plans import narrowness
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

    def ranked(self, entries: Sequence[Entry], ranks: Iterable[int]) -> Iterator[Candidate]:
        """Those of the ordered entries that have these ranks."""
        return (self.candidate(entries[rank], rank) for rank in ranks)

    def candidates(self, entries: Sequence[Entry]) -> Iterator[Candidate]:
        return (self.candidate(entry) for entry in entries)

    def candidate(self, entry: Entry, rank: int | None = None) -> Candidate:
        at, narrowest = int(self.fleet.machine[entry.offer]), entry.narrowest
        made = self._priced(entry, self._machine(at, entry))
        return replace(
            made,
            rank=rank,
            findings=findings_on(made, self.now),
            narrowest=None if narrowest is None else self._verdict(at, narrowest),
            outlook=self._outlook(made, at, entry.plan) if made.status.serves else None,
            alike=self.fleet.alike(entry.offer, self.inside)[1:],
        )

    def brief(self, entry: Entry, rank: int) -> Candidate:
        """With its own plan alone, and without findings, outlook and other places."""
        at = int(self.fleet.machine[entry.offer])
        return replace(self._priced(entry, self._kept(at, frozenset({entry.plan}))), rank=rank)

    def _priced(self, entry: Entry, machine: MachineVerdict) -> Candidate:
        at, offer = int(self.fleet.machine[entry.offer]), self.fleet.table.offer(entry.offer)
        return candidate_of([offer], machine, self._verdict(at, entry.plan), self.terms)

    def _outlook(self, candidate: Candidate, at: int, number: int) -> Outlook | None:
        """Worked out once for each machine, plan, price and what else it costs."""
        plan, judged, workload = candidate.plan.plan, self.choices.judged, self.workload
        price = price_of(candidate)
        key = (at, plan, price, workload.costs, workload.budget_amount)
        if key not in judged.outlooks:
            hardware = self.fleet.hardware
            times = judged.clock.times(number, int(hardware.kind[at]))
            found = outlook_at(workload, plan, hardware.machines[at], times, price)
            judged.outlooks[key] = found
        return judged.outlooks[key]

    def _verdict(self, at: int, number: int) -> PlanVerdict:
        """With the changes that would admit the plan, where it does not fit."""
        judged = self.choices.judged
        if (at, number) not in judged.written:
            plan, machine = judged.plans[number], self.fleet.hardware.machines[at]
            verdict = judge_plan(judged.book, plan, machine)
            judged.written[at, number] = explained(judged.book, verdict)
        return judged.written[at, number]

    def _machine(self, at: int, entry: Entry) -> MachineVerdict:
        """Cut down to the plans that a list shows."""
        judged = self.choices.judged
        shown = {entry.plan, entry.narrowest, int(judged.single.plan[judged.case[at]])}
        return self._kept(at, frozenset(one for one in shown if one is not None and one != NONE))

    def _kept(self, at: int, numbers: frozenset[int]) -> MachineVerdict:
        held = self.choices.judged.machines
        if (at, numbers) not in held:
            held[at, numbers] = self._verdict_with(at, numbers)
        return held[at, numbers]

    def _verdict_with(self, at: int, numbers: Iterable[int]) -> MachineVerdict:
        """Its plans narrowest first."""
        machine, judged = self.fleet.hardware.machines[at], self.choices.judged
        plans = [self._verdict(at, number) for number in numbers]
        return MachineVerdict(
            configuration=self.fleet.configurations[at],
            gpu_model=machine.gpu_model.value or "",
            gpu_count=machine.gpu_count.value,
            nodes=machine.nodes,
            plans=tuple(sorted(plans, key=lambda one: (one.plan.nodes, narrowness(one.plan)))),
            findings=findings_of(machine),
            plans_judged=int(judged.tried[judged.case[at]]),
        )
