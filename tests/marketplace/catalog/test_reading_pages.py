"""What pages say beside their rows: microdata, cursors, nodes, fees, counts in words, links."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evaluator.findings import Code
from evaluator.machine import Availability, LinkClass
from evaluator.prices import Basis, TimeUnit
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Entry, Page
from marketplace.catalog.reading.counts import read_count

URL = "https://rent.example/gpus?sort=price"


def page(body: str) -> Page:
    return Page(URL, f"<html lang=en><body>{body}</body></html>".encode(), "text/html")


def only(body: str) -> Entry:
    (entry,) = PageAdapter().read([page(body)]).entries
    return entry


MICRODATA = """<div itemscope itemtype="https://schema.org/Product">
<span itemprop="name">8x NVIDIA H100 80GB</span><meta itemprop="sku" content="md-8">
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
<meta itemprop="price" content="19.20"><meta itemprop="priceCurrency" content="USD">
<div itemprop="priceSpecification" itemscope itemtype="https://schema.org/UnitPriceSpecification">
<meta itemprop="price" content="19.20"><meta itemprop="priceCurrency" content="USD">
<meta itemprop="unitCode" content="HUR"></div>
<link itemprop="availability" href="https://schema.org/InStock"></div></div>"""


def test_microdata_is_read_as_json_ld_would_be() -> None:
    entry = only(MICRODATA)
    assert (entry.sku, entry.gpu_count, entry.availability) == ("md-8", 8, Availability.AVAILABLE)
    (quote,) = entry.quotes
    assert (quote.amount, quote.currency, quote.unit) == (Decimal("19.20"), "USD", TimeUnit.HOUR)


def test_microdata_beside_what_is_visible_lists_nothing_twice() -> None:
    card = "<article id=md-8><h3>8x NVIDIA H100 80GB</h3><p>$19.20/hr per machine</p></article>"
    assert only(card + MICRODATA).sku == "md-8"


@pytest.mark.parametrize(
    ("data", "following"),
    [
        ('{"nextCursor": "a b"}', f"{URL}&cursor=a+b"),
        ('{"page": {"next_page_token": "t=="}}', f"{URL}&page_token=t%3D%3D"),
        ('{"pageInfo": {"hasNextPage": true, "endCursor": "c"}}', f"{URL}&after=c"),
        ('{"pageInfo": {"hasNextPage": false, "endCursor": "c"}}', None),
        ('{"nextPageUrl": "/gpus?page=2"}', "https://rent.example/gpus?page=2"),
        ('{"nextPageUrl": "https://elsewhere.example/gpus?page=2"}', None),
        ('{"nextPageUrl": "javascript:go()"}', None),
        ('{"nextCursor": null}', None),
        ('{"nextCursor": ""}', None),
        ('{"nextCursor": {"deep": 1}}', None),
    ],
)
def test_a_cursor_in_the_data_of_a_page_leads_on(data: str, following: str | None) -> None:
    body = f'<script type="application/json">{data}</script>'
    assert PageAdapter().next_page(page(body)) == following


def test_the_same_cursor_again_is_the_same_address() -> None:
    """So that a list which never ends is noticed."""
    once = Page(
        f"{URL}&cursor=z", page('<script type="application/json">{"nextCursor":"z"}</script>').body
    )
    assert PageAdapter().next_page(once) == once.url


def test_a_rate_per_node_counts_once_for_each_node() -> None:
    entry = only(
        "<div><h3>2 nodes of 8x NVIDIA H100 SXM5 80GB</h3><p>$20.00 per node per hour</p></div>"
    )
    (quote,) = entry.quotes
    assert (entry.gpu_count, entry.nodes) == (16, 2)
    assert (quote.amount, quote.basis) == (Decimal("40.00"), Basis.MACHINE)
    assert quote.words == "2 nodes, each $20.00 per node per hour"


def test_a_rate_per_node_and_one_per_gpu_confirm_each_other() -> None:
    entry = only(
        "<div><h3>2 nodes of 8x NVIDIA H100 80GB</h3><p>$20.00 per node per hour</p>"
        "<p>$2.50 per GPU per hour</p></div>"
    )
    assert [quote.amount for quote in entry.quotes] == [Decimal("40.00")]


def test_fees_and_caps_are_no_price_and_stay_in_words() -> None:
    entry = only(
        "<div><h3>4x NVIDIA A100 80GB</h3><p>$900 per month per machine plus $250 setup fee, "
        "capped at $1,000 a month</p><dl><dt>Setup fee</dt><dd>$99</dd></dl></div>"
    )
    (quote,) = entry.quotes
    assert (quote.amount, quote.unit) == (Decimal(900), TimeUnit.MONTH)
    assert "$250 setup fee, capped at $1,000 a month" in quote.words
    assert "$99" in " ".join(entry.words.values())


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("Eight NVIDIA H100 80GB", 8), ("Twelve L40S", 12), ("five RTX 4090", 5),
        ("NVIDIA H100, quantity eight", 8), ("GPUs: four", 4), ("sixteen-GPU H100 node", 16),
        ("acht H100", 8), ("drei NVIDIA L4", 3), ("sechzehn H200", 16), ("huit H100", 8),
        ("trois A100", 3), ("ocho H100", 8), ("cuatro A100", 4), ("otto NVIDIA H100", 8),
        ("quattro A100", 4), ("osiem H100", 8), ("cztery L4", 4), ("twee L40S", 2),
        ("oito H100", 8), ("duas A100", 2),
    ],
)  # fmt: skip
def test_counts_in_words_of_eight_languages(text: str, gpus: int) -> None:
    assert read_count(text).gpus == gpus


@pytest.mark.parametrize(
    ("title", "open_scope"),
    [
        ("8x H100 80GB NVLink", True),
        ("8x H100 PCIe 80GB NVLink", True),
        ("8x H100 SXM5 80GB NVLink", False),
        ("8x H200 141GB NVLink", False),
        ("8x B200 180GB NVLink", False),
    ],
)
def test_nvlink_leaves_its_scope_open_where_some_card_of_that_name_has_only_bridges(
    title: str, open_scope: bool
) -> None:
    entry = only(f"<div><h3>{title}</h3><p>$20/hr per server</p></div>")
    assert entry.link is LinkClass.NVLINK
    assert (Code.LINK_SCOPE_UNKNOWN in {one.code for one in entry.findings}) is open_scope
