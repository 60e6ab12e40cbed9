"""What a viewer may know of the machines that others rented: the door /evidence, and pictures."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client

from evaluator.facts import RanBy
from evaluator.machine import LinkClass
from marketplace.evidence import review, visible_to
from marketplace.models import Evidence, Listing
from marketplace.models.evidence import EvidenceState
from marketplace.seen_machines import accepted_machines, machines_seen
from tests.marketplace.test_evidence import CUT, PAIRS, SWITCHED, put
from tests.marketplace.test_views_evidence import signed_in, text
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada-of-the-lab")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob")


def accept(kept: Evidence) -> None:
    review(kept.pk, EvidenceState.ACCEPTED, None)


@pytest.mark.parametrize("address", ["/evidence", "/evidence/"])
def test_the_door_is_open_and_says_that_nothing_was_seen(client: Client, address: str) -> None:
    page = text(client, address)
    assert "No machine was seen yet" in page
    assert 'aria-current="page">Evidence</a>' in page


def test_the_index_shows_own_pending_evidence_to_its_uploader_alone(
    client: Client, eight: Listing, ada: User, bob: User
) -> None:
    put(eight, ada, PAIRS)
    mine = text(signed_in(ada), "/evidence/")
    assert "1 machine of 1 listing was seen; 1 contradicts the catalog." in mine
    assert "yours alone until a curator accepts it" in mine
    assert "measured NVLink between pairs against declared NVSwitch between all GPUs" in mine
    for other in (signed_in(bob), client):
        assert "No machine was seen yet" in text(other, "/evidence/")


def test_outputs_of_one_machine_that_disagree_contradict_no_catalog(ada: User) -> None:
    silent = make_listing(make_source(), link="", words={})
    first = put(silent, ada, PAIRS)
    put(silent, ada, SWITCHED, machine=first.machine)
    mine = text(signed_in(ada), "/evidence/")
    assert "1 machine of 1 listing was seen; 1 contradicts itself." in mine
    assert "measured NVLink against measured NVLink between pairs" in mine
    page = text(signed_in(ada), f"/evidence/listings/{silent.pk}/")
    assert "1 machine of this hardware contradicts itself." in page


def test_two_kinds_of_contradiction_are_told_as_two(eight: Listing, ada: User) -> None:
    put(eight, ada, PAIRS)
    silent = make_listing(eight.source, "silent", link="")
    first = put(silent, ada, PAIRS)
    put(silent, ada, SWITCHED, machine=first.machine)
    mine = text(signed_in(ada), "/evidence/")
    assert "2 machines of 2 listings were seen; 2 contradict the catalog or themselves." in mine


def test_accepted_evidence_is_shown_to_all_without_its_uploader(
    client: Client, eight: Listing, ada: User, bob: User
) -> None:
    accept(put(eight, ada, PAIRS))
    for other in (signed_in(bob), client):
        for address in ("/evidence/", eight.get_absolute_url()):
            page = text(other, address)
            assert "ada-of-the-lab" not in page
            assert "by the renter, accepted" in page
            assert 'href="/evidence/1/"' not in page


@pytest.mark.parametrize("state", ["rejected", "withdrawn"])
def test_what_was_not_accepted_or_taken_back_is_told_to_nobody_else(
    client: Client, eight: Listing, ada: User, state: str
) -> None:
    put(eight, ada, PAIRS)
    Evidence.objects.update(state=state)
    assert "No machine was seen yet" in text(client, "/evidence/")
    (own,), _ = machines_seen(ada)
    assert own.link is None
    assert not own.contradicts


def test_contradictions_stand_on_top(ada: User) -> None:
    source = make_source()
    put(make_listing(source, "first"), ada, PAIRS)
    put(make_listing(source, "second"), ada, SWITCHED)
    found, total = machines_seen(ada)
    assert [one.link for one in found] == [LinkClass.NVLINK_PAIRS, LinkClass.NVLINK]
    assert total == 2


def test_a_pending_look_at_an_accepted_machine_stays_its_uploaders(
    eight: Listing, ada: User, bob: User
) -> None:
    first = put(eight, ada, SWITCHED)
    accept(first)
    put(eight, ada, PAIRS, machine=first.machine)
    (others,), _ = machines_seen(bob)
    (own,), _ = machines_seen(ada)
    assert (others.link, others.contradicts, others.looks) == (LinkClass.NVLINK, False, 1)
    assert (own.contradicts, own.looks) == (True, 2)
    (shown,) = accepted_machines(eight, visible_to(bob, eight), None)
    assert shown.links is not None
    assert "Every pair has NV" in shown.links.description


def test_others_see_the_matrix_of_an_accepted_machine_as_one_machines_alone(
    eight: Listing, ada: User, bob: User
) -> None:
    kept = put(eight, ada, PAIRS)
    address = eight.get_absolute_url()
    assert "Seen on one machine" not in text(signed_in(bob), address)
    accept(kept)
    page = text(signed_in(bob), address)
    assert f"Seen on one machine: machine {kept.machine_id}" in page
    assert "not the listing's own grade" in page.replace("&#x27;", "'")
    assert "GPUs 0 and 1: NV12" in page
    assert "claimed" in page
    assert "contradicted" not in page.partition("<footer")[0]
    assert "Seen on one machine" not in text(signed_in(ada), address)


def test_no_two_elements_of_a_page_with_several_pictures_share_an_id(
    eight: Listing, ada: User, bob: User
) -> None:
    accept(put(eight, ada, PAIRS))
    accept(put(eight, User.objects.create_user("eve"), SWITCHED))
    put(eight, bob, SWITCHED)
    page = text(signed_in(bob), eight.get_absolute_url())
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert page.count("<title>Link") + page.count('-title">Link of every pair') >= 3
    assert sorted({one for one in ids if ids.count(one) > 1}) == []


def test_a_paste_of_another_machine_is_a_contradiction_of_its_uploader_alone(
    eight: Listing, ada: User, bob: User
) -> None:
    put(eight, ada, "2-gpus-nvlink")
    (own,), _ = machines_seen(ada)
    assert own.contradicts
    assert machines_seen(bob) == ([], 0)
    assert machines_seen(AnonymousUser()) == ([], 0)


def test_a_provider_and_a_renter_are_told_apart(client: Client, eight: Listing, ada: User) -> None:
    kept = put(eight, ada, CUT)
    Evidence.objects.update(ran_by=RanBy.PROVIDER.value)
    accept(kept)
    assert "by the provider, accepted" in text(client, "/evidence/")


def test_the_machine_rented_last_judges_and_the_page_says_that_others_do_not(
    eight: Listing, ada: User
) -> None:
    put(eight, ada, PAIRS)
    alone = text(signed_in(ada), eight.get_absolute_url())
    assert "It was rented last" not in alone
    last = put(eight, ada, "8-gpus-all-reduce")
    page = text(signed_in(ada), eight.get_absolute_url())
    assert f"Judged by what was seen on your machine {last.machine_id}" in page
    assert "It was rented last: your 1 other machine of this listing stands below" in page
    assert f"No pair of GPUs was seen on machine {last.machine_id}." in page
