"""Who has evidence of some machines sees the same offers as all, with those machines in them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluator.facts import RanBy
from evaluator.workload import parse_workload
from marketplace import rankings
from marketplace.evidence import Origin, expire, keep, preview, review
from marketplace.models import Evidence, Listing
from marketplace.models.evidence import Change, EvidenceState
from marketplace.rankings import Asking, offered_to, ranked_of, shortlist_for
from tests.marketplace.test_evidence import PAIRS, SWITCHED, sample
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
HUGE = parse_workload(
    {"name": "t", "task": "serve", "model": {"preset": "llama-3.1-405b"}, "weights_format": "fp8"}
)


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def eight() -> Listing:
    source = make_source()
    make_listing(source, "other", gpu_count=4)
    return make_listing(source)


def put(listing: Listing, user: User, name: str) -> Evidence:
    return keep(listing, preview(listing, sample(name)), Origin(user, RanBy.RENTER))


def test_they_rank_as_if_all_had_been_read_for_one(eight: Listing, ada: User) -> None:
    put(eight, ada, PAIRS)
    own = ranked_of(HUGE, offered_to(ada), Asking(), timezone.now())
    read = shortlist_for(HUGE, keep=False, viewer=ada)
    assert (own.rows, own.near_misses, own.total) == (read.rows, read.near_misses, read.total)
    assert own.rows != ranked_of(HUGE, offered_to(None), Asking(), timezone.now()).rows


def test_they_are_made_once_for_what_is_known(
    eight: Listing, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(eight, ada, PAIRS)
    first = offered_to(ada)
    monkeypatch.setattr(rankings, "offers_on", lambda *_: pytest.fail("read again"))
    with CaptureQueriesContext(connection) as few:
        assert offered_to(ada) is first
    assert len(few) < 10


def test_new_evidence_makes_them_anew(eight: Listing, ada: User) -> None:
    put(eight, ada, PAIRS)
    first = offered_to(ada)
    put(eight, ada, SWITCHED)
    assert offered_to(ada) is not first


def test_others_see_what_is_declared(eight: Listing, ada: User) -> None:
    put(eight, ada, PAIRS)
    bob = User.objects.create_user("bob")
    offered_to(ada)
    assert offered_to(bob) is offered_to(None) is not offered_to(ada)
    assert offered_to(bob).machine(eight.configuration).topology.value is None


@pytest.mark.parametrize("change", ["expired", "rejected", "fact"])
def test_what_happens_to_evidence_is_seen_at_once(eight: Listing, ada: User, change: str) -> None:
    row = put(eight, ada, PAIRS)
    before = offered_to(ada)
    if change == "expired":
        expire([row], Change.REBOOT)
    elif change == "rejected":
        review(row.pk, EvidenceState.REJECTED, None, "unclear")
    else:
        row.facts.filter(name="topology").delete()
    read = shortlist_for(HUGE, keep=False, viewer=ada)
    own = ranked_of(HUGE, offered_to(ada), Asking(), timezone.now())
    assert (own.rows, own.near_misses, own.total) == (read.rows, read.near_misses, read.total)
    assert offered_to(ada) is not before


def test_a_later_visit_asks_of_evidence_once(eight: Listing, ada: User) -> None:
    put(eight, ada, PAIRS)
    offered_to(ada)
    with CaptureQueriesContext(connection) as few:
        offered_to(ada)
    assert len(few) == 2  # the catalog's version, and what the viewer brought
