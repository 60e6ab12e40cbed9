"""A long evaluation is asked for, watched and stopped by the one whose it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django_htmx.http import HTMX_STOP_POLLING

from evaluator.fields import InvalidWorkload
from evaluator.workload import workload_presets
from marketplace import evaluations
from marketplace.models import Evaluation, Outbox, Verdict, Workload
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
DOCUMENT = json.dumps(
    {**workload_presets()["serve-llama-8b"], "concurrency": 8, "name": "mine"}, default=dict
)


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada")
    client.force_login(user)
    return user


def ask(client: Client, text: str = DOCUMENT) -> Any:
    return client.post("/evaluations/", {"workload": text}, follow=True)


def test_it_is_queued_with_its_message_and_shown(client: Client, ada: User) -> None:
    page = words(ask(client))
    row = Evaluation.objects.get()
    assert (row.state, row.workload.owner) == ("queued", ada)
    assert Outbox.objects.get().arguments == [row.pk]
    assert "It waits for a worker." in page
    assert 'hx-trigger="every 2s"' in page


def test_asking_again_shows_the_one_that_waits(client: Client, ada: User) -> None:
    ask(client)
    ask(client)
    assert Evaluation.objects.count() == 1


def test_one_person_cannot_fill_the_queue(client: Client, ada: User) -> None:
    for number in range(1, 6):
        response = ask(client, DOCUMENT.replace('"concurrency": 8', f'"concurrency": {number}'))
    assert Evaluation.objects.count() == 3
    assert "cancel one first" in words(response)


def test_progress_is_told_and_ends_with_the_shortlist(client: Client, ada: User) -> None:
    make_listing(make_source())
    ask(client)
    row = Evaluation.objects.get()
    Evaluation.objects.filter(pk=row.pk).update(
        state="running", configurations_total=40, configurations_done=10
    )
    part = client.get(f"/evaluations/{row.pk}/", headers={"HX-Request": "true"})
    assert "10 of 40 configurations judged." in words(part)
    assert 'max="40" value="10"' in words(part)
    assert "Of those judged" not in words(part)
    assert part.status_code == 200
    Evaluation.objects.filter(pk=row.pk).update(state="queued")
    evaluations.evaluate(row.pk)
    last = client.get(f"/evaluations/{row.pk}/", headers={"HX-Request": "true"})
    assert last.status_code == 286, "htmx asks no more"
    page = client.get(f"/evaluations/{row.pk}/")
    assert page.status_code == 200
    assert "1 of 1 configuration judged; nothing is left." in words(page)
    assert "hx-get" not in words(page).split('id="progress"')[1].split(">")[0]
    assert f"Of those judged so far: 1 {Verdict.objects.get().status}." in words(page)
    ranked = client.post("/workloads/", {"workload": page.context["document"]})
    assert ranked.context["result"].total == 1


def test_a_workload_of_another_version_is_an_error_that_is_told(client: Client, ada: User) -> None:
    ask(client)
    row = Evaluation.objects.get()
    row.workload.document = {"task": "dream"}
    row.workload.save()
    with pytest.raises(InvalidWorkload):
        evaluations.evaluate(row.pk)
    told = words(client.get(f"/evaluations/{row.pk}/"))
    assert "It failed after 0" in told
    assert "task" in told.split('role="alert"')[1].split("</p>")[0]


def test_cancelling_ends_it_once(client: Client, ada: User) -> None:
    ask(client)
    address = f"/evaluations/{Evaluation.objects.get().pk}/"
    assert "Cancelled after 0" in words(client.post(f"{address}cancel/", follow=True))
    assert "It had ended already." in words(client.post(f"{address}cancel/", follow=True))
    evaluations.evaluate(Evaluation.objects.get().pk)
    assert Evaluation.objects.get().state == "cancelled"


def test_nobody_else_sees_or_stops_it(client: Client, ada: User) -> None:
    ask(client)
    address = f"/evaluations/{Evaluation.objects.get().pk}/"
    client.force_login(User.objects.create_user("bob"))
    assert client.get(address).status_code == 404
    assert client.post(f"{address}cancel/").status_code == 404
    assert Evaluation.objects.get().state == "queued"
    client.logout()
    assert client.get(address).status_code == 302
    assert client.post("/evaluations/", {"workload": DOCUMENT}).status_code == 302


@pytest.mark.parametrize("text", ["", "{", "[]", '{"task": "dance"}', "9" * 5000])
def test_what_cannot_be_read_queues_nothing(client: Client, ada: User, text: str) -> None:
    assert "Nothing was queued." in words(ask(client, text))
    assert not Evaluation.objects.exists()
    assert not Workload.objects.exists()


def test_only_who_is_signed_in_is_offered_it(client: Client) -> None:
    offer = "judge every listing in the background"
    assert offer not in words(client.get("/workloads/memory/"))
    client.force_login(User.objects.create_user("ada"))
    assert offer in words(client.get("/workloads/memory/"))


def test_the_page_stops_asking_once_there_is_nothing_to_wait_for(client: Client, ada: User) -> None:
    ask(client)
    row = Evaluation.objects.get()
    part = client.get(f"/evaluations/{row.pk}/", headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert "<button" not in words(part), "a button under the finger is not drawn anew"
    assert "<title>It waits for a worker. – Linkproof</title>" in words(part)
    evaluations.cancel(row.pk)
    part = client.get(f"/evaluations/{row.pk}/", headers={"HX-Request": "true"})
    assert part.status_code == HTMX_STOP_POLLING
    assert 'id="evaluation-actions" hx-swap-oob="true"' in words(part)
    assert "Show the shortlist anyway" in words(part)
