"""Speeds that somebody measured, from the paste to the page that holds them to a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evaluator.facts import RanBy
from marketplace.evaluations import keep_workload
from marketplace.evidence import NotKept, Origin, Ran, keep, preview, review
from marketplace.models import Evidence, Listing, MeasuredFigure, Workload
from marketplace.models.evidence import EvidenceState
from tests.pages.catalog import make_listing, make_source
from tests.pages.everything import DOCUMENT

pytestmark = pytest.mark.django_db
SERVED = Path(__file__).parent.parent / "samples" / "evidence" / "engine-serve.txt"
TP2 = Ran("serve-llama-8b", "tp2")


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada")
    client.force_login(user)
    return user


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def text(rate: str = "2000.00") -> str:
    return SERVED.read_text("utf-8").replace("2000.00", rate)


def kept(row: Listing, by: User, rate: str = "2000.00") -> Evidence:
    found = keep(row, preview(row, text(rate)), Origin(by, RanBy.RENTER, ran=TP2))
    review(found.pk, EvidenceState.ACCEPTED, None)
    return found


def test_a_paste_is_shown_kept_and_compared(client: Client, eight: Listing, ada: User) -> None:
    said = words(
        client.post(f"/listings/{eight.pk}/evidence/", {"text": text(), "ran_by": "renter"})
    )
    assert "The output shows 3 speeds. Nothing is stored yet." in said
    form = {"text": text(), "ran_by": "renter", "workload": TP2.workload, "plan": TP2.plan}
    client.post(f"/listings/{eight.pk}/evidence/keep/", form)
    assert MeasuredFigure.objects.count() == 3
    page = words(client.get(f"/evidence/listings/{eight.pk}/"))
    assert "of 3 speeds inside" in page
    assert "2,000 tokens/s" in page
    assert "13.1 ms" in page


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "Name the workload and the plan that ran"),
        ({"workload": "serve-llama-8b", "plan": "tp7"}, "is none of this machine. Expected one of"),
        ({"workload": "nothing", "plan": "tp2"}, "Select a valid choice"),
    ],
)
def test_speeds_without_what_ran_are_not_kept(
    client: Client, eight: Listing, ada: User, given: dict[str, str], expected: str
) -> None:
    form = {"text": text(), "ran_by": "renter", **given}
    response = client.post(f"/listings/{eight.pk}/evidence/keep/", form)
    assert response.status_code == 422
    assert expected in words(response)
    assert not Evidence.objects.exists()


def test_the_page_tells_inside_outside_and_spread(
    client: Client, eight: Listing, ada: User
) -> None:
    predicted = client.get(f"/plans/?listing={eight.pk}&workload={TP2.workload}&plan={TP2.plan}")
    rate = predicted.context["sources"].figures[2].estimate.value
    for value in (rate.typical, rate.low / 2):
        kept(eight, ada, f"{value:.2f}")
    context = client.get(f"/evidence/listings/{eight.pk}/").context
    told = [one.inside for one in context["figures"] if one.metric == "output rate of all GPUs"]
    assert told == [False, True]
    (spread,) = (one for one in context["figure_spreads"] if one.unit == "tokens/s")
    assert (spread.count, spread.low) == (2, pytest.approx(rate.low / 2, rel=1e-3))


def test_pending_speeds_are_their_uploaders_alone(
    client: Client, eight: Listing, ada: User
) -> None:
    keep(eight, preview(eight, text()), Origin(None, RanBy.RENTER, ran=TP2))
    assert client.get(f"/evidence/listings/{eight.pk}/").context["figures"] == []


def test_a_saved_workload_is_named_by_its_owner_and_private_to_others(
    client: Client, eight: Listing, ada: User
) -> None:
    saved = keep_workload(DOCUMENT, ada)
    address = f"/listings/{eight.pk}/evidence/"
    assert "mine (saved)" in words(client.get(address))
    form = {"text": text(), "ran_by": "renter", "workload": saved.slug, "plan": "tp2"}
    client.post(f"{address}keep/", form)
    review(Evidence.objects.get().pk, EvidenceState.ACCEPTED, None)
    own = client.get(f"/evidence/listings/{eight.pk}/").context["figures"]
    assert {one.workload for one in own} == {"mine"}
    assert all(one.predicted for one in own)
    assert "output rate of all GPUs" in words(client.get(Evidence.objects.get().get_absolute_url()))
    client.force_login(User.objects.create_user("bo"))
    page = client.get(f"/evidence/listings/{eight.pk}/")
    assert not any(one.predicted for one in page.context["figures"])
    assert "a workload of its uploader" in words(page)
    assert "mine" not in {one.workload for one in page.context["figures"]}
    response = client.post(f"{address}keep/", form)
    assert response.status_code == 422
    assert "Select a valid choice" in words(response)


def test_an_unreadable_text_without_speeds_stays_refused(eight: Listing, ada: User) -> None:
    shown = preview(eight, "nothing that anybody can read")
    assert not shown.storable
    with pytest.raises(NotKept):
        keep(eight, shown, Origin(ada, RanBy.RENTER, ran=TP2))


def test_a_saved_file_that_is_read_no_more_keeps_its_name(
    client: Client, eight: Listing, ada: User
) -> None:
    saved = keep_workload(DOCUMENT, ada)
    keep(eight, preview(eight, text()), Origin(ada, RanBy.RENTER, ran=Ran(saved.slug, "tp2")))
    Workload.objects.update(document={"task": "of another version"})
    figures = client.get(f"/evidence/listings/{eight.pk}/").context["figures"]
    assert {(one.workload, one.predicted) for one in figures} == {("mine", None)}
