"""A workload and a visitor's demands answered: the ranking, one page of it, and its picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from evaluator.candidates import Candidate
from evaluator.economics import DEFAULT_CURRENCY, terms_of
from evaluator.jobs import Workload
from evaluator.shortlist import Shortlist
from marketplace import evaluations, listings
from marketplace.cost_scatter import CostScatter
from marketplace.evaluations import Viewer
from marketplace.forms import Demands
from marketplace.views.axes import Axes, axes_of, scatter_of
from marketplace.views.columns import Column, ColumnForm, sort_of
from marketplace.views.ranked import RANK, Asked, Ranked, Values, arranged, columns_for

EVERY_ROW = 10**9
UNSAID = Axes("Time", "", "Cost", "")
"""Before there is a workload that could say what they mean."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`best` is what the first sentence recommends; None where nothing serves."""

    workload: Workload
    result: Shortlist
    ranked: Ranked
    axes: Axes
    best: Candidate | None
    scatter: CostScatter | None
    demands: Mapping[str, Any]


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
            filters=self.columns.filters,
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
        rows = listings.current().filter(gpu_model=model) if (model := self._model()) else None
        result = evaluations.shortlist_for(
            self.workload, rows, EVERY_ROW, keep=False, viewer=viewer
        )
        ranked = arranged(result.rows, self.asked, Values(self.axes, timezone.now()))
        return Answer(
            workload=self.workload,
            result=result,
            ranked=ranked,
            axes=self.axes,
            best=best_of(result),
            scatter=scatter_of(ranked.shown, self.axes),
            demands=self.form.cleaned_data,
        )

    def _model(self) -> str:
        return str(self.form.cleaned_data["gpu"])


def best_of(result: Shortlist) -> Candidate | None:
    """The answer: one GPU where one is enough, else the first candidate that serves.

    A price that can be compared comes first: without one nobody can say what the answer costs.
    """
    serving = [one for one in (*result.rows, *result.unranked) if one.status.serves]
    return min(serving, key=lambda one: not one.rate.ranked, default=None)
