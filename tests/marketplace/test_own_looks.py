"""A viewer's machine as a page finds it in what it has read, against what the database says."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User

from evaluator.facts import RanBy
from marketplace.evidence import Origin, expire, keep, preview, review, visible_to
from marketplace.machines import machine_of
from marketplace.models import Evidence, Listing
from marketplace.models.evidence import Change, EvidenceState
from marketplace.own_looks import own_looks
from marketplace.rented import counting_facts, own_machines, pending_among
from tests.marketplace.test_evidence import PAIRS, SWITCHED, sample
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


def put(listing: Listing, user: User, name: str) -> Evidence:
    return keep(listing, preview(listing, sample(name)), Origin(user, RanBy.RENTER))


@pytest.mark.parametrize("state", ["pending", "accepted", "rejected", "withdrawn", "expired"])
@pytest.mark.parametrize("names", [[PAIRS], [PAIRS, SWITCHED]])
def test_it_is_what_the_database_says(
    eight: Listing, ada: User, names: list[str], state: str
) -> None:
    bob = User.objects.create_user("bob")
    review(put(eight, bob, SWITCHED).pk, EvidenceState.ACCEPTED, None)
    row, *_ = (put(eight, ada, name) for name in names)
    if state == "expired":
        expire([row], Change.REBOOT)
    elif state != "pending":
        review(row.pk, EvidenceState(state), ada, "because")

    own = own_looks(visible_to(ada, eight), ada)
    rented = own_machines(ada, [eight.pk]).get(eight.pk)

    assert (own.rented if own else None) == rented
    if own and rented:
        assert own.pending == bool(pending_among([rented]))
        assert own.facts == list(counting_facts(rented))
        assert machine_of(eight, own.rented, seen=own.facts) == machine_of(eight, rented)


def test_a_stranger_has_none(eight: Listing, ada: User) -> None:
    review(put(eight, ada, PAIRS).pk, EvidenceState.ACCEPTED, None)
    Evidence.objects.update(uploaded_by=None)
    assert own_looks(visible_to(AnonymousUser(), eight), AnonymousUser()) is None
