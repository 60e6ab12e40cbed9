"""Two to four candidates side by side: what differs stands first."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from marketplace.models import Listing
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> list[Listing]:
    source = make_source()
    cheap = make_listing(source, "cheap", amount=Decimal("12"), region="us")
    return [cheap, make_listing(source, "dear", amount=Decimal("30"), vcpus=96)]


def address(*picks: str, workload: str = "serve-llama-8b") -> str:
    return f"/compare/?workload={workload}" + "".join(f"&pick={pick}" for pick in picks)


def test_what_differs_comes_first_and_the_rest_is_told_too(
    client: Client, pair: list[Listing]
) -> None:
    context = client.get(address(*(f"{one.pk}:one" for one in pair))).context
    differing = {line.label: line.texts for line in context["differing"]}
    assert differing["Price as published"] == (
        "12.00 USD per machine-hour, on demand",
        "30.00 USD per machine-hour, on demand",
    )
    assert differing["vCPUs"] == ("192 (declared)", "96 (declared)")
    assert {"GPU model", "Plan", "Memory per GPU"} <= {line.label for line in context["equal"]}


def test_the_heading_counts_both(client: Client, pair: list[Listing]) -> None:
    response = client.get(address(*(f"{one.pk}:one" for one in pair)))
    page = " ".join(response.content.decode().split())
    counts = [len(response.context[part]) for part in ("differing", "equal")]
    assert f"differ in {counts[0]} points and agree in {counts[1]}" in page
    assert page.index("They differ in") < page.index("They agree in")


def test_every_figure_opens_where_it_comes_from(client: Client, pair: list[Listing]) -> None:
    context = client.get(address(*(f"{one.pk}:one" for one in pair))).context
    opened = {line.label: line.cells for line in (*context["differing"], *context["equal"])}
    one, query = pair[0].pk, "?workload=serve-llama-8b"
    assert opened["vCPUs"][0] == (
        "192 (declared)",
        f"/listings/{one}/{query}#attributes-title",
    )
    assert opened["Memory per GPU"][0][1] == f"/plans{query}&listing={one}&plan=one#budget"
    unopened = {label for label, cells in opened.items() if not all(to for _, to in cells)}
    assert opened["Link it needs"][0] == (
        "not needed",
        f"/plans{query}&listing={one}&plan=one#rates",
    )
    assert unopened <= {"Status", "GPUs of the plan", "Warnings", "Time", "Cost"}


def test_of_a_pasted_workload_prices_and_facts_open(client: Client, pair: list[Listing]) -> None:
    picks = [f"{one.pk}:one" for one in pair]
    text = '{"name": "mine", "task": "serve", "model": {"preset": "llama-3.1-8b"}}'
    context = client.post("/compare/", {"workload": text, "pick": picks}).context
    opened = {line.label: line.cells[0][1] for line in (*context["differing"], *context["equal"])}
    assert opened["Price as published"] == f"/listings/{pair[0].pk}/#prices-title"
    assert opened["Memory per GPU"] == ""


def test_one_of_three_can_be_left_out(client: Client, pair: list[Listing]) -> None:
    third = make_listing(pair[0].source, "third", amount=Decimal("14"))
    asked = address(f"{pair[0].pk}:one", f"{pair[1].pk}:tp8", f"{third.pk}:one")
    sides = client.get(f"{asked}&deadline=5").context["sides"]
    left = client.get(sides[1].without).context["sides"]
    assert [one.listing for one in left] == [pair[0], third]
    assert [one.without for one in left] == ["", ""]
    assert "deadline=5" in sides[1].without


def test_the_way_back_keeps_what_was_asked(client: Client, pair: list[Listing]) -> None:
    asked = address(*(f"{one.pk}:one" for one in pair), workload="train-llama-70b")
    page = client.get(f"{asked}&tokens=1000&deadline=5").content.decode()
    assert 'href="/?workload=train-llama-70b&amp;tokens=1000&amp;deadline=5">Shortlist</a>' in page


def test_the_plan_that_was_ticked_is_compared(client: Client, pair: list[Listing]) -> None:
    key = pair[0].pk
    sides = client.get(address(f"{key}:one", f"{key}:tp8")).context["sides"]
    assert [side.candidate.plan.plan.key for side in sides] == ["one", "tp8"]


@pytest.mark.parametrize("picks", [[], ["1"], ["x:one", "y"], ["9:one", "99:one"], ["1:one"] * 3])
def test_fewer_than_two_or_more_than_four_are_refused(
    client: Client, pair: list[Listing], picks: list[str]
) -> None:
    response = client.get(address(*picks))
    assert response.status_code == 422
    assert "Tick 2 to 4 candidates" in response.content.decode()


def test_five_are_refused(client: Client, pair: list[Listing]) -> None:
    key = pair[0].pk
    picks = [f"{key}:{plan}" for plan in ("one", "tp2", "tp4", "tp8", "dp2")]
    assert "Tick 2 to 4 candidates; 5" in client.get(address(*picks)).content.decode()


def test_a_workload_that_cannot_be_read_compares_nothing(
    client: Client, pair: list[Listing]
) -> None:
    assert client.get(address("1:one", "2:one", workload="nothing")).status_code == 422


def test_a_pasted_workload_is_compared_without_being_kept(
    client: Client, pair: list[Listing]
) -> None:
    text = '{"name": "mine", "task": "serve", "model": {"preset": "llama-3.1-8b"}}'
    picks = [f"{one.pk}:one" for one in pair]
    page = client.post("/compare/", {"workload": text, "pick": picks}).content.decode()
    assert "2 candidates for “mine”" in page


def test_unknown_is_a_value_to_compare(client: Client, pair: list[Listing]) -> None:
    blank = make_listing(pair[0].source, "blank", vcpus=None, amount=None)
    context = client.get(address(f"{pair[0].pk}:one", f"{blank.pk}:one")).context
    texts = {line.label: line.texts for line in context["differing"]}
    assert texts["vCPUs"] == ("192 (declared)", "unknown")
    assert texts["Price as published"][1] == "no price published"


def test_what_does_not_fit_promises_no_time_and_no_cost(client: Client) -> None:
    source = make_source()
    small = make_listing(source, "small", gpu_model="L4", gpu_count=1, link=None)
    large = make_listing(source, "large")
    picks = f"pick={small.pk}:one&pick={large.pk}:tp8-pp2"
    context = client.get(f"/compare/?workload=train-llama-70b&tokens=1000000&{picks}").context
    lines = {line.label: line.texts for line in (*context["differing"], *context["equal"])}
    assert lines["Time"][0] == "not timed"
    assert lines["Cost"][0] == "unknown"
    assert context["open"]
    assert all(set(line.texts) == {"unknown"} for line in context["open"])
