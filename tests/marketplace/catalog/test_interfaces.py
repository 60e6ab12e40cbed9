"""Provider interfaces by their documented fields: units, traps, and one set of invariants."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.machine import Availability, LinkClass
from evaluator.prices import Basis, Purchase
from evaluator.units import GB, GIB, MIB, TB
from marketplace.catalog.base import Batch, Entry, Page, UnreadablePage
from marketplace.catalog.registry import (
    ACCESS,
    ADAPTERS,
    DEFINITIONS,
    HOSTNOT_PROFILE,
    INTERFACES,
    adapter_for,
)

SAMPLES = Path(__file__).parents[2] / "samples"
FOLDER = SAMPLES / "interfaces"
NAMES = sorted(ACCESS)
LAYOUTS = sorted((SAMPLES / "hostnot").glob("*.html"))


def answers(name: str) -> list[Any]:
    files = sorted(FOLDER.glob(f"{name}*.json"))
    return [json.loads(file.read_text("utf-8")) for file in files]


def pages(bodies: list[Any]) -> list[Page]:
    return [
        Page(f"https://api.example/{number}", json.dumps(body).encode(), "application/json")
        for number, body in enumerate(bodies)
    ]


def read(name: str, change: Callable[[list[Any]], None] = lambda _bodies: None) -> Batch:
    bodies = answers(name)
    change(bodies)
    return adapter_for(name).read(pages(bodies))


def entry(batch: Batch, sku: str, region: str | None = None) -> Entry:
    found = [one for one in batch.entries if one.sku == sku and region in (None, one.region)]
    assert len(found) == 1
    return found[0]


def prices(one: Entry) -> list[tuple[Decimal, Basis, Purchase]]:
    return [(quote.amount, quote.basis, quote.purchase) for quote in one.quotes]


def test_vast_shares_the_host_and_counts_memory_of_each_gpu() -> None:
    shared = entry(read("vast"), "502-2x")
    assert (shared.vram_bytes_per_gpu, shared.vram_reported_bytes) == (24 * GB, 24564 * MIB)
    assert (shared.vcpus, shared.ram_bytes, shared.region) == (16, 262144 * MIB // 4, "US")
    assert prices(shared) == [(Decimal("0.72"), Basis.MACHINE, Purchase.ON_DEMAND)]


def test_vast_measured_the_link_of_one_host_and_not_of_another() -> None:
    batch = read("vast")
    assert entry(batch, "501-8x").link is LinkClass.NVLINK
    assert entry(batch, "502-2x").link is None


def test_vast_leaves_the_share_of_a_host_of_unknown_size_unknown() -> None:
    rented = entry(read("vast"), "503-4x")
    assert (rented.ram_bytes, rented.availability) == (None, Availability.SOLD_OUT)


def test_a_price_that_is_no_number_sets_one_row_aside_with_its_words() -> None:
    (row,) = read("vast").quarantined
    assert (row.sku, row.reason.code) == ("90004", Code.VALUE_OUT_OF_RANGE)
    assert '"dph_base": "n/a"' in row.words["row"]


def test_runpod_prices_count_each_gpu_and_tiers_are_machines_of_their_own() -> None:
    batch = read("runpod")
    eight = entry(batch, "nvidia-h100-80gb-hbm3-8x-secure")
    assert (eight.gpu_count, eight.ram_bytes, eight.quotes[0].amount) == (
        8, 1005 * GB, Decimal("2.79"),
    )  # fmt: skip
    assert {quote.basis for one in batch.entries for quote in one.quotes} == {Basis.GPU}
    assert entry(batch, "nvidia-l40s-1x-community").quotes[0].amount == Decimal("0.79")


def test_runpod_counts_without_stock_or_beyond_the_most_are_not_offered() -> None:
    batch = read("runpod")
    assert batch.left_out == {"not offered now": 1}
    assert not any("l40s-8x" in one.sku or "h100-80gb-hbm3-4x" in one.sku for one in batch.entries)


def test_lambda_prices_are_cents_and_counts_have_two_digits() -> None:
    batch = read("lambda")
    sixteen = entry(batch, "gpu_16x_b200_sxm6")
    assert (sixteen.gpu_count, sixteen.quotes[0].amount) == (16, Decimal("79.84"))
    assert (sixteen.availability, sixteen.region) == (Availability.SOLD_OUT, "")
    assert entry(batch, "gpu_8x_h100_sxm5", "us-west-1").ram_bytes == 1800 * GIB
    assert batch.left_out == {"no GPU named": 1}


def test_shadeform_reads_the_form_apart_from_the_link() -> None:
    batch = read("shadeform")
    linked = entry(batch, "fjordcloud/fj-8h100", "oslo-1")
    assert (linked.form_factor, linked.link) == ("SXM5", LinkClass.NVLINK)
    assert linked.quotes[0].amount == Decimal("19.2")
    slots = entry(batch, "kestrel/k4")
    assert (slots.form_factor, slots.link, slots.availability) == (
        "PCIe", None, Availability.UNKNOWN,
    )  # fmt: skip


def test_prime_intellect_memory_is_divided_where_only_a_total_fits() -> None:
    batch = read("prime-intellect")
    eight = entry(batch, "lowland/pi-8x-a100")
    assert (eight.vram_bytes_per_gpu, eight.ram_bytes) == (80 * GB, 960 * GB)
    spot = entry(batch, "dunes/pi-1x-l40s-spot")
    assert (prices(spot)[0][2], spot.region) == (Purchase.SPOT, "IS")
    assert Code.NO_ON_DEMAND_PRICE in {one.code for one in spot.findings}


def test_hyperstack_prices_are_texts_in_another_answer_per_gpu() -> None:
    batch = read("hyperstack")
    assert prices(entry(batch, "n3-A100x8")) == [(Decimal("1.35"), Basis.GPU, Purchase.ON_DEMAND)]
    assert entry(batch, "n3-A100x1").availability is Availability.UNKNOWN
    assert entry(batch, "n3-H100-SXM5x8").local_storage_bytes == 32 * TB


def test_hyperstack_names_its_price_book_as_the_page_that_follows() -> None:
    adapter = adapter_for("hyperstack")
    (flavors, book) = pages(answers("hyperstack"))
    first = Page("https://api.example/v1/core/flavors", flavors.body)
    assert adapter.next_page(first) == "https://api.example/v1/pricebook"
    assert adapter.next_page(Page("https://api.example/v1/pricebook", book.body)) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body", [b"", b"<html>login</html>", b"{}", b"[]", b"null", b'{"error": "x"}', b"[" * 90_000]
)
def test_an_answer_without_offers_is_unreadable_and_no_empty_catalog(
    name: str, body: bytes
) -> None:
    with pytest.raises(UnreadablePage):
        adapter_for(name).read([Page("https://api.example/", body)])


# --- one set of invariants for every adapter


def check(batch: Batch) -> None:
    for one in batch.entries:
        assert one.sku
        assert one.title
        assert all(quote.amount > 0 and quote.amount.is_finite() for quote in one.quotes)
        assert one.gpu_count is None or one.gpu_count > 0
        assert one.gpu_model is None or one.gpu_model != "NVIDIA"
        assert one.vram_bytes_per_gpu is None or GB <= one.vram_bytes_per_gpu <= 1000 * GB
        assert one.vcpus is None or 0 < one.vcpus <= 16_384
        assert one.ram_bytes is None or 0 < one.ram_bytes <= 256 * 1024 * GB
        assert one.quotes or {Code.PRICE_MISSING, Code.UNIT_UNKNOWN} & {
            each.code for each in one.findings
        }
        assert one.link is None or one.gpu_count != 1
    keys = [(one.sku, one.region, one.zone, one.vram_bytes_per_gpu) for one in batch.entries]
    assert len(keys) == len(set(keys))


def recorded(name: str) -> list[tuple[dict[str, Any], list[Page]]]:
    """Every recorded sample that an adapter reads, with the profile that goes with it."""
    if name == "page":
        given = [(HOSTNOT_PROFILE, file) for file in LAYOUTS]
        given += [({}, file) for file in sorted((SAMPLES / "pages").glob("*.html"))]
    elif name == "import":
        folder = SAMPLES / "imports"
        given = [
            (
                json.loads((folder / f"{kind}.profile.json").read_text("utf-8")),
                folder / f"list.{kind}",
            )
            for kind in ("csv", "json")
        ]
    elif name == "skypilot":
        given = [({}, SAMPLES / "imports" / "skypilot.csv")]
    else:
        return [({}, pages(answers(name)))]
    return [
        (dict(profile), [Page("https://rent.example/", file.read_bytes())])
        for profile, file in given
    ]


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_adapter_keeps_the_invariants_on_its_recorded_samples(name: str) -> None:
    samples = recorded(name)
    assert samples
    for profile, bodies in samples:
        batch = adapter_for(name, profile).read(bodies)
        assert batch.entries
        check(batch)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["", "n/a", "0", "-1", "1e400", "NaN", "8x H100", [], {}, [{}], {"a": 1}]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found.append((*path, key))
        if isinstance(inner, (dict, list)):
            found += places(inner, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_field_may_hold_anything_and_the_invariants_stay(
    name: str, data: st.DataObject
) -> None:
    bodies = copy.deepcopy(answers(name))
    put(bodies, data.draw(st.sampled_from(places(bodies))), data.draw(SCALARS))
    try:
        check(adapter_for(name).read(pages(bodies)))
    except UnreadablePage:
        return


# --- the directory whose markup nobody has seen


@pytest.mark.parametrize("file", LAYOUTS, ids=lambda file: file.stem)
def test_the_directory_is_read_in_each_plausible_layout(file: Path) -> None:
    batch = adapter_for("page", HOSTNOT_PROFILE).read(
        [Page("https://dir.example/gpus", file.read_bytes())]
    )
    eight = entry(batch, "dxb-h100-8")
    assert (eight.gpu_model, eight.gpu_count, eight.vram_bytes_per_gpu) == ("H100", 8, 80 * GB)
    assert (eight.vcpus, eight.ram_bytes, eight.local_storage_bytes) == (192, 1536 * GB, 15 * TB)
    assert (eight.region, eight.quantity) == ("Dubai", 2)
    assert (eight.quotes[0].amount, eight.quotes[0].currency) == (Decimal(66), "AED")
    assert entry(batch, "dxb-l40s-1").availability is Availability.SOLD_OUT
    assert "Bare metal" in " ".join(eight.words.values())
    assert (len(batch.entries), batch.hold) == (3, None)


def test_a_directory_of_other_fields_is_held() -> None:
    """Cards that name a GPU and a price, but neither count nor memory, are no directory."""
    text = "".join(
        f"<article><h3>HGX {name}</h3><p>$2.00 per hour</p></article>"
        for name in ("H100", "H200", "A100")
    )
    batch = adapter_for("page", HOSTNOT_PROFILE).read(
        [Page("https://dir.example/gpus", f"<html><body>{text}</body></html>".encode())]
    )
    assert batch.hold is not None
    assert batch.hold.code is Code.STRUCTURE_CHANGED


def test_a_directory_that_names_no_machine_is_unreadable() -> None:
    with pytest.raises(UnreadablePage):
        adapter_for("page", HOSTNOT_PROFILE).read(
            [Page("https://dir.example/gpus", b"<html><p>Soon")]
        )


def test_interfaces_are_off_and_the_directory_too() -> None:
    assert not any(one.enabled for one in (*INTERFACES, *DEFINITIONS) if not one.bundled)
    assert {one.adapter for one in INTERFACES} == set(ACCESS)


def test_a_key_stands_in_the_header_that_the_provider_documents() -> None:
    assert ACCESS["lambda"].headers("k") == {"Authorization": "Bearer k"}
    assert ACCESS["hyperstack"].headers("k") == {"api_key": "k"}
    assert ACCESS["vast"].headers("") == {"Content-Type": "application/json"}
