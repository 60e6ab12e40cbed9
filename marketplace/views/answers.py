"""A workload and a visitor's demands answered: the ranking, one page of it, and its picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from evaluator.candidates import Candidate
from evaluator.economics import DEFAULT_CURRENCY, terms_of
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.shortlist import Shortlist
from marketplace import rankings
from marketplace.cost_scatter import CostScatter
from marketplace.fleets import OFFER_COLUMNS, Offered
from marketplace.forms import Demands
from marketplace.rankings import Asking, Viewer
from marketplace.views.axes import Axes, axes_of, scatter_of
from marketplace.views.columns import Column, ColumnForm, sort_of
from marketplace.views.ranked import (
    RANK,
    Asked,
    Order,
    Page,
    Ranked,
    Values,
    columns_for,
    sliced,
)

MARGIN = 2
"""Row 0, and the row that tells whether another page follows."""
FILTERS = ("gpu", "regions", "max_price", "min_grade")
"""Fields of the form that take listings out."""
UNSAID = Axes("Time", "", "Cost", "")
"""Before there is a workload that could say what they mean."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`best` is what the first sentence recommends; None where nothing serves. `filtered` tells
    that some listings or rows were not asked for.
    """

    workload: Workload
    result: Shortlist
    ranked: Ranked
    axes: Axes
    best: Candidate | None
    scatter: CostScatter | None
    demands: Mapping[str, Any]
    offered: Offered
    filtered: bool

    def machines(self, rows: Iterable[Candidate]) -> dict[str, Machine]:
        """Behind each row, by the key of its offering: as the viewer may know it."""
        held = [(row.offering.key, row.offering.configuration) for row in rows]
        return {key: self.offered.machine(name) for key, name in held}


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
        offered = rankings.offered_to(viewer)
        result, ranked = self._page(self.workload, offered, timezone.now())
        return Answer(
            workload=self.workload,
            result=result,
            ranked=ranked,
            axes=self.axes,
            best=best_of((*ranked.leading, *self._unfiltered(result.unranked))),
            scatter=scatter_of(ranked.shown, self.axes),
            demands=self.form.cleaned_data,
            offered=offered,
            filtered=self._filtered,
        )

    @property
    def _filtered(self) -> bool:
        asked = self.form.cleaned_data
        return bool(self.columns.filters) or any(asked[name] for name in FILTERS)

    def _unfiltered(self, unranked: Sequence[Candidate]) -> Sequence[Candidate]:
        """No column of a verdict is asked of them: with such a filter they are no answer."""
        return () if self.asked.filters else unranked

    def _page(
        self, workload: Workload, offered: Offered, now: datetime
    ) -> tuple[Shortlist, Ranked]:
        """The ranking's own order needs its first rows alone; any other looks at every row."""
        asked = self.asked
        asking = self._asking(asked)
        if asked.plain:
            result = rankings.ranked_of(workload, offered, asking, now)
            return result, sliced(result.rows, asked)
        key = (rankings.question_of(workload, asking, now), repr(asked))
        return offered.answer_to(key, lambda: self._cut(workload, offered, asking, now))

    def _cut(
        self, workload: Workload, offered: Offered, asking: Asking, now: datetime
    ) -> tuple[Shortlist, Ranked]:
        asked = self.asked
        ranking = rankings.ranking_of(workload, offered, asking, now)
        values = Values(self.axes, now, offered, ranking)
        key = (rankings.question_of(workload, asking.whole, now), repr(asked.whole))
        order = offered.ordered(key, lambda: Order.of(asked, values))
        page = Page.of(asked, order, ranking)
        result = rankings.cut_of(ranking, page.cut, offered, asking, now)
        return result, page.ranked(result, ranking)

    def rows_on(self, found: Answer, keys: Collection[str]) -> list[Candidate]:
        """All ranked rows on some listings, however far down they stand."""
        asking = self._asking(self.asked)
        ranking = rankings.ranking_of(found.workload, found.offered, asking, timezone.now())
        return [ranking.written(place) for place in ranking.places_on(keys)]

    def _asking(self, asked: Asked) -> Asking:
        """What an offer says of itself is asked of the whole catalog; the rest, of rows."""
        filters = self.columns.filters
        return Asking(
            filters={key: node for key, node in filters.items() if key in OFFER_COLUMNS},
            model=str(self.form.cleaned_data["gpu"]),
            limit=asked.size + MARGIN,
            skip=asked.skip,
        )


def best_of(rows: Iterable[Candidate]) -> Candidate | None:
    """The answer: one GPU where one is enough, else the first candidate that serves.

    A price that can be compared comes first: without one nobody can say what the answer costs.
    """
    serving = [one for one in rows if one.status.serves]
    return min(serving, key=lambda one: not one.rate.ranked, default=None)
