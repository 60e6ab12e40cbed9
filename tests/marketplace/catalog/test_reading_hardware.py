"""Counts, sizes, links, stock, places and labels as providers write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.units import GB
from marketplace.catalog.reading.availability import read_stock, read_stock_field
from marketplace.catalog.reading.counts import read_count
from marketplace.catalog.reading.labels import classify
from marketplace.catalog.reading.links import (
    LinkReading,
    judge_link,
    read_fabric,
    read_form_factor,
    read_link,
    read_link_field,
    read_matrix,
)
from marketplace.catalog.reading.money import find_bare_amounts, find_money
from marketplace.catalog.reading.places import read_place
from marketplace.catalog.reading.prices import read_rates
from marketplace.catalog.reading.sizes import find_sizes, read_size
from marketplace.catalog.reading.subjects import leads_with_gpu, speaks_of_gpus

COUNTS = [
    ("8 × NVIDIA H100 SXM5 80GB", 8, 1, ""), ("4x L40S", 4, 1, ""), ("8×H200 141GB", 8, 1, ""),
    ("NVIDIA GeForce RTX 4090", 1, 1, ""), ("HGX node 8x H100", 8, 1, ""), ("H100 x8", 8, 1, ""),
    ("H100 ×8", 8, 1, ""), ("n3-H100x8", 8, 1, ""), ("gpu_8x_h100_sxm5", 8, 1, ""),
    ("8H100.80S.176V", 8, 1, ""), ("H100 (8x GPUs)", 8, 1, ""), ("8-GPU H100 server", 8, 1, ""),
    ("Octo H100", 8, 1, ""), ("Dual RTX 4090", 2, 1, ""), ("Quad L40S", 4, 1, ""),
    ("eight H100", 8, 1, ""), ("8*H100", 8, 1, ""), ("8 H100 GPUs", 8, 1, ""), ("A100-80G x 4", 4, 1, ""),
    ("10x RTX 4090", 10, 1, ""), ("8,000x H100", 8000, 1, ""), ("H100 SXM5 80 GB, 8 GPUs", 8, 1, ""),
    ("2x Intel Xeon, 4x A40", 4, 1, ""), ("NVIDIA H100 80GB PCIe x16", 1, 1, ""),
    ("16x H100 SXM 80GB (2 nodes)", 16, 2, ""), ("2 nodes × 8x H100", 16, 2, ""), ("2x 8x H100", 16, 2, ""),
    ("8x H100 80GB (per node, 4 nodes)", 32, 4, ""), ("2-node cluster, 16x H100", 16, 2, ""),
    ("1/4 A10", 1, 1, "1/4"), ("0.5x A100", 1, 1, "0.5x"), ("Half an A100 GPU", 1, 1, "Half"),
    ("A100 1g.10gb MIG", 1, 1, "1g.10gb"), ("DGX H100", None, 1, ""), ("up to 8x H100", None, 1, ""),
    ("99999999999x H100 80GB", 99999999999, 1, ""), ("0x H100", 0, 1, ""), ("-3x H100", -3, 1, ""),
    ("8x Zephyr 9000", 8, 1, ""), ('=HYPERLINK("//evil.example","8x L4 24GB")', 8, 1, ""),
]  # fmt: skip

SIZES = [
    ("2,048 GB DDR5", "ram", "unknown", 2048), ("8 × 3.84 TB NVMe", "disk", "unknown", 30720),
    ("1 GPU, 24 GB GDDR6X", "vram", "unknown", 24), ("GPU memory: 320 GB", "vram", "unknown", 320),
    ("GPU memory (total): 80 GB", "vram", "total", 80), ("1.5TB HBM3", "vram", "unknown", 1500),
    ("80 GB per GPU", "vram", "each", 80), ("80 GB VRAM each", "vram", "each", 80),
    ("640 GB total VRAM", "vram", "total", 640), ("80 GB je GPU", "vram", "each", 80),
    ("64 GB RAM per GPU", "ram", "each", 64), ("RAM: 512 GB", "ram", "unknown", 512),
    ("480 GB LPDDR5X unified", "other", "unknown", 480), ("10 TB traffic", "other", "unknown", 10000),
    ("1,800 GiB", "plain", "unknown", 1932.7352832), ("22 TiB local NVMe", "disk", "unknown", 24189.255811072),
    ("NVMe 2x3.84TB", "disk", "unknown", 7680), ("960 GB SSD", "disk", "unknown", 960),
    ("240G", "plain", "unknown", 240), ("512 Go de mémoire", "ram", "unknown", 512),
    ("1,5 TB Arbeitsspeicher", "ram", "unknown", 1500),
]  # fmt: skip

LINKS = [
    ("8x H100 SXM5 80GB", None), ("NVSwitch, every GPU to every GPU at 900 GB/s", "nvswitch"),
    ("4th-gen NVLink, all-to-all via NVSwitch", "nvswitch"), ("NVLink bridges between pairs", "nvlink_pairs"),
    ("paired with NVLink", "nvlink_pairs"), ("nvlink_pairs", "nvlink_pairs"),
    ("NVLink between GPU 0-1 and 2-3", "nvlink_pairs"), ("GPUs joined by an NVLink bridge", "nvlink_bridge"),
    ("8x H100-NVLink 80GB", "nvlink"), ("with NVLink!", "nvlink"), ("NVLink hybrid cube mesh", "nvlink"),
    ("no NVLink on this model; GPUs share PCIe Gen4 switches", "pcie"), ("NVLink not supported", "pcie"),
    ("GPUs communicate via PCIe", "pcie"), ("Infinity Fabric", "xgmi"), ("xGMI", "xgmi"),
    ("peer-to-peer between GPUs is disabled", "p2p_disabled"), ("P2P disabled by the driver", "p2p_disabled"),
    ("GPU peer-to-peer over PCIe enabled", "pcie_p2p"), ("3.2 Tb/s InfiniBand", None), ("NVLink-ready", None),
    ("NVLink optional", None), ("no NVSwitch", None), ("PCIe 5.0 x16 per GPU", None), ("NVLink-C2C to the CPU", None),
]  # fmt: skip

STOCK = [
    ("In stock", "available", None), ("Available", "available", None), ("3 available", "available", 3),
    ("sofort verfügbar", "available", None), ("Only 2 left", "limited", 2), ("Limited", "limited", None),
    ("Sold out", "sold_out", None), ("0 left", "sold_out", 0), ("Currently unavailable", "sold_out", None),
    ("nicht verfügbar", "sold_out", None), ("ausverkauft", "sold_out", None), ("Join the waitlist", "waitlist", None),
    ("Pre-order", "preorder", None), ("Pre-order. Ask for a quote.", "preorder", None),
    ("Available in 14 days", "lead_time", None), ("2-4 weeks", "lead_time", None), ("Lieferzeit 2 Wochen", "lead_time", None),
    ("Available Q1 2027", "lead_time", None), ("on request", "on_request", None), ("Contact sales", "on_request", None),
    ("Auf Anfrage", "on_request", None), ("Free egress", "unknown", None), ("NVLink available", "unknown", None),
    ("Frankfurt, DE", "unknown", None), ("8 × 3.84 TB NVMe", "unknown", None), ("Pricing soon", "unknown", None),
]  # fmt: skip

PLACES = [
    "Frankfurt, DE", "Oslo, NO", "Dallas, TX", "London, UK", "Ashburn, Virginia", "Frankfurt (Germany)",
    "eu-1", "us-east-1", "FRA1", "fsn1", "Dubai", "Dallas, Texas, USA",
]  # fmt: skip
NO_PLACES = ["In stock", "2 TB NVMe, fast", "DDR5", "H100", "SXM5", "A40", "Intel, AMD", "NVLink, NVSwitch",
             "224 vCPU", "Machine, big"]  # fmt: skip

LABELS = [
    ("GPU", "gpu"), ("GPUs", "gpu_count"), ("# GPUs", "gpu_count"), ("num_gpus", "gpu_count"),
    ("gpuCount", "gpu_count"), ("GPU memory", "vram"), ("vramGb", "vram"), ("VRAM (GB)", "vram"),
    ("gpu memory_mib_total", "vram_total"), ("Total VRAM", "vram_total"), ("GPU memory (total)", "vram_total"),
    ("RAM (GiB)", "ram"), ("RAM per GPU", "ram"), ("vCPU per GPU", "vcpu"), ("Arbeitsspeicher", "ram"),
    ("memory mib", "memory"), ("vCPUs", "vcpu"), ("CPU cores", "vcpu"), ("Local NVMe", "disk"), ("disk_bytes", "disk"),
    ("Interconnect", "link"), ("NVLink", "link"), ("Network", "fabric"), ("Location", "region"), ("Standort", "region"),
    ("Availability", "availability"), ("free", "quantity"), ("Ref", "sku"), ("slug", "sku"), ("$/hr", "price"),
    ("price_cents_hour", "price"), ("On-demand", "price"), ("1 year", "price"), ("Spot", "price"), ("price_basis", "basis"),
    ("currencyCode", "currency"), ("Machine", "title"), ("displayName", "title"), ("isHidden", "listed"),
    ("Cookie", "other"), ("Setup fee", "other"), ("Frankfurt", None), ("H100", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "gpus", "nodes", "fraction"), COUNTS)
def test_a_count_is_read_from(text: str, gpus: int | None, nodes: int, fraction: str) -> None:
    count = read_count(text)
    assert (count.gpus, count.nodes, count.fraction) == (gpus, nodes, fraction)


@pytest.mark.parametrize(("text", "kind", "scope", "gigabytes"), SIZES)
def test_a_size_is_read_from(text: str, kind: str, scope: str, gigabytes: float) -> None:
    (size,) = find_sizes(text)
    assert (size.kind.value, size.scope.value) == (kind, scope)
    assert size.total_bytes == pytest.approx(gigabytes * GB)


@pytest.mark.parametrize("text", ["900 GB/s", "3.2 Tb/s", "$0.05 per GB", "100 Gbps", "8x H100"])
def test_rates_and_counts_are_no_sizes(text: str) -> None:
    assert find_sizes(text) == []


def test_two_sizes_of_one_line_are_told_apart() -> None:
    kinds = [
        (size.words, size.kind.value) for size in find_sizes("RAM: 512 GB | Disk: 2 x 1.92 TB NVMe")
    ]
    assert kinds == [("512 GB", "ram"), ("2 x 1.92 TB", "disk")]


def test_a_bare_number_has_no_size_without_a_unit_in_its_header() -> None:
    assert read_size("512", "RAM") is None
    assert (size := read_size("1,800", "RAM (GiB)")) is not None
    assert size.total_bytes == 1800 * 2**30


@pytest.mark.parametrize(("text", "link"), LINKS)
def test_a_link_is_read_from(text: str, link: str | None) -> None:
    read = read_link([text]).link
    assert (read.value if read else None) == link


@pytest.mark.parametrize(
    ("value", "label", "link"),
    [("Yes", "NVLink", "nvlink"), ("✓", "NVLink", "nvlink"), ("no", "NVLink", "pcie"), ("–", "Interconnect", None),
     ("PCIe 5.0", "GPU link", "pcie"), ("NVSwitch", "Fabric", "nvswitch"), ("InfiniBand", "Interconnect", None),
     ("no", "P2P", "p2p_disabled"), ("unknown", "NVLink", None)],
)  # fmt: skip
def test_a_link_column_says(value: str, label: str, link: str | None) -> None:
    read = read_link_field(value, label).link
    assert (read.value if read else None) == link


def test_a_printed_matrix_is_a_claim_of_pairs() -> None:
    rows = ["GPU0  X  NV12  SYS  SYS", "GPU1  NV12  X  SYS  SYS", "GPU2  SYS  SYS  X  NV12"]
    assert (read := read_matrix(rows).link) is not None
    assert read.value == "nvlink_pairs"


@pytest.mark.parametrize(
    ("text", "form"),
    [("PCIe machines", "PCIe"), ("PCIe cards", "PCIe"), ("SXM machines (NVSwitch)", "SXM"), ("OAM modules", "OAM"),
     ("GPUs share PCIe Gen4 switches", None), ("PCIe 5.0 x16", None), ("NVLink", None)],
)  # fmt: skip
def test_a_form_factor_is_said_of_the_cards_only(text: str, form: str | None) -> None:
    assert read_form_factor([text]) == form


def test_a_network_joins_machines_not_gpus() -> None:
    assert read_fabric(["8x H100", "3.2 Tb/s InfiniBand"]) == "3.2 Tb/s InfiniBand"


@pytest.mark.parametrize(
    ("words", "model", "form", "count", "codes"),
    [
        ("NVLink", "RTX 4090", None, 4, [Code.IMPLAUSIBLE_LINK]),
        ("NVSwitch", "H100", "PCIe", 8, [Code.IMPLAUSIBLE_LINK]),
        ("NVLink", "H100", "PCIe", 8, [Code.LINK_SCOPE_UNKNOWN]),
        ("NVLink", "RTX A6000", None, 4, [Code.LINK_SCOPE_UNKNOWN]),
        ("NVLink between all four", "RTX A6000", None, 4, []),
        ("NVLink bridges between pairs", "H100", "PCIe", 8, [Code.LINK_PAIRS_ONLY]),
        ("an NVLink bridge", "A100", "PCIe", 2, []),
        ("NVSwitch", "H100", "SXM5", 8, []),
        ("nothing", "H100", "SXM5", 8, [Code.FORM_FACTOR_ONLY]),
        ("nothing", "H100", "SXM5", 1, []),
    ],
)  # fmt: skip
def test_a_claim_leaves_open(
    words: str, model: str, form: str | None, count: int, codes: list[Code]
) -> None:
    reading: LinkReading = read_link([words])
    assert [found.code for found in judge_link(reading, model, form, count)] == codes


@pytest.mark.parametrize(("text", "state", "quantity"), STOCK)
def test_stock_words(text: str, state: str, quantity: int | None) -> None:
    stock = read_stock(text)
    assert (stock.state.value, stock.quantity) == (state, quantity)


@pytest.mark.parametrize(
    ("value", "state"),
    [("https://schema.org/InStock", "available"), ("LimitedAvailability", "limited"), ("OutOfStock", "sold_out"),
     ("0", "sold_out"), ("1", "limited"), ("12", "available"), ("yes", "available"), ("-5", "unknown"), ("–", "unknown")],
)  # fmt: skip
def test_a_stock_column_says(value: str, state: str) -> None:
    assert read_stock_field(value).state.value == state


@pytest.mark.parametrize("text", PLACES)
def test_a_place_is_read(text: str) -> None:
    assert read_place(text) == text


@pytest.mark.parametrize("text", NO_PLACES)
def test_other_words_are_no_place(text: str) -> None:
    assert read_place(text) is None


@pytest.mark.parametrize(("text", "attribute"), LABELS)
def test_a_label_names(text: str, attribute: str | None) -> None:
    read = classify(text)
    assert (read.value if read else None) == attribute


@pytest.mark.parametrize(
    ("text", "leads"),
    [("8 × NVIDIA H100 SXM5 80GB", True), ("HGX node 8x H100", True), ("NVIDIA L4", True), ("GPU: A40", True),
     ("Earn $500 credit for every 8 × H100 customer you bring.", False), ("Is the A100 in stock?", False),
     ("Refer a friend", False), ("8x Н100 80GB", False)],
)  # fmt: skip
def test_a_machine_line_begins_with_its_gpu(text: str, leads: bool) -> None:
    assert leads_with_gpu(text) == leads


@pytest.mark.parametrize(
    ("text", "speaks"),
    [("8x Halyard X1", True), ("NVIDIA Zephyr 9000", True), ("CPU only", False), ("2x Intel Xeon", False),
     ("General purpose 64", False), ("4x 3.84 TB NVMe", False)],
)  # fmt: skip
def test_an_unknown_card_is_told_from_a_machine_without_gpu(text: str, speaks: bool) -> None:
    assert speaks_of_gpus(text) == speaks


READERS = (find_sizes, read_count, read_stock, read_stock_field, read_place, classify, leads_with_gpu,
           speaks_of_gpus, read_rates, lambda text: list(read_link([text])  .words),
           lambda text: list(find_money(text)), lambda text: list(find_bare_amounts(text)))  # fmt: skip
BAIT = ("1", "$1 ", "1,", "1 ", "8x ", "per ", "GPU ", "H100 ", "from ", "(((", "a-", "NVLink pair ", "/", "only 1 left ",
        "Frankfurt, ", "p2p ", "1 TB ", "é", "\u202e", "year 1 ")  # fmt: skip


@pytest.mark.parametrize("piece", BAIT)
def test_a_megabyte_of_bait_is_read_within_a_second(piece: str) -> None:
    bait = (piece * (1_000_000 // len(piece)))[:1_000_000]
    for reader in READERS[:9]:
        started = time.process_time()
        reader(bait)
        assert time.process_time() - started < 1, reader


@given(st.text(max_size=300))
def test_no_text_breaks_a_reader(text: str) -> None:
    for reader in READERS:
        reader(text)
