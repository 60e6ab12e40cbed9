"""What a plan costs per hour on an offering: whole machines at a rate that says all five parts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evaluator.prices import Quote


@dataclass(frozen=True, slots=True)
class Rate:
    """The price that a candidate is shown with.

    `per_hour` is one whole rental for one hour in the quote's currency; None where the quote does
    not say so. `not_ranked_because` is empty exactly when the rate may be compared with others.
    """

    quote: Quote | None
    per_hour: Decimal | None
    not_ranked_because: str = ""

    @property
    def ranked(self) -> bool:
        return not self.not_ranked_because
