"""How each finding about a catalog comes to be: pages and files through the adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from evaluator.findings import Code, Finding, recall
from marketplace.catalog.adapters.imports import ImportAdapter
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Batch, Page, UnreadablePage
from marketplace.catalog.dates import judge_age
from marketplace.catalog.profile import read_profile

ADDRESS = "https://provider.example/gpus"
Made = tuple[Finding, ...]
Maker = Callable[[], Made]


def of_batch(batch: Batch) -> Made:
    """All findings of a reading: of its entries, its doubted rows and the whole."""
    listed = (found for entry in batch.entries for found in entry.findings)
    doubted = (row.reason for row in batch.quarantined)
    held = (batch.hold,) if batch.hold else ()
    return (*listed, *doubted, *batch.findings, *held)


def card(title: str, *lines: str, sku: str = "m-1", attributes: str = "") -> str:
    texts = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div id="{sku}" {attributes}><h3>{title}</h3>{texts}</div>'


def page(body: str, language: str = "en") -> Page:
    text = f'<!doctype html><html lang="{language}"><body>{body}</body></html>'
    return Page(ADDRESS, text.encode(), "text/html; charset=utf-8")


def read(*pages: Page) -> Made:
    try:
        return of_batch(PageAdapter().read(pages))
    except UnreadablePage as refused:
        return (refused.finding,)


def shown(title: str, *lines: str, language: str = "en") -> Maker:
    return lambda: read(page(card(title, *lines), language))


def priced(*words: str, language: str = "en") -> Maker:
    return shown("8x H100 80GB", *words, language=language)


def holding(body: str) -> Maker:
    return lambda: read(page(body))


PRICE = "$20/hr per node"
TWO = card("8x H100 80GB", PRICE) + card("4x A100 80GB", "$6/hr per node", sku="m-2")
TABLE = "<table><tr><th>GPU</th><th>GPUs</th><th>VRAM (MiB)</th><th>Price per node/hr</th></tr>"
IN_MIB = TABLE + "<tr><td>H100</td><td>8</td><td>80</td><td>$20</td></tr></table>" + TWO
NO_CURRENCY = (
    "<table><tr><th>GPU</th><th>GPUs</th><th>VRAM</th><th>Price per node/hr</th></tr>"
    "<tr><td>H100</td><td>8</td><td>80 GB</td><td>20.00</td></tr>"
    "<tr><td>L4</td><td>1</td><td>24 GB</td><td>1.00</td></tr></table>"
)
LEADS_BACK = TWO + '<a rel="next" href="?page=2">Next</a>'
SECOND = card("1x L4 24GB", "$1/hr", sku="m-3") + '<a rel="next" href="/gpus">Again</a>'


def _led_back() -> Made:
    return read(page(LEADS_BACK), Page(f"{ADDRESS}?page=2", page(SECOND).body, "text/html"))


def _cut() -> Made:
    body = b"<html><body><ul><li id=a>8x H100 80GB <b>$20/hr per node</b></li>"
    return read(Page(ADDRESS, body + b"<li id=b>4x A100 80GB <b>$1"))


def _wrong_bytes() -> Made:
    return read(Page(ADDRESS, page(TWO).body + b"<p>caf\xff\xfe</p>", "text/html; charset=utf-8"))


def _old() -> Made:
    dated = PageAdapter().dated([page("<p>Prices as of 3 March 2025</p>" + TWO)])
    aged = judge_age(dated, date(2026, 11, 30))
    return (aged,) if aged else ()


def _profiled() -> Made:
    adapter = PageAdapter(read_profile({"required": ["vcpus"]}))
    return of_batch(adapter.read([page(TWO)]))


def _imported(text: str) -> Maker:
    return lambda: of_batch(ImportAdapter().read([Page(ADDRESS, text.encode(), "text/csv")]))


CSV = "sku,gpu,count,vram,price per hour\n"

PAGES: Mapping[Code, Maker] = {
    Code.BASIS_UNKNOWN: priced("$20/hr"),
    Code.PRICE_MISSING: priced("$0.00/hr per node"),
    Code.NO_ON_DEMAND_PRICE: priced("Spot: $15/hr per node"),
    Code.PRICE_FROM: priced("from $20/hr per node"),
    Code.NOT_HOURLY: priced("$9,000/month per node"),
    Code.TAX_INCLUDED: priced("$20/hr per node incl. VAT"),
    Code.TIERED_PRICE: priced("$20/hr per node, first 100 hours, then $15/hr"),
    Code.CURRENCY_AMBIGUOUS: priced(PRICE, language="en-CA"),
    Code.CURRENCY_UNKNOWN: holding(NO_CURRENCY),
    Code.UNIT_UNKNOWN: priced("$20 per node"),
    Code.AMOUNT_AMBIGUOUS: shown("8x L4 24GB", "1.499 EUR/hr per node"),
    Code.VRAM_AMBIGUOUS: shown("2x A100 80GB", PRICE),
    Code.VRAM_UNKNOWN: shown("8x A100", PRICE),
    Code.VRAM_TOTAL_DIVIDED: shown("8x A100 640GB", PRICE),
    Code.VRAM_UNIT_CORRECTED: holding(IN_MIB),
    Code.VRAM_NONSTANDARD: shown("1x RTX 4090 48GB", PRICE),
    Code.FORM_FACTOR_ONLY: shown("8x H100 SXM5 80GB", PRICE),
    Code.LINK_PAIRS_ONLY: shown("4x RTX A6000 48GB", "NVLink bridge pairs", PRICE),
    Code.LINK_SCOPE_UNKNOWN: shown("4x RTX A6000 48GB", "NVLink", PRICE),
    Code.IMPLAUSIBLE_LINK: shown("4x RTX 4090 24GB", "NVLink", PRICE),
    Code.CONFLICTING_VALUES: priced("$15.92/hr", "$2.49 per GPU"),
    Code.MULTI_NODE: shown("16x H100 80GB (2 nodes)", "$40/hr per cluster"),
    Code.FRACTIONAL_GPU: shown("1/2 H100 40GB", "1/2 of a GPU", "$2/hr"),
    Code.AVAILABILITY_UNKNOWN: priced(PRICE),
    Code.GPU_UNKNOWN: holding(TWO + card("8x Zeta9000 GPU 80GB", "$6/hr per node", sku="z")),
    Code.FINDING_OUTDATED: lambda: (recall({"code": "a code of a later version"}),),
    Code.VRAM_IMPOSSIBLE: shown("8x H100 600GB", PRICE),
    Code.VALUE_OUT_OF_RANGE: shown("0x H100 80GB", PRICE),
    Code.DUPLICATE_KEY: holding(TWO + card("4x L40S 48GB", "$4/hr per node")),
    Code.ROW_UNREADABLE: _imported(CSV + "a,H100,8,80 GB,$20\n,L4,1,24 GB,$1\n"),
    Code.LAYOUT_CHANGED: holding("<p>eight accelerators, twenty dollars</p>"),
    Code.STRUCTURE_CHANGED: _profiled,
    Code.CHALLENGE_PAGE: holding("<h1>Just a moment...</h1>"),
    Code.PAGE_TRUNCATED: _cut,
    Code.COUNT_MISMATCH: holding("<p>12 servers</p>" + TWO),
    Code.PAGINATION_LOOP: _led_back,
    Code.DUPLICATE_LISTING: lambda: read(page(TWO), page(TWO)),
    Code.MALFORMED_STRUCTURED_DATA: holding(
        TWO + '<script type="application/ld+json">{"@type": Product,}</script>'
    ),
    Code.HIDDEN_TEXT_IGNORED: holding(
        TWO + card("8x B200 180GB", "$1/hr", sku="x", attributes="hidden")
    ),
    Code.ENCODING_REPLACED: _wrong_bytes,
    Code.STALE_PAGE: _old,
}
"""Each code of a page or file, and what makes it."""
