"""Everything that is ranked, in its order from row 0 on: filtered, sorted and paged by places.

What a column of a row holds is worked out for all rows at once and equals what the row prints;
rows are written out only where a page shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from evaluator.bills import Job, besides
from evaluator.candidates import Candidate, findings_on
from evaluator.choices import weakest
from evaluator.clerk import Clerk, Entry
from evaluator.contest import Field, billed
from evaluator.fleet import Fleet
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.judging import Judged
from evaluator.pace import Pace
from evaluator.ranges import exact
from evaluator.shortlist import BEYOND_LIMIT, Picked, Race, Shortlist, race_of, told
from evaluator.spending import MILLION
from evaluator.states import trainable_params
from evaluator.units import SECONDS_PER_HOUR
from evaluator.weights import stored_bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """Places of a ranking that one page shows, in its order, row 0 not among them.

    `aside` holds places that no page shows, by reason.
    """

    shown: Sequence[int] = ()
    with_single: bool = True
    aside: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranking:
    """`rows` have one element for each place; row 0 is the best single GPU, where there is one.

    `asked` marks the offers that were looked at, `inside` those of them in a wanted region.
    """

    workload: Workload
    race: Race
    rows: Field
    asked: Column
    inside: Column
    now: datetime | None
    _kept: dict[str, Column] = field(default_factory=dict)

    @classmethod
    def of(
        cls, workload: Workload, fleet: Fleet, judged: Judged, among: Column, now: datetime | None
    ) -> Ranking:
        race, inside = race_of(workload, fleet, judged, among)
        return cls(workload, race, race.ordered(), among, inside, now)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def _judged(self) -> Judged:
        return self.race.choices.judged

    # --- what is shown

    def shortlist(self, cut: Cut) -> Shortlist:
        """The cut written out, with ranks 0 and 1: the answer stands in one of them."""
        race = replace(self.race, hidden=Counter(self.race.hidden))
        parts = race.beside(self._entries(self._on_page(cut)))
        self._move_aside(race, parts, cut)
        ranks = [rank for rank in sorted({0, 1, *cut.shown}) if rank < len(self)]
        rows = tuple(map(self.written, ranks))
        return told(race, self._clerk(), self.asked, replace(parts, rows=[]), rows)

    def _on_page(self, cut: Cut) -> list[int]:
        top = [0] if cut.with_single and len(self) else []
        return [*top, *cut.shown]

    def _move_aside(self, race: Race, parts: Picked, cut: Cut) -> None:
        """Counts offers under the reason for which no page shows them, each once."""
        sizes = race.sizes()
        sizes[[entry.offer for entry in parts.entries]] = 0
        for reason, places in cut.aside.items():
            aside = np.zeros(len(sizes), dtype=bool)
            aside[self.rows.offer[places]] = True
            count = int(sizes[aside].sum())
            sizes[aside] = 0
            race.hide(reason, count)
            race.hide(BEYOND_LIMIT, -count)

    def _entries(self, places: Sequence[int]) -> list[Entry]:
        narrowest = self.race.choices.narrowest(self.rows.case[places])
        chosen = (self.rows.offer[places], self.rows.plan[places], narrowest)
        return [Entry(*map(int, row)) for row in zip(*chosen, strict=True)]

    def written(self, place: int) -> Candidate:
        """Row 0 is the plan on one GPU whatever else would do: no narrower one stands beside it."""
        (entry,) = self._entries([place])
        return self._clerk().candidate(entry if place else replace(entry, narrowest=None), place)

    def _clerk(self) -> Clerk:
        race = self.race
        return Clerk(self.workload, race.fleet, race.choices, race.terms, self.inside, self.now)

    def briefs(self, places: Sequence[int]) -> tuple[Candidate, ...]:
        """Rows with their machine, plan and price alone, for a mention."""
        pairs, clerk = zip(self._entries(places), places, strict=True), self._clerk()
        return tuple(clerk.brief(entry, place) for entry, place in pairs)

    def place_of(self, offer: str, plan: str) -> int:
        """Of the last row that shows a plan by its key on an offer by its key; -1 is none."""
        places = self._places_on([offer])
        named = np.array([one.key == plan for one in self._judged.plans], dtype=bool)
        places = places[named[self.rows.plan[places]]]
        return int(places[-1]) if len(places) else -1

    def places_on(self, offers: Collection[str]) -> list[int]:
        """Of all rows on offers by their keys."""
        found: list[int] = self._places_on(list(offers)).tolist()
        return found

    def _places_on(self, offers: Sequence[str]) -> Column:
        held = np.isin(self.race.fleet.keys, np.array(offers, dtype=np.str_))
        return np.flatnonzero(held[self.rows.offer])

    # --- what the columns hold

    @property
    def offer(self) -> Column:
        return self.rows.offer

    @property
    def hardware(self) -> Column:
        """Equal for rows that show the same plan on the same hardware."""
        found: Column = self._machine * len(self._judged.plans) + self.rows.plan
        return found

    @property
    def _machine(self) -> Column:
        found: Column = self.race.fleet.machine[self.rows.offer]
        return found

    @property
    def _kind(self) -> Column:
        found: Column = self._judged.kind[self.rows.case]
        return found

    def plans(self) -> tuple[list[str], Column]:
        """Labels of all plans, and the number of each row's."""
        return [plan.label for plan in self._judged.plans], self.rows.plan

    def column(self, name: str) -> Column:
        """Numbers by place, NaN is unknown. Ranges are told by their worse end."""
        if name not in self._kept:
            self._kept[name] = np.asarray(getattr(self, f"_{name}")(), dtype=float)
        return self._kept[name]

    def _status(self) -> Column:
        return self.rows.status

    def _evidence(self) -> Column:
        hardware = self.race.fleet.hardware
        return weakest(self._judged, hardware, self.rows.case, self.rows.plan)

    def _gpus(self) -> Column:
        return self._judged.gpus[self.rows.plan]

    def _hourly(self) -> Column:
        return np.where(self.rows.unranked, np.nan, self.rows.cost)

    def _memory(self) -> Column:
        """Bytes per GPU."""
        firsts, number = alike(self.rows.plan, self._kind)
        return np.array([self._needed(first) for first in firsts])[number]

    def _needed(self, place: int) -> float:
        plan, kind = self.rows.plan[place], self._kind[place]
        usable = self.race.fleet.hardware.kinds[kind].usable_bytes_per_gpu.value
        found = self._judged.book.fit(self._judged.plans[plan], usable).needed
        return np.nan if found is None else found.high

    @property
    def _pace(self) -> Pace:
        return self._judged.clock.paces(self.rows.plan, self._kind)

    def _rate(self) -> Column:
        """Tokens/s."""
        return self._pace.rate

    def _token(self) -> Column:
        """Seconds per token of a server."""
        return self._judged.clock.slowest("tpot", self.rows.plan, self._kind)

    def _per_token(self) -> Column:
        """Hours per token of a training."""
        found: Column = 1 / (self.column("rate") * SECONDS_PER_HOUR)
        return found

    def _hours(self) -> Column:
        """To the end of a job that has one."""
        work = self._pace.work
        return self.race.choices.hours(self.rows.case, self.rows.plan, work, self.rows.spot)

    def _per_million(self) -> Column:
        cost: Column = self._hourly() / (self.column("rate") * SECONDS_PER_HOUR) * MILLION
        return cost

    def _finish(self) -> Column:
        """Cost to finish: machine time, storage and what leaves."""
        hours = self.column("hours")
        machines = self._hourly() * billed(self.rows, hours, self.workload.costs)
        per_hour, once = self._besides()
        cost: Column = machines + per_hour * hours + once
        return cost

    def _besides(self) -> tuple[Column, Column]:
        """Per rented hour and once, by the number of machines that each plan spans."""
        spans, number = np.unique(self._judged.nodes[self.rows.plan], return_inverse=True)
        held = [besides(self._job(int(span))) for span in spans]
        per_hour, once = (np.array([one[at] for one in held])[number] for at in (0, 1))
        return per_hour, once

    def _job(self, machines: int) -> Job:
        kind, workload = self.race.fleet.hardware.kinds[0], self.workload
        size, trained = stored_bytes(workload), trainable_params(workload)
        return Job(workload, kind, exact(0.0), size, trained, machines)

    def _warnings(self) -> Column:
        """How many findings may change the decision: rows of one machine, plan and doubt share."""
        firsts, number = alike(self.hardware, self.race.fleet.doubt[self.rows.offer])
        return np.array([self._warned(first) for first in firsts])[number]

    def _warned(self, place: int) -> int:
        (made,) = self.briefs([place])
        return len(replace(made, findings=findings_on(made, self.now)).warnings)


def alike(one: Column, other: Column) -> tuple[list[int], Column]:
    """The first place of each pair of numbers that two columns hold, and each place's pair."""
    pairs = one.astype(np.int64) * (int(other.max(initial=0)) + 1) + other
    _, firsts, number = np.unique(pairs, return_index=True, return_inverse=True)
    return firsts.tolist(), number
