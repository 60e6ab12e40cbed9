"""Every plan of a workload on every distinct machine at once: words only, no sentences.

The same questions as `verdict.judge_plan`, asked of tables. What differs between two machines in
nothing that can change an answer is one case; a catalog has far fewer cases than machines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from evaluator.answers import NONE, Answers
from evaluator.fits import TIGHT
from evaluator.hardware import Column, Hardware, numbered
from evaluator.host_table import HostTable, Load, load_of
from evaluator.jobs import Offload, Workload
from evaluator.link_table import LinkTable
from evaluator.machine import Machine
from evaluator.outlook import Outlook
from evaluator.pace import Clock, Rentals
from evaluator.plans import Plan
from evaluator.sheet import Sheet
from evaluator.verdict import (
    MOST_MACHINES,
    MachineVerdict,
    PlanVerdict,
    countable_gpus,
    machine_numbers,
)
from evaluator.workbook import Workbook


@dataclass(frozen=True, slots=True)
class Cases:
    """`of_machine` numbers the case of each machine, `sample` is one machine of each case."""

    of_machine: Column
    sample: Column

    @classmethod
    def of(cls, workload: Workload, hardware: Hardware, failing: Column) -> Cases:
        """Machines of one kind, and alike in what of the host may fail."""
        signs = _host_signs(workload, hardware, failing)
        apart = np.flatnonzero(np.isfinite(signs).any(axis=0))
        number = hardware.kind.copy()
        rows = np.vstack([hardware.kind[apart], signs[:, apart]])
        if len(apart):
            _, own = np.unique(rows, axis=1, return_inverse=True)
            number[apart] = len(hardware.kinds) + own
        _, sample, of_machine = np.unique(number, return_index=True, return_inverse=True)
        return cls(of_machine, sample)


def _host_signs(workload: Workload, hardware: Hardware, failing: Column) -> Column:
    """What tells hosts apart: infinite where nothing of it can fail for any plan."""
    counts = hardware.by_kind("countable", countable_gpus)[hardware.kind]
    offloads = workload.training and workload.training.offload is not Offload.NONE
    ram = hardware.ram_bytes if offloads else np.nan
    few = np.where(hardware.vcpus < counts, hardware.vcpus, np.inf)
    return np.array(
        [
            few,
            np.where(np.isnan(ram), np.inf, ram) + np.zeros(len(hardware)),
            np.where(failing > 0, failing, np.inf),
        ]
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """Every plan that serves a case, narrowest first within a case; cases in their order.

    `tier` is 0 for ready and sure to fit, 1 ready and tight, then the same for conditional.
    """

    case: Column
    plan: Column
    tier: Column


@dataclass(frozen=True, slots=True)
class Chosen:
    """One plan of each case by its number, NONE where there is none, with the words on it."""

    plan: Column
    status: Column
    tight: Column
    missing: Column
    why: Column

    @classmethod
    def nobody(cls, count: int) -> Chosen:
        zeros = [np.zeros(count, dtype=kind) for kind in (np.int8, bool, float, np.int8)]
        return cls(np.full(count, NONE), *zeros)

    def put(self, answers: Answers, rows: Column, columns: Column) -> None:
        """Sets what the answers say of the plans at `columns` for the cases at `rows`."""
        cases = answers.cases[rows]
        self.plan[cases] = answers.plans[rows, columns]
        self.status[cases] = answers.status[rows, columns]
        self.tight[cases] = answers.fit[rows, columns] == TIGHT
        self.missing[cases] = answers.missing[rows, columns]
        self.why[cases] = answers.why(rows, columns)


@dataclass(frozen=True)
class Judged:
    """All that a list needs to know of a workload on some hardware, without prices.

    `narrowest` serves, `single` takes one GPU, `nearest` does not serve and misses least, as in a
    `MachineVerdict`. `tried` counts the plans of each case, `rentals` is how many of the machine
    those plans take that count. `written`, `machines` and `outlooks` keep in
    full what was shown, by machine and the numbers of the plans shown on it; `choices` the plans
    that were chosen, by what they were chosen for.
    """

    workload: Workload
    book: Workbook
    clock: Clock
    plans: tuple[Plan, ...]
    case: Column
    kind: Column
    serving: Serving
    narrowest: Chosen
    single: Chosen
    nearest: Chosen
    tried: Column
    rentals: Column
    written: dict[tuple[int, int], PlanVerdict] = field(default_factory=dict)
    machines: dict[tuple[int, frozenset[int]], MachineVerdict] = field(default_factory=dict)
    outlooks: dict[Hashable, Outlook | None] = field(default_factory=dict)
    choices: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def nothing(self) -> Column:
        """By case: whether no plan at all could be judged."""
        found: Column = (self.narrowest.plan == NONE) & (self.nearest.plan == NONE)
        return found

    @cached_property
    def nodes(self) -> Column:
        """Machines that each plan spans."""
        return np.array([plan.nodes for plan in self.plans], dtype=np.int64)

    @cached_property
    def gpus(self) -> Column:
        """Working GPUs, by plan."""
        return np.array([plan.gpus for plan in self.plans], dtype=np.int64)


def judge_hardware(
    workload: Workload, hardware: Hardware, links: LinkTable, rentals: Rentals
) -> Judged:
    book = Workbook(workload)
    host = HostTable.of(workload, hardware, book.weights_bytes)
    cases = Cases.of(workload, hardware, host.alone)
    desk = Desk(book, hardware, links, rentals, host, cases)
    desk.judge(_groups(workload, hardware, cases))
    return desk.judged()


@dataclass(frozen=True, slots=True)
class Group:
    """Cases for which the same plans are tried, one space after another until one serves."""

    cases: Column
    gpus: int
    machines: tuple[int, ...]

    @property
    def tried(self) -> tuple[int, int]:
        """GPUs and machines of the plans at hand."""
        return self.gpus, self.machines[0]

    def after(self, served: Column) -> Group:
        """What is left to try, for the cases that no plan served."""
        return Group(self.cases[~served], self.gpus, self.machines[1:])


def _groups(workload: Workload, hardware: Hardware, cases: Cases) -> Iterator[Group]:
    """All kinds with as many GPUs on as many machines make one group."""

    def tries(machine: Machine) -> tuple[int, tuple[int, ...]]:
        return countable_gpus(machine), machine_numbers(workload, machine, MOST_MACHINES)

    name = ("alike in tries", workload.training is not None)
    if name not in hardware.kept:
        numbers, firsts = numbered(map(tries, hardware.kinds))
        hardware.kept[name] = np.array(firsts, dtype=np.int64)[numbers]
    first = hardware.kept[name][hardware.kind[cases.sample]]
    for kind in dict.fromkeys(first.tolist()):
        yield Group(np.flatnonzero(first == kind), *tries(hardware.kinds[kind]))


@dataclass
class Desk:
    """Judges turn by turn: all groups on as few machines as each may take, then those left on more.

    Answers on a plan are worked out once, for all kinds and with all plans of a turn at once.
    """

    book: Workbook
    hardware: Hardware
    links: LinkTable
    rentals: Rentals
    host: HostTable
    cases: Cases
    sheet: Sheet = field(init=False)
    rows: dict[tuple[int, int], Column] = field(default_factory=dict)
    loads: dict[Load, Plan] = field(default_factory=dict)
    load: list[int] = field(default_factory=list)
    found: list[Answers] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sheet = Sheet(self.book, self.hardware, self.links)

    def judge(self, groups: Iterable[Group]) -> None:
        ahead = 1
        while groups := [one for one in groups if len(one.cases) and one.machines]:
            if any(one.tried not in self.rows for one in groups):
                self._look_ahead(groups, ahead)
                ahead *= 4
            answers = self._answers(groups)
            self.found.append(answers)
            served = np.split(answers.served, np.cumsum([len(one.cases) for one in groups])[:-1])
            groups = [one.after(its) for one, its in zip(groups, served, strict=True)]

    def _look_ahead(self, groups: Iterable[Group], turns: int) -> None:
        """Works out the plans of so many turns at once: one call costs more than many plans. Who
        went on for long is likely to go on.
        """
        tries = ((one.gpus, machines) for one in groups for machines in one.machines[:turns])
        new = {one: self.book.plans(*one).plans for one in tries if one not in self.rows}
        rows = self.sheet.rows([plan for plans in new.values() for plan in plans])
        ends = np.cumsum([0, *map(len, new.values())])
        self.rows |= {
            one: rows[start:end] for one, (start, end) in zip(new, pairwise(ends), strict=True)
        }
        self._load(list(self.sheet.number)[len(self.load) :])

    def _load(self, plans: Sequence[Plan]) -> None:
        """Numbers the loads of plans that are new on the sheet, each with a plan that makes it."""
        number = {load: at for at, load in enumerate(self.loads)}
        for plan in plans:
            load = load_of(self.book.workload, plan)
            self.load.append(number.setdefault(load, len(number)))
            self.loads.setdefault(load, plan)

    def _answers(self, groups: Sequence[Group]) -> Answers:
        """Of all groups at once; the plans of a group are as many as those of the widest one."""
        held = [self.rows[one.tried] for one in groups]
        rows = np.full((len(groups), max(map(len, held))), NONE)
        for row, plans in zip(rows, held, strict=True):
            row[: len(plans)] = plans
        plans = np.repeat(rows, [len(one.cases) for one in groups], axis=0)
        cases = np.concatenate([one.cases for one in groups])
        samples = self.cases.sample[cases]
        return Answers(
            cases=cases,
            plans=plans,
            sheet=self.sheet,
            kinds=self.hardware.kind[samples],
            host=self._host_failures(samples, plans),
        )

    def _host_failures(self, samples: Column, plans: Column) -> Column:
        """The first item that fails, by case and plan."""
        load = np.array(self.load, dtype=np.int64)[plans]
        found = np.zeros((len(self.loads), len(samples)), dtype=np.int8)
        asked = np.zeros(len(self.loads), dtype=bool)
        asked[load] = True
        for at, (one, plan) in enumerate(self.loads.items()):
            if asked[at]:
                found[at] = self.host.first_failure(plan, one, samples)
        return found[load, np.arange(len(samples))[:, np.newaxis]]

    def _on_one_gpu(self, answers: Answers) -> Column:
        alone = np.array([plan.gpus == 1 for plan in self.sheet.number], dtype=bool)
        return np.where(alone[answers.plans] & answers.real, 0.0, np.inf)

    def judged(self) -> Judged:
        count, plans = len(self.cases.sample), tuple(self.sheet.number)
        narrowest = _first(self.found, count, Answers.by_status)
        nearest = _first(self.found, count, Answers.by_miss)
        return Judged(
            workload=self.book.workload,
            book=self.book,
            clock=Clock(self.book.workload, self.rentals, plans),
            plans=plans,
            case=self.cases.of_machine,
            kind=self.hardware.kind[self.cases.sample],
            serving=_serving(self.found),
            narrowest=narrowest,
            single=_first(self.found, count, self._on_one_gpu),
            nearest=nearest,
            tried=_tried(self.found, count),
            rentals=self._rentals(np.where(narrowest.plan == NONE, nearest.plan, narrowest.plan)),
        )

    def _rentals(self, plans: Column) -> Column:
        """Plans that serve a case all take as many machines: the fewest that do. One where there
        is no plan, whose number is that of the last element."""
        spanned = np.array([*(plan.nodes for plan in self.sheet.number), 1], dtype=np.int64)
        held = self.hardware.by_kind("nodes", lambda machine: machine.nodes)
        found: Column = -(-spanned[plans] // held[self.hardware.kind[self.cases.sample]])
        return found


def _serving(found: Sequence[Answers]) -> Serving:
    """Cases in their order, the plans of each as they were tried."""
    parts = [_served(one) for one in found]
    if not parts:
        return Serving(NOBODY, NOBODY, NOBODY)
    case, plan, tier = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(case, kind="stable")
    return Serving(case[order], plan[order], tier[order])


def _served(one: Answers) -> tuple[Column, Column, Column]:
    rows, columns = np.nonzero(one.serves)
    return one.cases[rows], one.plans[rows, columns], one.tier[rows, columns]


NOBODY = np.array([], dtype=np.int64)


def _first(found: Sequence[Answers], count: int, key: Callable[[Answers], Column]) -> Chosen:
    """Of each case the first plan with the lowest key, over all that were tried."""
    best, chosen = np.full(count, np.inf), Chosen.nobody(count)
    for one in found:
        keys = key(one)
        if not keys.shape[1]:
            continue
        column = keys.argmin(axis=1)
        lowest = keys[np.arange(len(keys)), column]
        better = np.flatnonzero(lowest < best[one.cases])
        best[one.cases[better]] = lowest[better]
        chosen.put(one, better, column[better])
    return chosen


def _tried(found: Sequence[Answers], count: int) -> Column:
    tried = np.zeros(count, dtype=np.int64)
    for one in found:
        tried[one.cases] += one.real.sum(axis=1)
    return tried
