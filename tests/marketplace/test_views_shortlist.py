"""The first screen: a preset by its address, a pasted workload, and errors beside their field."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.shortlist import Shortlist
from evaluator.workload import workload_presets
from marketplace.models import Listing, Source, Verdict
from marketplace.offers import forget_catalog
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db

SERVE_8B = {"task": "serve", "model": {"preset": "llama-3.1-8b"}}


@pytest.fixture
def source() -> Source:
    return make_source()


@pytest.fixture
def catalog(source: Source) -> Source:
    """One GPU for 2.49, eight joined ones for 19.92, and four small ones without a basis."""
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"), region="us-east")
    make_listing(source, "eight")
    odd = make_listing(source, "odd", gpu_model="L40S", gpu_count=4, link=None, amount=None)
    make_price(odd, Decimal("0.89"), basis="unknown", machine_per_hour=None)
    return source


def result_of(response: Any) -> Shortlist:
    found: Shortlist = response.context["result"]
    return found


def paste(client: Client, document: object, **demands: str) -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    return client.post("/workloads/", {"workload": text, **demands})


def test_the_title_states_the_answer(client: Client, catalog: Source) -> None:
    page = " ".join(client.get("/").content.decode().split())
    assert "One GPU is enough: H100 at Ridge for 2.49 USD per hour, ready." in page
    assert "Weakest evidence: memory per GPU, declared." in page


def test_row_0_is_the_best_single_gpu(client: Client, catalog: Source) -> None:
    response = client.get("/?workload=train-llama-70b")
    first = result_of(response).rows[0]
    assert (first.rank, first.plan.plan.gpus) == (0, 1)
    assert "Best single GPU" in response.content.decode()


def test_each_row_shows_plan_memory_price_age_and_evidence(client: Client, catalog: Source) -> None:
    page = " ".join(client.get("/").content.decode().split())
    assert "one GPU" in page
    assert "of 71.7" in page
    assert re.search(r"2\.49 USD</strong> <span [^>]+>per machine-hour, on demand", page)
    assert "3 h ago</time>" in page
    assert "#grade-declared" in page


def test_each_row_that_serves_opens_what_decides_its_speed(client: Client, catalog: Source) -> None:
    page = " ".join(client.get("/").content.decode().split())
    assert "tokens/s, first token" in page
    assert "Widest assumption:" in page


def test_the_table_ends_with_what_is_not_shown(client: Client, catalog: Source) -> None:
    page = " ".join(client.get("/?regions=us-east").content.decode().split())
    assert "2 are hidden because they are outside the wanted regions" in page
    assert "of 3 listings" in page


def test_a_listing_without_any_price_is_shown_too(client: Client, source: Source) -> None:
    make_listing(source, amount=None)
    page = client.get("/").content.decode()
    assert "no price is published" in page


def test_a_price_that_lacks_a_part_is_shown_and_not_compared(
    client: Client, catalog: Source
) -> None:
    page = " ".join(client.get("/?gpu=L40S").content.decode().split())
    assert "at a price that cannot be compared" in page
    assert "per hour (of a machine or of a GPU: not stated)" in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=1", "Rows: 1"),
        ("max_price=3", "Max USD/hour: 3"),
        ("min_grade=declared", "Least evidence: declared"),
        ("regions=us-east", "Regions: us-east"),
        ("gpu=H100", "GPU model: H100"),
    ],
)
def test_every_demand_is_a_chip(client: Client, catalog: Source, query: str, expected: str) -> None:
    chips = client.get(f"/?workload=serve-llama-8b&{query}").context["chips"]
    assert [(chip.words, chip.remove) for chip in chips] == [
        (expected, "/?workload=serve-llama-8b")
    ]


def test_what_always_applies_is_said_too(client: Client, catalog: Source) -> None:
    page = client.get("/").content.decode()
    for words in (
        "on-demand prices",
        "only prices in USD are compared",
        "listings gone from their catalog",
    ):
        assert words in page


def test_demands_hide_and_say_why(client: Client, catalog: Source) -> None:
    result = result_of(client.get("/?max_price=3&min_grade=declared"))
    assert [row.offering.title for row in result.rows] == ["8x H100 SXM one"]
    assert "they cost more than 3 USD per hour" in result.hidden
    assert result_of(client.get("/?min_grade=measured")).rows == ()


@pytest.mark.parametrize("slug", list(workload_presets()))
def test_each_preset_has_a_shortlist(client: Client, catalog: Source, slug: str) -> None:
    assert client.get("/", {"workload": slug}).status_code == 200


@pytest.mark.parametrize(
    "query",
    ["workload=nothing", "limit=0", "limit=101", "max_price=-1", "gpu=<b>", "min_grade=unknown"],
)
def test_a_demand_that_cannot_be_read_ranks_nothing(
    client: Client, catalog: Source, query: str
) -> None:
    response = client.get(f"/?{query}")
    assert response.status_code == 422
    assert "result" not in response.context
    assert "errorlist" in response.content.decode()


def test_a_key_that_means_nothing_is_said(client: Client, catalog: Source) -> None:
    page = client.get("/?sort=price&max_prize=3").content.decode()
    assert "<code>max_prize</code>" in page
    assert "<code>sort</code>" in page


def test_a_listing_link_carries_the_workload(client: Client, catalog: Source) -> None:
    page = client.get("/?workload=train-llama-70b").content.decode()
    assert f"/listings/{catalog.listings.first().pk}/?workload=train-llama-70b" in page


def test_the_memory_figure_opens_its_derivation(client: Client, catalog: Source) -> None:
    page = client.get("/").content.decode()
    address = r"/listings/\d+/\?workload=serve-llama-8b&amp;plan=[\w-]+(?=#budget)"
    found = re.search(address, page)
    assert found
    derived = client.get(found[0].replace("&amp;", "&")).content.decode()
    assert 'id="budget"' in derived
    assert "Formula, inputs, source" in derived


def test_an_empty_catalog_says_what_to_do(client: Client) -> None:
    page = client.get("/").content.decode()
    assert "There is no listing to rank yet." in page
    assert "make run" in page


def test_where_nothing_serves_the_smallest_change_is_named(client: Client, source: Source) -> None:
    make_listing(source, "t4", gpu_model="T4", gpu_count=1, vram_bytes_per_gpu=16 * 10**9)
    page = " ".join(client.get("/").content.decode().split())
    assert "No listing holds Serve Llama 3.1 8B to 32 users as it stands." in page
    assert "Smallest change" in page


# --- a pasted workload


def test_a_pasted_workload_is_judged_and_stays_in_its_field(
    client: Client, catalog: Source
) -> None:
    response = paste(client, SERVE_8B, regions="us-east")
    assert result_of(response).rows
    assert "&quot;preset&quot;: &quot;llama-3.1-8b&quot;" in response.content.decode()


def test_the_queue_is_told_where_arrivals_are_stated(client: Client, catalog: Source) -> None:
    document = {**SERVE_8B, "arrival_rate": 0.5, "concurrency": 8}
    page = " ".join(paste(client, document).content.decode().split())
    assert "At the arrival rate" in page
    assert "places are taken" in page


def test_a_spot_price_is_called_spot_in_the_title(client: Client, source: Source) -> None:
    make_price(make_listing(source, amount=None), Decimal("7.00"), purchase="spot")
    document = {
        "name": "mine",
        "task": "serve",
        "model": {"preset": "llama-3.1-8b"},
        "needs": {"spot": True},
    }
    page = " ".join(paste(client, document).content.decode().split())
    assert "for 7.00 USD per hour (spot), ready" in page
    assert "on-demand and spot prices" in page


def test_a_bare_config_is_read_as_a_model_to_serve(client: Client, catalog: Source) -> None:
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
    response = paste(client, config)
    assert response.status_code == 200
    assert response.context["workload"].task == "serve"
    assert "values the workload leaves open" in response.content.decode()


def test_a_chip_of_a_pasted_workload_drops_its_demand(client: Client, catalog: Source) -> None:
    kept = paste(client, SERVE_8B, limit="1", gpu="H100")
    assert 'name="drop" value="limit"' in kept.content.decode()
    dropped = paste(client, SERVE_8B, limit="1", gpu="H100", drop="limit")
    assert [chip.key for chip in dropped.context["chips"]] == ["gpu"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "at line 1, column 2, where it ends"),
        ('{"a": \uff14\u0660}', "column 7, where &#x27;\\uff14\\u0660}&#x27; was read"),
        ("", "This field is required."),
        ("[]", "read a list of 0, expected an object"),
        ('{"task": "serve"}', "model: read nothing, expected a Hugging Face config.json"),
        ('{"task": "dance"}', "task: read &#x27;dance&#x27;, expected one of"),
        ('{"task": "serve", "task": "train"}', "stands twice"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ("[" * 100_000, "read brackets in brackets without end"),
        ("9" * 5000, "read a number of 5,000 digits, expected at most 1000"),
        ('{"task": "serve", "model": {"preset": "llama-3.1-8b"}, "tokns": 1}', "tokns"),
    ],
)
def test_a_text_that_cannot_be_used_says_field_value_and_expectation(
    client: Client, catalog: Source, text: str, said: str
) -> None:
    response = paste(client, text)
    assert response.status_code == 422
    assert said in response.content.decode()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("concurrency", -1),
        ("concurrency", 0),
        ("concurrency", 1e30),
        ("concurrency", 10**400),
        ("concurrency", "１２"),
        ("concurrency", True),
        ("input_tokens", 10**14),
        ("name", "\u0000"),
        ("name", "\ud800"),
        ("name", "x" * 10_000),
        ("memory_utilization", 1e-300),
        ("model", {"hidden_size": 10**30, "model_type": "llama"}),
        ("model", {"preset": "../../etc/passwd"}),
        ("model", {}),
        ("needs", {"max_price_per_hour": -3}),
        ("pins", {"weights": 10**15}),
    ],
)
def test_an_absurd_workload_is_an_answer_or_a_field_error(
    client: Client, catalog: Source, key: str, value: object
) -> None:
    assert paste(client, SERVE_8B | {key: value}).status_code in (200, 422)


def test_a_pasted_name_is_text(client: Client, catalog: Source) -> None:
    page = paste(client, SERVE_8B | {"name": "</title><script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_paste_page_begins_with_a_preset_as_a_file(client: Client) -> None:
    page = client.get("/workloads/?workload=train-llama-70b").content.decode()
    assert "llama-3.1-70b" in page
    assert "errorlist" not in page


def test_a_form_without_its_token_is_refused_with_a_page_of_ours() -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post("/workloads/", {"workload": "{}"})
    assert response.status_code == 403
    assert "This form is too old to be accepted." in response.content.decode()


# --- what a page costs, and what it leaves alone


def test_queries_do_not_grow_with_listings(client: Client, source: Source) -> None:
    def count() -> int:
        forget_catalog()
        with CaptureQueriesContext(connection) as found:
            client.get("/")
        return len(found)

    make_listing(source, "first")
    few = count()
    for number in range(30):
        make_listing(source, f"m{number}")
    assert count() == few <= 15


def test_reading_the_shortlist_keeps_no_verdict(client: Client, catalog: Source) -> None:
    client.get("/")
    paste(client, SERVE_8B)
    assert not Verdict.objects.exists()


def test_htmx_gets_results_and_the_new_title(client: Client, catalog: Source) -> None:
    part = client.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert 'id="answer"' in part
    assert 'hx-swap-oob="true"' in part


def test_a_machine_that_several_sell_leads_to_all_offers_of_it(
    client: Client, catalog: Source
) -> None:
    assert "all offers of this hardware" not in client.get("/").content.decode()
    make_listing(catalog, "eight-resold", amount=Decimal("21.00"))
    text = client.get("/").content.decode()
    configuration = Listing.objects.get(sku="eight").configuration
    assert text.count(f'href="/listings/?configuration={configuration}"') == 2
