"""What the bundled pages must come out as: every trap in small, and enough to choose from."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pytest

from evaluator.findings import Code
from evaluator.machine import LinkClass
from evaluator.prices import Purchase, machine_per_hour
from evaluator.units import GB
from marketplace.catalog.base import Batch, Entry, Page
from marketplace.catalog.registry import SAMPLES, adapter_for
from marketplace.samples.server import ROUTES

HOST = "http://127.0.0.1:8811"

MACHINES = {
    "sample-brackwater": {
        "bw-4090x1": ("RTX 4090", 1, 24),
        "bw-4090x8": ("RTX 4090", 8, 24),
        "bw-l40sx1": ("L40S", 1, 48),
        "bw-l40sx4": ("L40S", 4, 48),
        "bw-a6000x2": ("RTX A6000", 2, 48),
        "bw-a100x1": ("A100", 1, 80),
        "bw-a100x8": ("A100", 8, 80),
        "bw-h100x1": ("H100", 1, 80),
        "bw-h100x8": ("H100", 8, 80),
        "bw-h100x8-fabric": ("H100", 8, 80),
        "bw-h200x8": ("H200", 8, 141),
        "bw-b200x8": ("B200", 8, 180),
        "bw-b300x1": ("B300", 1, 288),
        "bw-mi300x8": ("MI300X", 8, 192),
        "bw-l4x4": ("L4", 4, 24),
        "bw-odd-name": ("L40S", 2, 48),
    },
    "sample-ostrava-forge": {
        "of-h200-8": ("H200", 8, 141),
        "of-h100-8": ("H100", 8, 80),
        "of-h100-4": ("H100", 4, 80),
        "of-a100-8": ("A100", 8, 80),
        "of-a100-4": ("A100", 4, 80),
        "of-a100-2": ("A100", 2, 80),
        "of-l40s-8": ("L40S", 8, 48),
        "of-l40s-4": ("L40S", 4, 48),
        "of-l40s-2": ("L40S", 2, 48),
        "of-l40s-1": ("L40S", 1, 48),
        "of-pro6000-4": ("RTX PRO 6000", 4, 96),
        "of-pro6000-1": ("RTX PRO 6000", 1, 96),
        "of-m-a40-4": ("A40", 4, 48),
        "of-m-a5000-2": ("RTX A5000", 2, 24),
        "of-m-4000sff": ("RTX 4000 SFF Ada", 1, 20),
    },
    "sample-tern-and-vale": {
        "tv-01": ("H100", 8, 80),
        "tv-02": ("H200", 8, 141),
        "tv-03": ("MI300X", 8, 192),
        "tv-04": ("H100", 16, 80),
        "tv-05": ("A100", 2, 80),
        "tv-06": ("RTX 3090", 4, 24),
        "tv-07": ("A100", 4, 40),
        "tv-08": ("L4", 1, 24),
        "tv-09": ("RTX 4090", 1, 48),
        "tv-10": ("GH200", 1, 96),
        "tv-11": ("V100", 8, None),
        "tv-12": ("H100", 4, 80),
        "tv-13": ("H100", 8, 80),
        "tv-14": ("H100 NVL", 2, 94),
        "tv-15": ("RTX A5000", 8, 24),
        "tv-16": ("L40S", 4, 48),
        "tv-17": ("A100", 8, 80),
        "tv-18": ("RTX 6000 Ada", 1, 48),
    },
    "sample-quarrylight": {
        "ql-8x-h100": ("H100", 8, 80),
        "ql-8x-h200": ("H200", 8, 141),
        "ql-8x-b200": ("B200", 8, 180),
        "ql-4x-a6000": ("RTX A6000", 4, 48),
        "ql-2x-l4": ("L4", 2, 24),
        "ql-1x-h100": ("H100", 1, 80),
        "ql-1x-a100": ("A100", 1, 40),
        "ql-2x-5090": ("RTX 5090", 2, 32),
        "ql-8x-mystery": (None, 8, None),
    },
}
EACH_SAMPLE = pytest.mark.parametrize("key", MACHINES)


@cache
def batch_of(key: str) -> Batch:
    """All pages of one sample, followed as a visit follows them."""
    sample = next(sample for sample in SAMPLES if sample.key == key)
    adapter = adapter_for(sample.adapter)
    pages: dict[str, Page] = {}
    address: str | None = sample.address(HOST)
    while address and address not in pages:
        pages[address] = Page(address, _body(address), "text/html; charset=utf-8")
        address = adapter.next_page(pages[address])
    return adapter.read(tuple(pages.values()))


def _body(address: str) -> bytes:
    name = ROUTES[address.removeprefix(HOST)]
    return files("marketplace.samples").joinpath("pages", name).read_bytes()


def entries() -> list[Entry]:
    return [found for key in MACHINES for found in batch_of(key).entries]


def entry(sku: str) -> Entry:
    return next(found for found in entries() if found.sku == sku)


def codes(sku: str) -> set[Code]:
    return {item.code for item in entry(sku).findings}


@EACH_SAMPLE
def test_each_machine_is_read_as_what_it_is(key: str) -> None:
    found = {
        each.sku: (
            each.gpu_model,
            each.gpu_count,
            each.vram_bytes_per_gpu and each.vram_bytes_per_gpu // GB,
        )
        for each in batch_of(key).entries
    }
    assert found == MACHINES[key]


@EACH_SAMPLE
def test_a_sample_is_read_whole(key: str) -> None:
    assert batch_of(key).complete
    assert batch_of(key).quarantined == ()


def test_about_sixty_machines_are_listed() -> None:
    assert 55 <= len(entries()) <= 70


def in_dollars(found: Entry) -> bool:
    return any(
        quote.currency == "USD"
        and quote.purchase is Purchase.ON_DEMAND
        and machine_per_hour(quote, found.gpu_count)
        for quote in found.quotes
    )


@pytest.mark.parametrize(("gpus", "vram_gb"), [(1, 24), (8, 80)])
def test_ten_machines_in_dollars_for_every_preset(gpus: int, vram_gb: int) -> None:
    """8B fits one card of 24 GB; 70B in training wants eight of 80 GB, or several such machines."""
    fitting = [
        found
        for found in entries()
        if in_dollars(found)
        and (found.gpu_count or 0) >= gpus
        and (found.vram_bytes_per_gpu or 0) >= vram_gb * GB
    ]
    assert len(fitting) >= 12


@pytest.mark.parametrize(
    ("sku", "code"),
    [
        ("bw-h100x8", Code.FORM_FACTOR_ONLY),
        ("bw-h200x8", Code.PRICE_MISSING),
        ("bw-b200x8", Code.VRAM_TOTAL_DIVIDED),
        ("of-m-a40-4", Code.NOT_HOURLY),
        ("tv-01", Code.VRAM_TOTAL_DIVIDED),
        ("tv-04", Code.MULTI_NODE),
        ("tv-05", Code.VRAM_AMBIGUOUS),
        ("tv-09", Code.VRAM_NONSTANDARD),
        ("tv-11", Code.VRAM_UNKNOWN),
        ("tv-12", Code.BASIS_UNKNOWN),
        ("tv-13", Code.LINK_PAIRS_ONLY),
        ("tv-16", Code.PRICE_FROM),
        ("tv-17", Code.NO_ON_DEMAND_PRICE),
        ("ql-2x-l4", Code.PRICE_MISSING),
        ("ql-4x-a6000", Code.LINK_PAIRS_ONLY),
        ("ql-8x-mystery", Code.GPU_UNKNOWN),
    ],
)
def test_each_trap_has_its_finding(sku: str, code: Code) -> None:
    assert code in codes(sku)


@pytest.mark.parametrize(
    ("sku", "link"),
    [
        ("bw-h100x8", None),
        ("bw-h100x8-fabric", LinkClass.NVSWITCH),
        ("bw-mi300x8", LinkClass.XGMI),
        ("of-h100-8", LinkClass.NVSWITCH),
        ("tv-15", LinkClass.P2P_DISABLED),
        ("ql-8x-h100", None),
        ("ql-8x-h200", LinkClass.NVSWITCH),
    ],
)
def test_a_link_is_what_words_say_and_no_more(sku: str, link: LinkClass | None) -> None:
    assert entry(sku).link is link


def test_other_currencies_stay_beside_the_dollar() -> None:
    currencies = {quote.currency for found in entries() for quote in found.quotes}
    assert currencies == {"USD", "EUR", "AED"}


def test_spot_and_term_are_not_the_hourly_price() -> None:
    prices = {quote.purchase: str(quote.amount) for quote in entry("of-h100-8").quotes}
    assert prices == {
        Purchase.ON_DEMAND: "2.69",
        Purchase.RESERVED: "2.05",
        Purchase.SPOT: "1.35",
    }


def test_a_name_made_of_markup_is_only_text() -> None:
    title = entry("bw-odd-name").title
    assert "<script>alert('brackwater')</script>" in title
    assert "a catalog ran a script" not in title


def test_a_staff_price_and_a_hidden_card_are_no_listings() -> None:
    listed = {found.sku for found in entries()}
    assert not listed & {"bw-staff-only", "ql-staff", "ql-cpu-64", "bw-cpu-256"}


def test_a_machine_on_two_pages_is_one_listing() -> None:
    skus = [found.sku for found in batch_of("sample-tern-and-vale").entries]
    assert len(skus) == len(set(skus)) == 18
