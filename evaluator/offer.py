"""Host items of the offer: what its rate covers, and whether all of it can be had at once."""

from __future__ import annotations

from functools import lru_cache

from evaluator.checklist import Asked, HostItem
from evaluator.facts import Grade
from evaluator.machine import Availability
from evaluator.prices import Basis, Quote


def offer_items(
    quote: Quote | None, availability: Availability, quantity: int | None, rentals: int
) -> tuple[HostItem, ...]:
    """What the offer must say: what the rate covers, and that all of it can be had at once."""
    basis = quote.basis if quote else None
    return (basis_item(basis), available_item(availability, quantity, rentals))


RATE = Asked("rate basis", (), "Ask whether the rate covers the whole machine.")


@lru_cache(maxsize=16)
def basis_item(basis: Basis | None) -> HostItem:
    if basis is None:
        return RATE.unknown("No price is published.", remedy="Ask for a quote.")
    if basis is Basis.UNKNOWN:
        return RATE.unknown("The rate may be per machine or per GPU.")
    covered = "GPU" if basis is Basis.GPU else basis.value
    return RATE.passes(f"The rate is per {covered}.", Grade.DECLARED)


AVAILABILITY = "availability of the whole"
STOCK = Asked(AVAILABILITY, (), "Ask whether all of it can be had together, and from when.")


@lru_cache(maxsize=1024)
def available_item(availability: Availability, quantity: int | None, rentals: int) -> HostItem:
    """Available is not reserved: a pass says only that the catalog offered enough of it."""
    said = Grade.DECLARED
    if availability is Availability.SOLD_OUT:
        return STOCK.fails("The catalog says it is sold out.", said, "Wait, or ask elsewhere.")
    if quantity is not None and quantity < rentals:
        reason = f"{rentals} are needed at once, {quantity} are offered."
        return STOCK.fails(reason, said, "Take a plan on fewer machines, or ask for more of them.")
    if availability is Availability.AVAILABLE and (quantity is not None or rentals == 1):
        return STOCK.passes("The catalog says available, which is not reserved.", said)
    words = f"The catalog says {availability.replace('_', ' ')}"
    return STOCK.unknown(f"{words}; {rentals} needed at once.", said)
