"""What a row of a table is told of the page around it, in values that never change."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from django import template

from evaluator.candidates import Candidate
from evaluator.verdict import PlanVerdict

register = template.Library()


class Relative(NamedTuple):
    """Another offer of the hardware of a row, as the row names it."""

    key: str
    rank: int | None
    provider: str
    cost_per_hour: Decimal | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class Relatives:
    """How many other offers there are of the hardware of a row, and the first of them."""

    total: int = 0
    rows: tuple[Relative, ...] = ()

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


ALONE = Relatives()


@register.filter
def of_row(kin: Mapping[str, Relatives], candidate: Candidate) -> Relatives:
    """What a page keeps beside a row, by the row's own name in an address."""
    held = kin.get(f"{candidate.offering.key}:{candidate.plan.plan.key}") if kin else None
    return held or ALONE


def relative(one: Candidate) -> Relative:
    currency = one.rate.quote.currency if one.rate.quote else ""
    return Relative(one.offering.key, one.rank, one.offering.provider, one.cost_per_hour, currency)


@dataclass(frozen=True, slots=True)
class Rungs:
    """Some plans of one verdict. A piece keeps them by what was judged and by their names: to
    compare all that they say would take as long as to write it.
    """

    plans: tuple[PlanVerdict, ...]
    kept_as: tuple[str, ...]


@register.filter
def of_verdict(plans: Iterable[PlanVerdict], judged: str) -> Rungs:
    """`judged` names workload and machine as every verdict sees them."""
    held = tuple(plans)
    return Rungs(held, (judged, *(one.plan.key for one in held)))


@register.filter
def same(one: object, other: object) -> bool:
    return one == other


@register.filter
def among(name: str, names: Container[str]) -> bool:
    return name in names
