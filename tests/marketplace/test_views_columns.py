"""The shortlist's columns: shown, filtered by expressions, sorted, grouped, and paged by key."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client

from evaluator.candidates import Candidate
from marketplace.models import Source
from marketplace.views.ranked import Ranked, key_of
from tests.pages.catalog import make_listing, make_price, make_source
from tests.pages.large_catalog import fill

pytestmark = pytest.mark.django_db

SERVE, TRAIN = "/?workload=serve-llama-8b", "/?workload=train-llama-70b"


@pytest.fixture
def source() -> Source:
    return make_source()


@pytest.fixture
def catalog(source: Source) -> Source:
    """Six machines that serve at 2.49 to 30 USD, the first on one GPU; one without a basis."""
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"), region="us-east")
    for at, amount in enumerate(("12", "15", "20", "25", "30")):
        make_listing(source, f"m{at}", amount=Decimal(amount), region=f"eu-{at}", title=f"M {at}")
    odd = make_listing(source, "odd", gpu_model="L40S", gpu_count=4, link=None, amount=None)
    make_price(odd, Decimal("0.89"), basis="unknown", machine_per_hour=None)
    return source


def ranked(client: Client, address: str) -> Ranked:
    found: Ranked = client.get(address).context["ranked"]
    return found


def titles(found: Ranked) -> list[str]:
    return [one.offering.title for one in found.rows]


def page(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("hourly=<=15", ["M 0", "M 1"]),
        ("hourly=12..20", ["M 0", "M 1", "M 2"]),
        ("hourly=12 or >=25", ["M 0", "M 3", "M 4"]),
        ("hourly=not 12..20", ["M 3", "M 4"]),
        ("place=eu-1 or eu-2", ["M 1", "M 2"]),
        ('machine="m 3"', []),
        ("machine=M 3", ["M 3"]),
        ("hourly=>=20&place=not eu-2", ["M 3", "M 4"]),
        ("evidence=measured", []),
        ("seen=>=2.5", ["M 0", "M 1", "M 2", "M 3", "M 4"]),
    ],
)
def test_a_column_takes_an_expression(
    client: Client, catalog: Source, query: str, expected: list[str]
) -> None:
    found = client.get(f"{SERVE}&{query.replace(chr(34), '%22').replace(' ', '+')}")
    if query == 'machine="m 3"':
        expected = ["M 3"]
    assert titles(found.context["ranked"]) == expected


def test_row_0_stays_on_top_and_says_that_a_filter_excludes_it(
    client: Client, catalog: Source
) -> None:
    text = page(client, f"{SERVE}&hourly=>=20")
    assert "kept on top although a column filter excludes it" in text
    assert "2 are hidden because a filter excludes them" in text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("hourly=>=15", "for 15.00 USD per hour"),
        ("hourly=<=2.49", "One GPU is enough"),
        ("hourly=<=1", "No listing that passes the filters holds Serve Llama 3.1 8B"),
        ("min_grade=measured", "No listing that passes the filters holds Serve Llama 3.1 8B"),
    ],
)
def test_the_answer_passes_the_filters(
    client: Client, catalog: Source, query: str, told: str
) -> None:
    text = page(client, f"{SERVE}&{query}")
    assert told in text.partition('id="answer"')[2].partition("</h1>")[0]


def test_what_to_do_is_told_of_rows_that_pass(client: Client, catalog: Source) -> None:
    advised = client.get(f"{SERVE}&hourly=20..25").context["advised"]
    assert [row.cost_per_hour for row, _ in advised] == [Decimal(20)]


def test_what_filters_of_ranked_rows_leave_alone_says_so(client: Client, catalog: Source) -> None:
    told = "Filters of ranked rows take none of them away: Status, Per hour."
    assert told in page(client, f"{SERVE}&hourly=<=15&status=ready&place=not+mars")
    assert "take none of them away" not in page(client, f"{SERVE}&place=not+mars")


def test_every_listing_is_shown_or_counted_with_its_reason(client: Client, catalog: Source) -> None:
    for query in ("", "&hourly=>=20", "&limit=2", "&limit=1&hourly=<30", "&group=yes"):
        context = client.get(SERVE + query).context
        shown = {one.offering.key for one in context["ranked"].shown}
        parts = {one.offering.key for one in (*context["unranked"], *context["near_misses"])}
        assert len(shown | parts) == context["shown_count"]
        assert context["shown_count"] + sum(context["hidden"].values()) == 7


def test_an_expression_that_cannot_be_read_is_said_beside_its_field(
    client: Client, catalog: Source
) -> None:
    response = client.get(f"{SERVE}&hourly=>=cheap")
    text = " ".join(response.content.decode().split())
    assert response.status_code == 422
    assert "ranked" not in response.context
    assert text.count("“cheap” at character 3 cannot be read; expected a number") == 2
    assert 'id="id_hourly_error"' in text
    assert 'aria-invalid="true"' in text


def test_pages_of_the_ranking_keep_its_answer(client: Client, catalog: Source) -> None:
    address, seen = f"{SERVE}&limit=2", []
    best = client.get(address).context["best"].offering.key
    for _ in range(3):
        context = client.get(address).context
        seen += titles(context["ranked"])
        assert context["best"].offering.key == best
        counted = context["shown_count"] + sum(context["hidden"].values())
        assert counted == context["result"].total == 7
        address = context["next"]
    assert seen == ["M 0", "M 1", "M 2", "M 3", "M 4"]
    assert not context["ranked"].next_key


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("hourly", ["M 0", "M 1", "M 2", "M 3", "M 4"]),
        ("-hourly", ["M 4", "M 3", "M 2", "M 1", "M 0"]),
        ("-place", ["M 4", "M 3", "M 2", "M 1", "M 0"]),
        ("evidence", ["M 0", "M 1", "M 2", "M 3", "M 4"]),
        ("nothing", ["M 0", "M 1", "M 2", "M 3", "M 4"]),
    ],
)
def test_a_column_sorts_both_ways(
    client: Client, catalog: Source, sort: str, expected: list[str]
) -> None:
    found = client.get(f"{SERVE}&sort={sort}")
    assert titles(found.context["ranked"]) == expected
    assert ("sort" in found.context["ignored"]) is (sort == "nothing")


def test_pages_follow_each_other_by_key(client: Client, catalog: Source) -> None:
    address, seen = f"{SERVE}&limit=2&sort=-hourly", []
    for _ in range(3):
        context = client.get(address).context
        seen += titles(context["ranked"])
        address = context["next"]
    assert seen == ["M 4", "M 3", "M 2", "M 1", "M 0"]
    assert context["ranked"].next_key == ""
    assert context["ranked"].shown == context["ranked"].rows


@pytest.mark.parametrize("after", ["3:999:one", "x", "-1"])
def test_a_key_that_is_gone_starts_from_the_top(
    client: Client, catalog: Source, after: str
) -> None:
    assert ranked(client, f"{SERVE}&sort=hourly&after={after}").first_page


def test_a_place_behind_the_last_row_shows_none(client: Client, catalog: Source) -> None:
    found = ranked(client, f"{SERVE}&after=999:1:one")
    assert (found.rows, found.first_page, found.next_key) == ((), False, "")


def test_the_same_hardware_stands_together(client: Client, catalog: Source) -> None:
    found = ranked(client, f"{SERVE}&group=yes")
    assert titles(found) == ["M 0"]
    assert [kin.total for kin in found.kin.values()] == [4]
    assert "4 more offers of the same hardware" in page(client, f"{SERVE}&group=yes")


def test_columns_are_picked(client: Client, catalog: Source) -> None:
    text = page(client, f"{SERVE}&show=provider&show=gpus")
    assert 'data-label="Provider"' in text
    assert 'data-label="GPUs of the plan"' in text
    assert 'data-label="Seen"' not in text
    chips = client.get(f"{SERVE}&show=provider&show=gpus").context["chips"]
    assert [(one.words, one.remove) for one in chips] == [
        ("Columns: Provider, GPUs of the plan", SERVE)
    ]


def test_the_head_of_a_column_holds_its_filter(client: Client, catalog: Source) -> None:
    text = page(client, f"{SERVE}&hourly=<=15")
    heads = text.partition('id="ranked"')[2].partition("</thead>")[0]
    assert (
        'href="#id_hourly"><span class="hide">Filter of Per hour:</span> <bdi>&lt;=15</bdi>'
        in heads
    )
    assert (
        'href="#id_memory"><span class="hide">Filter of Memory per GPU, GiB:</span> filter' in heads
    )
    assert text.count('id="id_hourly"') == text.count('id="id_memory"') == 1


def test_every_order_can_be_picked_without_a_head_to_press(client: Client, catalog: Source) -> None:
    picked = {
        address: [word for word, _, chosen in client.get(address).context["orders"] if chosen]
        for address in (SERVE, f"{SERVE}&sort=-cost", f"{SERVE}&sort=-rank")
    }
    assert list(picked.values()) == [[""], ["-cost"], ["-rank"]]
    assert '<option value="-cost" selected>Cost of tokens, turned round</option>' in page(
        client, f"{SERVE}&sort=-cost"
    )


def test_an_answer_for_another_workload_renames_its_columns(
    client: Client, catalog: Source
) -> None:
    answer = client.get(f"{TRAIN}&tokens=1000000000", headers={"HX-Request": "true"})
    text = " ".join(answer.content.decode().split())
    assert '<span id="name-time" hx-swap-oob="true">Time to finish, hours</span>' in text
    assert 'href="/workloads/?workload=train-llama-70b" hx-swap-oob="true"' in text


def test_the_usual_columns_are_no_choice(client: Client, catalog: Source) -> None:
    usual = [one.key for one in client.get(SERVE).context["columns"].columns if one.shown]
    ticked = "".join(f"&show={key}" for key in usual if key not in ("machine", "plan"))
    assert client.get(SERVE + ticked).context["chips"] == []


def test_every_column_can_be_shown_and_sorted(client: Client, catalog: Source) -> None:
    columns = [one.key for one in client.get(TRAIN).context["columns"].columns]
    shown = "".join(f"&show={key}" for key in columns if key not in ("machine", "plan"))
    for key in columns:
        assert client.get(f"{TRAIN}{shown}&sort={key}").status_code == 200


def test_a_column_filter_is_a_chip(client: Client, catalog: Source) -> None:
    chips = client.get(f"{SERVE}&hourly=%3C%3D15").context["chips"]
    assert [(one.words, one.remove) for one in chips] == [("Per hour: <=15, of ranked rows", SERVE)]


def test_a_filter_of_the_whole_catalog_is_not_called_one_of_rows(
    client: Client, catalog: Source
) -> None:
    chips = client.get(f"{SERVE}&provider=acme").context["chips"]
    assert [one.words for one in chips] == ["Provider: acme"]


def test_a_job_with_an_end_says_cost_and_deadline_first(client: Client, catalog: Source) -> None:
    response = client.get(f"{TRAIN}&tokens=1000000000&deadline=5000")
    text = " ".join(response.content.decode().split())
    heading = text.partition('id="answer"')[2].partition("</h1>")[0]
    assert "USD to finish, " in heading
    assert "in time" in heading or "too late" in heading
    assert "Weakest evidence:" in heading
    title = text.partition("<title>")[2].partition("</title>")[0]
    assert "USD to finish" in title


def test_tokens_and_deadline_mean_nothing_to_a_served_model(
    client: Client, catalog: Source
) -> None:
    context = client.get(f"{SERVE}&tokens=1000&deadline=1").context
    assert context["workload"].training is None
    assert context["best"] is not None
    assert [one.words for one in context["chips"]] == [
        "Tokens to train: 1,000, of training alone",
        "Deadline, hours: 1, of training alone",
    ]


def test_the_scatter_states_its_finding_and_comes_as_a_table(
    client: Client, catalog: Source
) -> None:
    text = page(client, SERVE)
    assert "of the 6 shown: " in text
    assert "<summary>As table</summary>" in text


def test_the_scatter_is_a_file_that_stands_alone(client: Client, catalog: Source) -> None:
    address = client.get(SERVE).context["scatter_address"]
    response = client.get(address)
    root = ElementTree.fromstring(response.content.decode())
    assert response["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="cost-against-time.svg"'
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert style is not None
    assert ".reach" in (style.text or "")
    assert "var(" not in (style.text or "")


def test_there_is_no_file_where_nothing_is_drawn(client: Client, source: Source) -> None:
    assert client.get(f"{SERVE}&picture=scatter").status_code == 404


def test_a_pasted_workload_has_the_same_columns(client: Client, catalog: Source) -> None:
    text = '{"task": "serve", "model": {"preset": "llama-3.1-8b"}}'
    response: Any = client.post(
        "/workloads/", {"workload": text, "hourly": "<=15", "sort": "-hourly"}
    )
    assert titles(response.context["ranked"]) == ["M 1", "M 0"]
    assert 'name="drop" value="hourly"' in response.content.decode()
    dropped: Any = client.post(
        "/workloads/", {"workload": text, "hourly": "<=15", "drop": "hourly"}
    )
    assert len(titles(dropped.context["ranked"])) == 5


@pytest.fixture
def many(nothing_kept: None) -> None:
    """More ranked rows than any page writes out, prices from 0.5 to 80 USD."""
    fill(900, 300)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("hourly=>=60", lambda one: one.cost_per_hour >= 60),
        ("sort=-hourly", lambda one: one.cost_per_hour >= 60),
        ("sort=-time", lambda one: one.outlook.tpot.high > 0.01),
        ("gpus=4", lambda one: one.plan.plan.gpus == 4),
    ],
)
def test_a_column_looks_at_every_ranked_row(
    client: Client, many: None, query: str, first: Callable[[Candidate], bool]
) -> None:
    address, seen = f"{SERVE}&{query}&limit=100", []
    while address:
        context = client.get(address).context
        seen += context["ranked"].rows
        counted = context["shown_count"] + sum(context["hidden"].values())
        assert counted == context["result"].total == 900
        address = context["next"] if context["ranked"].next_key else ""
    keys = [key_of(one) for one in seen]
    assert len(keys) == len(set(keys))
    assert first(seen[0])
    assert max(one.rank or 0 for one in seen) > 500


@pytest.mark.parametrize("query", ["&limit=2", "&limit=2&hourly=<20"])
def test_it_counts_all_that_serve_without_a_comparable_price(
    client: Client, catalog: Source, query: str
) -> None:
    for at in range(24):
        odd = make_listing(catalog, f"odd-{at}", title=f"odd {at}", amount=None)
        make_price(odd, Decimal("0.89"), basis="unknown", machine_per_hour=None)
    context = client.get(SERVE + query).context
    assert len(context["unranked"]) <= 20
    assert context["unranked_more"] == 25 - 20
