"""One listing's page: every attribute with its grade, and every plan with its reason."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from marketplace.models import Fact, Listing, Source
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def source() -> Source:
    return make_source()


@pytest.fixture
def eight(source: Source) -> Listing:
    return make_listing(source)


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_the_title_states_what_it_can_do(client: Client, eight: Listing) -> None:
    page = text(client, eight.get_absolute_url())
    assert "is ready for “Serve Llama 3.1 8B to 32 users” with one GPU" in page
    assert "a snapshot of a catalog, not a reservation" in page


@pytest.mark.parametrize(
    ("availability", "words"),
    [("sold_out", "cannot be rented as it stands"), ("waitlist", "may do for")],
)
def test_the_title_does_not_promise_what_cannot_be_had(
    client: Client, source: Source, availability: str, words: str
) -> None:
    page = text(client, make_listing(source, availability=availability).get_absolute_url())
    assert words in page
    assert "is ready for" not in page
    assert (
        f"catalog says {'it is ' * (availability == 'sold_out')}{availability.replace('_', ' ')}"
        in page
    )


def test_a_finding_of_another_version_is_told(client: Client, eight: Listing) -> None:
    Listing.objects.update(findings=[{"code": "no_longer_used", "gaps": {}}])
    assert "no_longer_used" in text(client, eight.get_absolute_url())
    assert client.get("/").status_code == 200


def test_each_attribute_has_grade_source_time_and_words(client: Client, eight: Listing) -> None:
    page = text(client, eight.get_absolute_url())
    assert "NVSwitch between all GPUs" in page
    assert '<bdi class="words">NVSwitch fabric</bdi>' in page
    assert "snapshot 000000000000 of https://ridge.example/gpus" in page
    assert page.count("not stated") >= 8


def test_a_measured_fact_outweighs_and_the_conflict_is_said(client: Client, eight: Listing) -> None:
    Fact.objects.create(
        listing=eight,
        name="link",
        value="pcie",
        grade=2,
        source="nvidia-smi topo -m",
        ran_by="renter",
        as_of=timezone.now(),
    )
    page = text(client, eight.get_absolute_url())
    assert "judged by measured pcie, against declared nvswitch" in page
    assert "#grade-measured" in page


def test_the_checklist_is_counts_and_never_a_share(client: Client, eight: Listing) -> None:
    page = text(client, eight.get_absolute_url())
    counts = re.search(r"Host checklist of one GPU: (\d+) pass, 0 fail, (\d+) unknown", page)
    assert counts
    assert sum(map(int, counts.groups())) == page.count('What would settle it"')
    assert "%" not in page.partition("Host checklist")[2].partition("</table>")[0]


def test_an_item_shows_the_evidence_that_it_stands_on_and_what_would_settle_it(
    client: Client, eight: Listing
) -> None:
    page = text(client, eight.get_absolute_url())
    checklist = page.partition('id="checklist"')[2].partition("</table>")[0]
    assert "vCPUs: <bdi>" in checklist
    assert "snapshot 000000000000 of https://ridge.example/gpus" in checklist
    assert "Ask for <code>nvidia-smi -q -d POWER</code>" in checklist
    assert -1 < checklist.find("</svg>unknown") < checklist.find("</svg>pass")


def test_the_checklist_is_that_of_the_plan_in_the_address(client: Client, eight: Listing) -> None:
    page = text(client, f"{eight.get_absolute_url()}?workload=serve-llama-8b&plan=tp2")
    assert "Host checklist of TP 2: " in page
    assert "The size of /dev/shm is not stated." in page.partition('id="checklist"')[2]


def test_a_fail_stands_first_with_its_remedy(client: Client, source: Source) -> None:
    narrow = make_listing(source, "few", availability="sold_out")
    page = text(client, narrow.get_absolute_url())
    rows = page.partition('id="checklist"')[2].partition("<tbody")[2]
    assert rows.find("sold out") < rows.find("not stated")
    assert "Wait, or ask elsewhere." in rows


def test_plans_that_do_not_serve_name_the_smallest_change(client: Client, eight: Listing) -> None:
    page = text(client, f"{eight.get_absolute_url()}?workload=train-llama-70b")
    assert "plans that cannot run it" in page
    assert "smallest change:" in page


def test_a_plan_in_the_address_is_the_one_that_is_drawn(client: Client, eight: Listing) -> None:
    page = text(client, f"{eight.get_absolute_url()}?workload=serve-llama-8b&plan=tp2")
    assert 'Memory per GPU under <a class="term" href="/glossary#tensor-parallel">TP</a> 2' in page
    assert "As table, with formulas and sources" in page
    for odd in ("plan=nothing", "plan=%00", "workload=nothing"):
        assert "under one GPU" in text(client, f"{eight.get_absolute_url()}?{odd}")


def test_a_plan_tells_what_its_cache_holds(client: Client, eight: Listing) -> None:
    page = text(client, f"{eight.get_absolute_url()}?workload=serve-llama-8b&plan=tp2")
    told = " ".join(page.partition("Beside all else")[2].partition("</p>")[0].split())
    found = re.fullmatch(
        r"the cache of one replica holds ([\d,]+) tokens\. The plan serves ([\d,]+) sequences of "
        r"([\d,]+) tokens at once\. vllm starts with a limit of up to ([\d,]+) tokens a sequence\.",
        told,
    )
    assert found
    tokens, sequences, each, longest = (int(one.replace(",", "")) for one in found.groups())
    assert sequences * each <= tokens
    assert each < longest <= tokens


def test_a_training_plan_tells_of_no_cache(client: Client, eight: Listing) -> None:
    page = text(client, f"{eight.get_absolute_url()}?workload=finetune-llama-8b-lora")
    assert "Beside all else" not in page


def test_the_picture_says_in_words_what_it_shows(client: Client, eight: Listing) -> None:
    page = text(client, eight.get_absolute_url())
    assert '<desc id="memory-desc">every rank: ' in page
    assert "GiB usable: fits." in page


def test_a_machine_of_which_nothing_is_known_says_what_to_ask(
    client: Client, source: Source
) -> None:
    bare = make_listing(
        source,
        "bare",
        gpu_model=None,
        gpu_count=None,
        vram_bytes_per_gpu=None,
        link=None,
        form_factor=None,
        amount=None,
        vcpus=None,
        ram_bytes=None,
    )
    page = text(client, bare.get_absolute_url())
    assert "cannot be judged" in page
    assert "nvidia-smi" in page
    assert "No price is published." in page


def test_a_rental_of_two_machines_counts_its_gpus_once(client: Client, source: Source) -> None:
    pair = make_listing(source, "pair", gpu_count=16, nodes=2)
    page = text(client, pair.get_absolute_url())
    assert "</bdi> over 2 machines at" in page
    assert "per rental of 2 machines and hour" in page
    row = text(client, "/listings/")
    assert "over 2 machines" in row
    assert "each of 2" not in row


def test_prices_keep_their_history(client: Client, eight: Listing) -> None:
    make_price(eight, Decimal("24.5"), superseded_at=timezone.now(), words="$24.50/hr")
    page = text(client, eight.get_absolute_url())
    assert "1 price in force, 1 earlier." in page
    assert "$24.50/hr" in page


def test_a_gone_listing_keeps_its_page_and_says_so(client: Client, source: Source) -> None:
    gone = make_listing(source, "gone", gone_at=timezone.now())
    assert "It left its catalog" in text(client, gone.get_absolute_url())


HOSTILE = "\u202e</bdi><svg onload=alert(1)>{% include 'base.html' %}"


def test_scraped_text_is_text_everywhere(client: Client, source: Source) -> None:
    evil = make_listing(
        source,
        title=HOSTILE,
        region=HOSTILE,
        zone=HOSTILE,
        inter_node=HOSTILE,
        url="javascript:alert(1)",
        words={"link": HOSTILE, HOSTILE: HOSTILE},
        findings=[{"code": "price_from", "gaps": {"words": "`</code>" + HOSTILE + "`"}}],
    )
    page = client.get(evil.get_absolute_url()).content.decode()
    assert "<svg onload" not in page
    assert "{% include &#x27;base.html&#x27; %}" in page
    assert 'href="javascript' not in page
    assert "javascript:alert(1)" in page


def test_a_listing_that_never_was_is_a_404_of_ours(client: Client) -> None:
    for key in ("1", "9" * 40):
        response = client.get(f"/listings/{key}/")
        assert response.status_code == 404
        assert "There is no such page." in response.content.decode()


def test_queries_do_not_grow_with_prices_and_facts(client: Client, eight: Listing) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(eight.get_absolute_url())
        return len(found)

    few = count()
    for number in range(20):
        make_price(eight, Decimal(number + 1), superseded_at=timezone.now())
    assert count() == few <= 12


def test_htmx_gets_the_plans_alone(client: Client, eight: Listing) -> None:
    part = client.get(eight.get_absolute_url(), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "What it can run" in part
