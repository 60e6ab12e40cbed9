"""A workload and a visitor's demands answered: the ranking, one page of it, and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from evaluator.candidates import Candidate
from evaluator.economics import DEFAULT_CURRENCY, terms_of
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.shortlist import Shortlist
from marketplace import evaluations
from marketplace.cost_scatter import CostScatter
from marketplace.evaluations import Asking, Viewer
from marketplace.fleets import OFFER_COLUMNS, Offered
from marketplace.forms import Demands
from marketplace.views.axes import Axes, axes_of, scatter_of
from marketplace.views.columns import Column, ColumnForm, sort_of
from marketplace.views.ranked import (
    RANK,
    Asked,
    Ranked,
    Values,
    arranged,
    columns_for,
    sliced,
)

MOST_WRITTEN = 500
"""Best ranked rows that are written out where a column of the verdict filters or sorts."""
MARGIN = 2
"""Row 0, and the row that tells whether another page follows."""
UNSAID = Axes("Time", "", "Cost", "")
"""Before there is a workload that could say what they mean."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`best` is what the first sentence recommends; None where nothing serves.

    `widest` is how many of the best ranked rows were looked through; None is all.
    """

    workload: Workload
    result: Shortlist
    ranked: Ranked
    axes: Axes
    best: Candidate | None
    scatter: CostScatter | None
    demands: Mapping[str, Any]
    widest: int | None = None
    offered: Offered | None = None

    def machines(self, rows: Iterable[Candidate]) -> dict[str, Machine]:
        """Behind each row, by the key of its offering: as the viewer may know it."""
        held = [(row.offering.key, row.offering.configuration) for row in rows]
        return {key: self.offered.machine(name) for key, name in held} if self.offered else {}


class Question:
    """A workload form and the columns beside it, both read from the same data."""

    def __init__(self, form: Demands, data: Mapping[str, Any]) -> None:
        self.form = form
        self.workload = form.demanded(form.cleaned_data["workload"]) if form.is_valid() else None
        self.axes = self._axes()
        self.columns = ColumnForm(data, columns_for(self.axes))
        self.sort, self.backwards = sort_of(data.get("sort", ""), self._orders(), RANK)
        self.data = data

    def _axes(self) -> Axes:
        if self.workload is None:
            return UNSAID
        return axes_of(self.workload, terms_of(self.workload).currency or DEFAULT_CURRENCY)

    def _orders(self) -> set[str]:
        return {RANK, "", *(one.key for one in self.columns.columns)}

    @property
    def understood(self) -> tuple[str, ...]:
        """The key of the order, unless it names no column."""
        return ("sort",) if self.data.get("sort", "").removeprefix("-") in self._orders() else ()

    @property
    def asked(self) -> Asked:
        return Asked(
            filters={k: v for k, v in self.columns.filters.items() if k not in OFFER_COLUMNS},
            sort=self.sort,
            backwards=self.backwards,
            grouped=bool(self.form.cleaned_data.get("group")),
            after=self.data.get("after", ""),
            size=self.form.rows,
        )

    @property
    def drawn(self) -> list[Column]:
        shown = self.columns.shown
        return [one for one in self.columns.columns if one.key in shown]

    def answer(self, viewer: Viewer) -> Answer | None:
        """None where a field cannot be used: dropping it would answer another question."""
        if self.workload is None or self.columns.errors:
            return None
        now, asked = timezone.now(), self.asked
        offered = evaluations.offered_to(viewer)
        result = evaluations.ranked_of(self.workload, offered, self._asking(asked), now)
        plain = sliced(result.rows, asked) if asked.plain else None
        ranked = plain or arranged(result.rows, asked, Values(self.axes, now))
        return Answer(
            workload=self.workload,
            result=result,
            ranked=ranked,
            axes=self.axes,
            best=best_of(result),
            scatter=scatter_of(ranked.shown, self.axes),
            demands=self.form.cleaned_data,
            widest=None if asked.plain else MOST_WRITTEN,
            offered=offered,
        )

    def _asking(self, asked: Asked) -> Asking:
        """What an offer says of itself is asked of the whole catalog; the rest, of rows."""
        filters = self.columns.filters
        return Asking(
            filters={key: node for key, node in filters.items() if key in OFFER_COLUMNS},
            model=str(self.form.cleaned_data["gpu"]),
            limit=asked.size + MARGIN if asked.plain else MOST_WRITTEN,
            skip=asked.skip if asked.plain else 0,
        )


def best_of(result: Shortlist) -> Candidate | None:
    """The answer: one GPU where one is enough, else the first candidate that serves.

    A price that can be compared comes first: without one nobody can say what the answer costs.
    """
    serving = [one for one in (*result.rows, *result.unranked) if one.status.serves]
    return min(serving, key=lambda one: not one.rate.ranked, default=None)
