"""Every plan of a workload on one machine: the ladder, the chosen plan, the rejected ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.gpus import specs
from evaluator.plans import Plan
from evaluator.workload import workload_presets
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
HERE = "/plans/"
EIGHT = {"gpu": "H100", "count": 8, "link": "nvswitch"}
TRAINED = {"workload": "train-llama-70b"}


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    """Answers are kept for some minutes; a test looks at what makes them."""
    cache.clear()


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def marks(response: Any) -> dict[str, Plan]:
    return {word: rung.verdict.plan for rung in response.context["rungs"] for word, _ in rung.marks}


def test_without_a_machine_the_page_says_what_to_do(client: Client) -> None:
    page = words(client.get(HERE))
    assert "No machine is named yet." in page
    assert 'href="/listings/"' in page


def test_the_narrowest_that_fits_is_marked_with_its_reason(client: Client) -> None:
    response = client.get(HERE, EIGHT)
    assert marks(response) == {"narrowest that fits": Plan()}
    title = words(response).split("<h1")[1].split("</h1>")[0]
    assert "is one GPU: no plan is narrower" in title
    assert "It needs no link." in title


def test_where_narrower_plans_fail_the_title_says_by_what(client: Client) -> None:
    page = words(client.get(HERE, {**TRAINED, **EIGHT}))
    assert "narrower ones are ruled out by memory" in page


def test_the_narrowest_that_meets_the_targets_may_be_a_wider_one(client: Client) -> None:
    document = {
        **workload_presets()["serve-llama-8b"],
        "targets": {"tokens_per_s": 3000},
    }
    response = client.post(HERE, {"workload": json.dumps(document, default=dict), **EIGHT})
    found = marks(response)
    assert found["narrowest that fits"] == Plan()
    assert found["narrowest that meets the targets"].gpus > 1


def test_the_chosen_plan_is_drawn_and_said_in_four_lines(client: Client) -> None:
    response = client.get(HERE, {**EIGHT, "plan": "tp4-pp2"})
    page = words(response)
    assert response.context["plan"].plan == Plan(tp=4, pp=2)
    assert 'class="plan-drawing"' in page
    assert "Parts of the plan that are drawn" in page
    assert "<div>0, 1, 2, 3</div>" in page
    for word in ("Placement", "Scheduling", "Communication", "Synchronisation"):
        assert f"<dt>{word}</dt>" in page
    assert "Bandwidth asked for, and bandwidth there" in page


def test_one_token_is_followed_plan_beside_plan(client: Client) -> None:
    response = client.get(HERE, EIGHT)
    names = [strip.name for strip in response.context["strips"]]
    assert names == ["one GPU", "PP 8", "TP 8", "8 replicas"]
    assert "Follow one token" in words(response)


def test_a_step_of_training_says_which_plans_do_not_fit(client: Client) -> None:
    response = client.get(HERE, {**TRAINED, **EIGHT})
    names = [strip.name for strip in response.context["strips"]]
    assert "FSDP over 8 GPUs (does not fit)" in names


def test_a_rejected_plan_names_the_smallest_change(client: Client) -> None:
    response = client.get(HERE, {**TRAINED, "gpu": "L4", "count": 2})
    assert response.context["rungs"] == []
    assert "each says what would" in words(response)
    assert all(one.changes for one in response.context["rejected"] if one.fit.missing_bytes)


def test_a_plan_of_two_machines_is_numbered_through(client: Client) -> None:
    page = words(client.get(HERE, {**TRAINED, **EIGHT}))
    assert "machine 2" in page


@pytest.mark.parametrize("key", ["diagram", "times"])
def test_each_picture_can_be_kept_as_a_file(client: Client, key: str) -> None:
    kept = client.get(HERE, {**EIGHT, "plan": "tp8", "picture": key})
    assert kept["Content-Type"].startswith("image/svg+xml")
    assert kept.content.startswith(b"<svg xmlns=")
    assert b"<desc" in kept.content


def test_a_listing_is_judged_as_its_page_does(client: Client) -> None:
    row = make_listing(make_source())
    response = client.get(HERE, {"listing": row.pk, **TRAINED})
    listed = client.get(row.get_absolute_url(), TRAINED)
    assert response.context["verdict"].best.plan == listed.context["verdict"].best.plan
    assert "a snapshot, not a reservation" in words(response)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"listing": 999_999}, 404),
        ({"listing": "x"}, 422),
        ({"gpu": "<b>"}, 422),
        ({**EIGHT, "count": 0}, 422),
        ({**EIGHT, "count": 73}, 422),
        ({**EIGHT, "link": "wool"}, 422),
        ({**EIGHT, "workload": "nothing"}, 422),
        ({**EIGHT, "plan": "x" * 81}, 422),
        ({**EIGHT, "plan": "tp999"}, 200),
        ({**EIGHT, "count": ""}, 200),
    ],
)
def test_what_cannot_be_read_is_said_and_never_guessed(
    client: Client, query: dict[str, Any], status: int
) -> None:
    assert client.get(HERE, query).status_code == status


def test_every_known_card_has_its_plans(client: Client) -> None:
    for model in list(dict.fromkeys(spec.model for spec in specs()))[::16]:
        for workload in workload_presets():
            query = {"gpu": model, "count": 4, "workload": workload}
            assert client.get(HERE, query).status_code == 200, query


def test_a_posted_workload_has_no_address_and_keeps_its_plan(client: Client) -> None:
    text = json.dumps(workload_presets()["serve-llama-8b"], default=dict)
    response = client.post(HERE, {"workload": text, "plan": "tp8", **EIGHT})
    assert response.context["plan"].plan == Plan(tp=8)
    page = words(response)
    assert 'name="plan" value="tp2"' in page
    assert 'href="?' not in page


def test_an_unreadable_posted_workload_is_refused(client: Client) -> None:
    response = client.post(HERE, {"workload": '{"task": "dance"}', **EIGHT})
    assert response.status_code == 422
    assert "task: read" in words(response)


def test_the_answer_alone_goes_to_htmx(client: Client) -> None:
    page = words(client.get(HERE, EIGHT, headers={"HX-Request": "true"}))
    assert "<html" not in page
    assert 'hx-swap-oob="true"' in page


def test_queries_do_not_grow_with_listings(client: Client) -> None:
    def count(query: dict[str, Any]) -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(HERE, query)
        return len(found)

    source = make_source()
    row = make_listing(source, "first")
    few = count({"listing": row.pk}), count(EIGHT)
    for number in range(20):
        make_listing(source, f"m{number}")
    assert (count({"listing": row.pk}), count(EIGHT)) == few
    assert few <= (7, 4)


def test_a_hostile_listing_is_text(client: Client) -> None:
    row = make_listing(make_source(), title="<script>1</script>", region="<b>x</b>")
    page = words(client.get(HERE, {"listing": row.pk}))
    assert "<script>1" not in page
    assert "<b>x</b>" not in page


def test_the_launch_command_of_the_chosen_plan_can_be_copied(client: Client) -> None:
    page = words(client.get(HERE, {**EIGHT, "plan": "tp4"}))
    assert "--tensor-parallel-size 4" in page.replace("=", " ")
    assert "What the benchmark should show" in page


def test_commands_over_an_unknown_network_are_given_only_when_asked_for(client: Client) -> None:
    query = {**TRAINED, **EIGHT}
    refused = client.get(HERE, query)
    assert "No command is given." in words(refused)
    assert refused.context["launch"].commands == ()
    asked = client.get(HERE, {**query, "fabric": "unknown"})
    assert asked.context["launch"].commands


def test_an_answer_that_is_kept_is_the_same_answer(client: Client) -> None:
    row = make_listing(make_source())
    for query in ({"listing": row.pk}, {**EIGHT, **TRAINED, "plan": "tp8"}):
        fresh, again = client.get(HERE, query), client.get(HERE, query)
        assert fresh.context["rungs"] is not None
        assert "rungs" not in again.context
        assert fresh.content == again.content


def test_a_kept_answer_is_not_told_of_another_machine(client: Client) -> None:
    row = make_listing(make_source())
    first = words(client.get(HERE, {"listing": row.pk, **TRAINED}))
    row.link = "pcie"
    row.save()
    second = words(client.get(HERE, {"listing": row.pk, **TRAINED}))
    assert first != second
    assert "PCIe" in second


def test_a_wide_plan_that_is_not_timed_yet_says_so(client: Client) -> None:
    many = {"gpu": "MI300X", "count": 8, "workload": "finetune-llama-8b-lora"}
    page = client.get("/plans", many)
    told = [rung.asked for rung in page.context["rungs"]]
    assert told[:24] == [True] * 24
    assert not any(told[24:])
    assert words(page).count("told once it is chosen") == len(told) - 24 > 0
