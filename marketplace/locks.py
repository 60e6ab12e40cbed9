"""A curator's word, which outweighs the catalog's until the end of its last day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_date

from evaluator.prices import Basis, Purchase, Quote, TimeUnit

PRICE = "price_per_hour"
"""The attribute of a locked price: what the whole rental costs for an hour on demand."""
PRICE_TEXT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ([A-Z]{3})")


def lock_in(corrections: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The lock on an attribute while it holds. It says {"value", "source", …}."""
    lock: Mapping[str, Any] | None = corrections.get(name) or None
    if lock is None:
        return None
    last = day_of(lock.get("until"))
    return None if last and timezone.now().date() > last else lock


def day_of(text: Any) -> date | None:
    """A day such as 2027-01-31; None for anything else."""
    try:
        return parse_date(text) if isinstance(text, str) else None
    except ValueError:
        return None


def is_price(text: Any) -> bool:
    """Whether it is an amount above 0 and a currency, such as "18.50 USD"."""
    found = PRICE_TEXT.fullmatch(text) if isinstance(text, str) else None
    return found is not None and Decimal(found[1]) > 0


def locked_price(corrections: Mapping[str, Any]) -> Quote | None:
    """The price that a curator locked. None without a lock, and where it believes no price."""
    lock = lock_in(corrections, PRICE)
    found = PRICE_TEXT.fullmatch(str(lock.get("value"))) if lock else None
    if lock is None or found is None:
        return None
    words = f"locked by {lock.get('source', 'a curator')}"
    return Quote(Decimal(found[1]), found[2], TimeUnit.HOUR, Basis.MACHINE, words=words)


def with_lock(quotes: Iterable[Quote], corrections: Mapping[str, Any]) -> tuple[Quote, ...]:
    """The quotes, a locked price in place of all on-demand ones."""
    if lock_in(corrections, PRICE) is None:
        return tuple(quotes)
    others = (one for one in quotes if one.purchase is not Purchase.ON_DEMAND)
    locked = locked_price(corrections)
    return (locked, *others) if locked else tuple(others)
