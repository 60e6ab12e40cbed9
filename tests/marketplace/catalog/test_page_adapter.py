"""Pages through the adapter: what is read, what is doubted, and what a page says of itself."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.findings import Code
from marketplace.accuracy.catalog import judge
from marketplace.accuracy.catalog_cases import case_files, read_case
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Batch, Entry, Page, UnreadablePage
from marketplace.catalog.dates import judge_age

SAMPLES = Path(__file__).parents[2] / "samples" / "pages"
ADDRESS = "https://provider.example/gpus"


def card(sku: str, title: str, *lines: str, attributes: str = "") -> str:
    texts = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="m" id="{sku}" {attributes}><h3>{title}</h3>{texts}</div>'


def page(body: str, url: str = ADDRESS, language: str = "en") -> Page:
    text = f'<!doctype html><html lang="{language}"><body>{body}</body></html>'
    return Page(url, text.encode("utf-8", "surrogatepass"), "text/html; charset=utf-8")


def read(*bodies: str) -> Batch:
    return PageAdapter().read([page(body, f"{ADDRESS}?page={n}") for n, body in enumerate(bodies)])


def only(body: str) -> Entry:
    (entry,) = read(body).entries
    return entry


TWO = card("a-1", "8x H100 80GB", "$20/hr per node") + card("a-2", "4x A100 80GB", "$6/hr per node")


@pytest.mark.parametrize("file", case_files(SAMPLES), ids=lambda file: file.stem)
def test_an_own_page_gives_what_was_written_down(file: Path) -> None:
    outcome = judge(read_case(file))
    assert outcome.within, outcome.why


@pytest.mark.shared
def test_every_saved_page_is_read_right(shared: Path) -> None:
    files = case_files(shared / "cases" / "catalog_pages")
    assert [one.why for file in files if not (one := judge(read_case(file))).within] == []


@pytest.mark.parametrize(
    "attributes",
    ["hidden", 'style="display: none"', 'style="visibility:hidden"', 'style="opacity:0"',
     'style="position:absolute; left:-9999px"', 'style="font-size:0"'],
)  # fmt: skip
def test_hidden_cards_are_no_listings(attributes: str) -> None:
    batch = read(TWO + card("x", "8x B200 180GB", "$0.10/hr per node", attributes=attributes))
    assert {entry.sku for entry in batch.entries} == {"a-1", "a-2"}
    assert [found.code for found in batch.findings] == [Code.HIDDEN_TEXT_IGNORED]


@pytest.mark.parametrize("tag", ["template", "noscript", "script", "style", "svg", "!--"])
def test_text_that_is_no_text_is_not_read(tag: str) -> None:
    decoy = card("x", "8x B200 180GB", "$0.10/hr per node")
    hidden = f"<!-- {decoy} -->" if tag == "!--" else f"<{tag}>{decoy}</{tag}>"
    assert {entry.sku for entry in read(TWO + hidden).entries} == {"a-1", "a-2"}


def test_a_promotion_is_no_listing() -> None:
    promotion = card("p", "Refer a friend", "Earn $500 credit for every 8x H100 customer.")
    assert len(read(TWO + promotion).entries) == 2


def test_a_machine_without_gpu_is_counted_and_left_out() -> None:
    batch = read(TWO + card("c", "General purpose 64", "64 vCPU", "$1.10/hr per node"))
    assert (len(batch.entries), batch.left_out) == (2, {"no GPU named": 1})


def test_letters_of_another_script_name_no_known_card() -> None:
    entry = read(TWO + card("x", "8x Н100 80GB", "$1/hr per node")).entries[-1]
    assert entry.gpu_model is None
    assert Code.GPU_UNKNOWN in {found.code for found in entry.findings}


def test_unseen_characters_reach_no_stored_text() -> None:
    body = card("u", "8x H1\u200b00 80GB \u202e\x07\ud800 &#xD800; &#0;", "$20/hr per node")
    entry = only(body + card("v", "1x L4 24GB", "$1/hr")[:0])
    assert (entry.gpu_model, entry.title) == ("H100", "8x H100 80GB")
    texts = (entry.title, *entry.words.values())
    assert not any(
        letter in text for text in texts for letter in "\x00\x07\u200b\u202e\ufffd\ud800"
    )


def test_markup_in_a_title_stays_text() -> None:
    assert (
        only(card("u", "1x L4 24GB &lt;b&gt;x&lt;/b&gt;", "$1/hr")).title == "1x L4 24GB <b>x</b>"
    )


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "#top"]
)
def test_a_script_address_is_no_link(link: str) -> None:
    assert only(card("u", "1x L4 24GB", f'<a href="{link}">Rent</a> $1/hr')).url == ""


def test_links_resolve_against_the_page_not_its_base() -> None:
    base = '<base href="https://evil.example/">'
    entry = only(base + card("u", "1x L4 24GB", '<a href="/gpus/l4">Rent</a> $1/hr'))
    assert entry.url == "https://provider.example/gpus/l4"


@pytest.mark.parametrize(
    ("title", "price", "code"),
    [
        ("99999999999x H100 80GB", "$20/hr per node", Code.VALUE_OUT_OF_RANGE),
        ("0x H100 80GB", "$20/hr per node", Code.VALUE_OUT_OF_RANGE),
        ("8x H100 80GB", "$-20/hr per node", Code.VALUE_OUT_OF_RANGE),
        ("8x H100 80GB", "$1e999/hr per node", Code.VALUE_OUT_OF_RANGE),
        ("8x H100 600GB", "$20/hr per node", Code.VRAM_IMPOSSIBLE),
        ("8x H100 80GB", "$15.92/hr</p><p>$2.49 per GPU", Code.CONFLICTING_VALUES),
    ],
)
def test_a_row_that_cannot_be_believed_is_set_aside_alone(
    title: str, price: str, code: Code
) -> None:
    batch = read(TWO + card("bad", title, price))
    assert [entry.sku for entry in batch.entries] == ["a-1", "a-2"]
    assert [(row.sku, row.reason.code) for row in batch.quarantined] == [("bad", code)]


def test_a_zero_price_is_no_price() -> None:
    entry = only(card("z", "8x H100 80GB", "$0.00/hr per node"))
    assert entry.quotes == ()
    assert Code.PRICE_MISSING in {found.code for found in entry.findings}


def test_one_id_with_two_contents_is_believed_neither_time() -> None:
    batch = read(TWO + card("a-1", "4x L40S 48GB", "$4/hr per node"))
    assert [entry.sku for entry in batch.entries] == ["a-2"]
    assert [row.reason.code for row in batch.quarantined] == [Code.DUPLICATE_KEY]


def test_the_same_row_on_two_pages_is_one_listing() -> None:
    batch = read(TWO, TWO)
    assert [entry.sku for entry in batch.entries] == ["a-1", "a-2"]
    assert {found.code for found in batch.findings} == {Code.DUPLICATE_LISTING}


def test_a_price_of_another_currency_is_not_guessed() -> None:
    entry = (
        PageAdapter().read([page(card("d", "1x L4 24GB", "$1/hr"), language="en-CA")]).entries[0]
    )
    assert entry.quotes[0].currency is None
    assert Code.CURRENCY_AMBIGUOUS in {found.code for found in entry.findings}


def test_a_count_that_differs_proves_no_absence() -> None:
    batch = read("<p>12 servers</p>" + TWO)
    assert (batch.complete, [found.code for found in batch.findings]) == (
        False,
        [Code.COUNT_MISMATCH],
    )


def test_half_a_row_is_not_published() -> None:
    whole = b"<html><body><ul><li id=a>8x H100 80GB <b>$20/hr per node</b></li>"
    body = whole + b"<li id=b>4x A100 80GB <b>$1"
    batch = PageAdapter().read([Page(ADDRESS, body)])
    assert [entry.sku for entry in batch.entries] == ["a"]
    assert [row.reason.code for row in batch.quarantined] == [Code.PAGE_TRUNCATED]
    assert not batch.complete


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", Code.LAYOUT_CHANGED),
        (b"<html><body><h2>Hopper node</h2><p>eight accelerators, twenty dollars</p></body></html>",
         Code.LAYOUT_CHANGED),
        (b"<html><body><h1>Just a moment...</h1></body></html>", Code.CHALLENGE_PAGE),
        (b"%PDF-1.7 8x H100 80GB $20/hr", Code.LAYOUT_CHANGED),
        (b'{"error": "8x H100 80GB $20/hr"}', Code.LAYOUT_CHANGED),
    ],
)  # fmt: skip
def test_a_page_without_listings_is_an_error_not_an_empty_catalog(body: bytes, code: Code) -> None:
    with pytest.raises(UnreadablePage) as failure:
        PageAdapter().read([Page(ADDRESS, body)])
    assert failure.value.finding.code is code


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ('<a rel="next" href="?page=2">Next</a>', f"{ADDRESS}?page=2"),
        ('<a rel="nofollow next" href="/gpus?page=2">Next</a>', f"{ADDRESS}?page=2"),
        (f'<link rel="NEXT" href="{ADDRESS}?page=2">', f"{ADDRESS}?page=2"),
        ('<a rel="next sponsored" href="?page=2">Partner</a>', None),
        ('<a rel="next" href="https://ads.example/gpus?page=2">Next</a>', None),
        ('<a rel="next" href="javascript:go(2)">Next</a>', None),
        ('<a rel="nextish" href="?page=2">Next</a>', None),
        ('<a rel="next">Next</a>', None),
    ],
)
def test_the_page_that_follows(link: str, following: str | None) -> None:
    assert PageAdapter().next_page(page(TWO + link)) == following


def test_a_list_that_leads_back_has_been_read_whole() -> None:
    first = page(TWO + '<a rel="next" href="?page=2">Next</a>')
    second = page(
        card("a-3", "1x L4 24GB", "$1/hr") + '<a rel="next" href="/gpus">Again</a>',
        f"{ADDRESS}?page=2",
    )
    batch = PageAdapter().read([first, second])
    assert (batch.complete, {found.code for found in batch.findings}) == (
        True,
        {Code.PAGINATION_LOOP},
    )


def test_a_missing_page_leaves_the_list_unproved() -> None:
    assert not PageAdapter().read([page(TWO + '<a rel="next" href="?page=2">Next</a>')]).complete


@pytest.mark.parametrize(
    ("line", "stale"),
    [("Prices as of 3 March 2025", True), ("Last updated: 2026-11-20", False),
     ("Stand: 01.02.2025", True),
     ("Founded on 3 March 1998", False), ("No date", False)],
)  # fmt: skip
def test_a_page_that_dates_itself_in_the_past_is_stale(line: str, stale: bool) -> None:
    dated = PageAdapter().dated([page(f"<p>{line}</p>" + TWO)])
    assert (judge_age(dated, date(2026, 11, 30)) is not None) == stale


def test_class_names_do_not_matter() -> None:
    plain, dressed = read(TWO), read(TWO.replace('class="m"', 'class="css-1x9 grid md:flex"'))
    assert plain.entries == dressed.entries


HOSTILE = {
    "open tags": "<a " * 20_000,
    "anchors": "<a>" * 20_000 + "8x H100 80GB $2/hr",
    "deep": "<div>" * 100_000 + "8x H100 80GB $2/hr",
    "spans": "<div>" + "<span>8x H100 80GB</span><span>$2/hr</span>" * 20_000 + "</div>",
    "nested tables": "<table><tr><td>" * 2_000 + "8x H100 80GB $2/hr",
    "attribute": f'<div data-x="{"x" * 1_000_000}">8x H100 80GB $2/hr</div>',
    "styles": "<style>" + ".a{display:none" * 60_000 + "</style>",
    "prices": "<p>8x H100 80GB</p><p>" + "$1 per " * 140_000 + "</p>",
    "spans of cells": "<table>" + "<tr><td colspan=9999 rowspan=9999>8x H100 $2/hr</td></tr>" * 200,
    "json": '<script type="application/json">' + "[" * 100_000 + "</script>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_is_read_within_seconds(name: str) -> None:
    started = time.process_time()
    with suppress(UnreadablePage):
        PageAdapter().read([page(HOSTILE[name])])
    assert time.process_time() - started < 10


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(noise: bytes) -> None:
    body = TWO.encode()[:200] + noise + TWO.encode()
    try:
        batch = PageAdapter().read([Page(ADDRESS, body, "text/html; charset=utf-8")])
    except UnreadablePage:
        return
    assert all(quote.amount > 0 for entry in batch.entries for quote in entry.quotes)


def test_a_heading_outweighs_an_id_that_looks_like_a_card() -> None:
    rows = "<tr><th>ID</th><th>GPUs</th><th>VRAM</th><th>Price per GPU/hr</th></tr>"
    rows += "<tr><td colspan=4>NVIDIA L40S PCIe</td></tr>"
    rows += "<tr><td>l4</td><td>4</td><td>48 GB</td><td>$0.90</td></tr>"
    entry = only(f"<table>{rows}</table>")
    assert (entry.sku, entry.gpu_model, entry.gpu_count) == ("l4", "L40S", 4)


def test_prices_under_counts_are_machines_of_their_own() -> None:
    rows = "<tr><th>GPU</th><th>1x</th><th>8x</th></tr>"
    rows += "<tr id=h><td>H100 80GB</td><td>$2.49/hr</td><td>$19.92/hr</td></tr>"
    found = [(entry.sku, entry.gpu_count) for entry in read(f"<table>{rows}</table>").entries]
    assert found == [("h-1x", 1), ("h-8x", 8)]


def test_a_comparison_without_prices_is_no_catalog() -> None:
    rows = "<tr><th>GPU</th><th>Memory</th><th>TFLOPS</th></tr>"
    rows += "<tr><td>H100</td><td>80 GB</td><td>989</td></tr><tr><td>A100</td><td>80 GB</td></tr>"
    assert len(read(TWO + f"<table>{rows}</table>").entries) == 2


def test_an_analytics_layer_is_no_catalog() -> None:
    layer = '<script>window.dataLayer=[{"gpu":"H100","price":1.0,"id":"x","count":8}]</script>'
    assert len(read(TWO + layer).entries) == 2


def test_embedded_state_beside_cards_adds_no_machine_that_they_do_not_show() -> None:
    machines = '[{"id":"x","gpu":"B200","gpus":8,"vram_gb":180,"price_per_hour":1}]'
    state = f'<script type="application/json">{{"items":{machines}}}</script>'
    assert {entry.sku for entry in read(TWO + state).entries} == {"a-1", "a-2"}
