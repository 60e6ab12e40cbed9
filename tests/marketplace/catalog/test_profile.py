"""A profile says where a source's rows are and what its words mean; a page can suggest one."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.prices import Basis, TimeUnit
from evaluator.units import GB
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.base import Page, UnreadablePage
from marketplace.catalog.document import read_document
from marketplace.catalog.profile import InvalidProfile, Profile, read_profile
from marketplace.catalog.proposing import propose_profile
from marketplace.catalog.selectors import InvalidSelector, select, to_xpath

OURS = sorted((Path(__file__).parents[2] / "samples" / "pages").glob("*.html"))

ODD = """<html><body><p>Prices in this list are what they are.</p>
<div class=thing data-ref=u1><b>8x NVIDIA H100 80GB</b><i class=r>Oslo</i>
<em class=amount>19.20</em>
<s class=amount2>99</s></div>
<div class=thing data-ref=u2><b>4x NVIDIA L40S 48GB</b><i class=r>Bergen</i>
<em class=amount>4.40</em></div>
</body></html>"""

STATE = """<html><body><div id=app></div><script type="application/json">
{"props": {"plans": [
 {"code": "p8", "chip": "NVIDIA H100 80GB", "n": 8, "eur": 18.5, "town": "Oslo"},
 {"code": "p1", "chip": "NVIDIA L4 24GB", "n": 1, "eur": 0.61, "town": "Bergen"}
]}}</script></body></html>"""


def page(text: str) -> Page:
    return Page("https://rent.example/list", text.encode(), "text/html; charset=utf-8")


def profile(**keys: Any) -> Profile:
    return read_profile(keys)


def test_an_empty_document_is_the_profile_of_a_source_that_nobody_curates() -> None:
    assert read_profile({}) == Profile()
    assert Profile().as_json() == {}


def test_fields_take_texts_below_a_row_and_attributes_of_it() -> None:
    fields = {"gpu": "b", "region": "i.r", "price": ".amount", "sku": "@data-ref"}
    given = profile(rows="div.thing", fields=fields, currency="NOK", unit="hour", basis="machine")
    eight, four = PageAdapter(given).read([page(ODD)]).entries
    assert (eight.sku, eight.region, eight.gpu_count) == ("u1", "Oslo", 8)
    (quote,) = eight.quotes
    assert (quote.amount, quote.currency, quote.unit, quote.basis) == (
        Decimal("19.20"),
        "NOK",
        TimeUnit.HOUR,
        Basis.MACHINE,
    )
    assert four.vram_bytes_per_gpu == 48 * GB


def test_a_path_leads_to_the_list_in_the_state_of_a_page() -> None:
    fields = {"sku": "code", "gpu": "chip", "gpu_count": "n", "price": "eur", "region": "town"}
    given = profile(path="props.plans", fields=fields, currency="EUR", unit="hour", basis="gpu")
    eight, one = PageAdapter(given).read([page(STATE)]).entries
    assert [(each.sku, each.gpu_count) for each in (eight, one)] == [("p8", 8), ("p1", 1)]
    assert (eight.quotes[0].amount, eight.quotes[0].basis) == (Decimal("18.5"), Basis.GPU)


def test_what_a_page_says_of_its_prices_outweighs_the_profile() -> None:
    said = ODD.replace("19.20", "€19.20 per GPU/h").replace("4.40", "€4.40 per GPU/h")
    read = PageAdapter(profile(currency="NOK", basis="machine")).read([page(said)])
    quotes = [quote for one in read.entries for quote in one.quotes]
    assert {(quote.currency, quote.basis) for quote in quotes} == {("EUR", Basis.GPU)}


def test_a_label_means_what_the_curator_says() -> None:
    text = """<table><tr><th>Machine<th>Chassis slots<th>Rate</tr>
    <tr><td>NVIDIA H100 80GB<td>8<td>$19.20/hr<tr><td>NVIDIA H100 80GB<td>4<td>$9.60/hr</table>"""
    given = profile(labels={"Chassis slots": "gpu_count"})
    read = PageAdapter(given).read([page(text)])
    assert sorted(one.gpu_count or 0 for one in read.entries) == [4, 8]


def test_rows_that_are_not_there_are_a_changed_layout() -> None:
    with pytest.raises(UnreadablePage) as caught:
        PageAdapter(profile(rows="article.plan")).read([page(ODD)])
    assert caught.value.finding.code is Code.LAYOUT_CHANGED


def test_a_profile_of_rows_reads_no_other_rows() -> None:
    """Beside the named rows a page may hold decoys that the general reader would take."""
    decoy = ODD.replace("</body>", "<div class=ad><b>8x NVIDIA H200</b> $1.00/hr</div></body>")
    fields = {"gpu": "b", "price": ".amount"}
    read = PageAdapter(profile(rows="div.thing", fields=fields)).read([page(decoy)])
    assert len(read.entries) == 2


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"expected_count": 5}, Code.COUNT_MISMATCH),
        ({"required": ["vcpus"]}, Code.STRUCTURE_CHANGED),
        ({"fingerprint": "0" * 16}, Code.STRUCTURE_CHANGED),
        ({"expected_count": 4, "required": ["gpu_model"]}, None),
    ],
)
def test_pages_that_are_not_as_the_profile_says_are_held(
    keys: dict[str, Any], code: Code | None
) -> None:
    hold = PageAdapter(profile(**keys)).read([page(ODD.replace("19.20", "$19.20/hr"))]).hold
    assert (hold.code if hold else None) is code


def test_the_fingerprint_stays_while_only_values_change() -> None:
    adapter = PageAdapter(profile(rows="div.thing"))
    before = adapter.read([page(ODD)]).fingerprint
    assert adapter.read([page(ODD.replace("Oslo", "Turku"))]).fingerprint == before
    renamed = ODD.replace("<i class=r>", "<p>Region: ")
    assert adapter.read([page(renamed)]).fingerprint != before


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_a_proposal_reads_its_own_page_as_before_and_holds_nothing(path: Path) -> None:
    pages = [Page("https://rent.example/", path.read_bytes(), "text/html")]
    proposed = propose_profile(pages)
    assert read_profile(proposed.as_json()) == proposed
    plain, guided = PageAdapter().read(pages), PageAdapter(proposed).read(pages)
    assert guided.hold is None
    assert {one.sku for one in guided.entries} == {one.sku for one in plain.entries}
    assert proposed.expected_count == len(plain.entries) + len(plain.quarantined)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "profile: read list, expected an object."),
        ({"row": "x"}, "row: unknown key, expected one of rows, path"),
        ({"rows": 3}, "rows: read '3', expected a selector."),
        ({"rows": "div:hover"}, "rows: read 'div:hover', expected tags"),
        ({"rows": "a", "path": "b"}, "rows and path: both are set, expected one of them."),
        ({"rows": "a", "fields": {"price": "//x"}}, "fields.price: read '//x'"),
        ({"fields": {"prize": "x"}}, "fields: read \"{'prize': 'x'}\", expected an object"),
        ({"labels": {"Rate": "prize"}}, "labels: read"),
        ({"basis": "node"}, "basis: read 'node', expected one of machine, gpu, unknown."),
        ({"basis": ["gpu"]}, "basis: read \"['gpu']\""),
        ({"currency": "dollars"}, "currency: read 'dollars', expected three letters"),
        ({"expected_count": -1}, "expected_count: read '-1', expected a whole number above 0."),
        ({"expected_count": True}, "expected_count: read 'True'"),
        ({"required": ["price"]}, "required: read \"['price']\", expected a list of any of"),
    ],
)
def test_a_mistake_names_the_key_what_was_read_and_what_was_expected(
    document: Any, message: str
) -> None:
    with pytest.raises(InvalidProfile) as caught:
        read_profile(document)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("li", ["a", "b", "c"]),
        ("ul.x > li", ["a", "b"]),
        ("#o li", ["c"]),
        ("li:nth-child(2)", ["b"]),
        ("li[data-k=two words]", ["b"]),
        ("li[data-k].y", ["b"]),
        ("*.y", ["b", "c"]),
        ("div  >  ol", ["c"]),
    ],
)
def test_the_selectors_that_are_understood(selector: str, found: list[str]) -> None:
    html = (
        "<div><ul class='w x'><li>a<li class=y data-k='two words'>b</ul>"
        "<ol id=o><li class='y z'>c</ol></div>"
    )
    root = read_document(html.encode()).root
    assert ["".join(one.itertext()).strip() for one in select(root, selector)] == found


@given(st.text(max_size=60))
def test_any_text_is_a_selector_or_is_refused(text: str) -> None:
    try:
        to_xpath(text)
    except InvalidSelector:
        return
    assert select(read_document(b"<p>x</p>").root, text) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([*Profile().__dataclass_fields__, "other"])


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_any_document_is_a_profile_or_is_refused(document: dict[str, Any]) -> None:
    try:
        made = read_profile(document)
    except InvalidProfile:
        return
    assert read_profile(made.as_json()) == made
