"""The machine that a viewer rented under a listing, found in evidence that a page has read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from marketplace.models import Evidence, Fact, RentedMachine
from marketplace.models.evidence import EvidenceState
from marketplace.rented import in_order


@dataclass(frozen=True, slots=True)
class OwnLooks:
    """All looks at one machine that its renter is judged by, and how many `others` there are."""

    rented: RentedMachine
    looks: tuple[Evidence, ...]
    others: int = 0

    @property
    def facts(self) -> list[Fact]:
        """As `rented.counting_facts` reads them."""
        return in_order(fact for look in self.looks for fact in look.facts.all())

    @property
    def pending(self) -> bool:
        """As `rented.pending_among` asks it."""
        return any(look.state == EvidenceState.PENDING for look in self.looks)


def own_looks(held: Iterable[Evidence], viewer: User | AnonymousUser) -> OwnLooks | None:
    """`held` is all evidence of a listing that the viewer may see, with its machines and facts.

    As `rented.own_machines`: the machine that was rented last, where evidence of it stands.
    """
    own = [one for one in held if one.uploaded_by_id == viewer.pk and one.counts]
    if not viewer.is_authenticated or not own:
        return None
    rented = max((one.machine for one in own), key=lambda one: (one.opened_at, one.pk))
    others = len({one.machine_id for one in own} - {rented.pk})
    return OwnLooks(rented, tuple(one for one in own if one.machine_id == rented.pk), others)
