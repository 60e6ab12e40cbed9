"""Rows of a SkyPilot file: what is read, what is refused with a reason, what is left out."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.machine import Availability, LinkClass
from evaluator.prices import Basis, Purchase, TimeUnit
from evaluator.units import GB, GIB
from marketplace.catalog.adapters.skypilot import COLUMNS, SkyPilotAdapter
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage

HEADER = (*COLUMNS, "vCPUs", "MemoryGiB", "SpotPrice", "AvailabilityZone")
H100_8 = {
    "InstanceType": "h100x8",
    "AcceleratorName": "H100",
    "AcceleratorCount": "8.0",
    "GpuInfo": "{'Gpus': [{'Name': 'H100', 'MemoryInfo': {'SizeInMiB': 81920}}]}",
    "Price": "19.20",
    "Region": "eu-1",
    "vCPUs": "208.0",
    "MemoryGiB": "1800",
    "SpotPrice": "",
    "AvailabilityZone": "",
}


def gpu_info(size: object, name: str = "H100") -> str:
    return f"{{'Gpus': [{{'Name': '{name}', 'MemoryInfo': {{'SizeInMiB': {size}}}}}]}}"


def body_of(*rows: dict[str, str], header: tuple[str, ...] = HEADER) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, header, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(H100_8 | row for row in rows)
    return text.getvalue().encode()


def read_bytes(body: bytes) -> Batch:
    return SkyPilotAdapter().read([Page("https://feed.example/vms.csv", body, "text/csv")])


def read(*rows: dict[str, str]) -> Batch:
    return read_bytes(body_of(*rows))


def entry(**row: str) -> Entry:
    batch = read(row)
    assert not batch.quarantined, batch.quarantined[0].reason.sentence
    (found,) = batch.entries
    return found


def refused(**row: str) -> Quarantined:
    batch = read(row)
    assert not batch.entries
    (found,) = batch.quarantined
    return found


def codes(found: Entry) -> set[Code]:
    return {item.code for item in found.findings}


def test_a_row_becomes_one_machine_with_a_machine_price() -> None:
    found = entry()
    assert (found.gpu_model, found.gpu_count, found.vram_bytes_per_gpu) == ("H100", 8, 80 * GB)
    (quote,) = found.quotes
    assert (quote.amount, quote.currency) == (Decimal("19.20"), "USD")
    assert (quote.unit, quote.basis) == (TimeUnit.HOUR, Basis.MACHINE)
    assert (found.vcpus, found.ram_bytes) == (208, 1800 * GIB)


def test_a_feed_lists_and_does_not_say_what_is_free() -> None:
    found = entry()
    assert found.availability is Availability.UNKNOWN
    assert Code.AVAILABILITY_UNKNOWN in codes(found)


def test_spot_and_on_demand_are_two_quotes() -> None:
    found = entry(SpotPrice="8.5")
    assert [(quote.purchase, quote.amount) for quote in found.quotes] == [
        (Purchase.ON_DEMAND, Decimal("19.20")),
        (Purchase.SPOT, Decimal("8.5")),
    ]


@pytest.mark.parametrize("absent", ["", "0", "0.00", "n/a", "-", "None"])
def test_zero_and_empty_prices_are_absent(absent: str) -> None:
    found = entry(Price=absent, SpotPrice=absent)
    assert found.quotes == ()
    assert Code.PRICE_MISSING in codes(found)


def test_a_spot_price_alone_is_said() -> None:
    found = entry(Price="", SpotPrice="8.5")
    assert Code.NO_ON_DEMAND_PRICE in codes(found)


def test_binary_noise_leaves_the_amount_and_stays_in_the_words() -> None:
    (quote,) = entry(Price="0.36979999999999996").quotes
    assert (str(quote.amount), quote.words) == ("0.3698", "0.36979999999999996")


@pytest.mark.parametrize("field", ["Price", "SpotPrice"])
@pytest.mark.parametrize("value", ["-1", "NaN", "inf", "-Infinity", "1e30", "1e-9"])
def test_an_impossible_price_is_refused_with_its_field(field: str, value: str) -> None:
    sentence = refused(**{field: value}).reason.sentence
    assert field in sentence
    assert value in sentence
    assert "USD per hour" in sentence


@pytest.mark.parametrize("value", ["cheap", "1_000", "1,5", "٣", "$3", "sNaN", "1" * 50])
def test_a_price_that_is_no_number_is_unreadable(value: str) -> None:
    assert refused(Price=value).reason.code is Code.ROW_UNREADABLE


@pytest.mark.parametrize("value", ["0", "-8", "1.5", "1e9", ""])
def test_a_named_gpu_needs_a_count(value: str) -> None:
    assert refused(AcceleratorCount=value).reason.code is Code.VALUE_OUT_OF_RANGE


def test_bytes_in_the_gib_column_are_refused() -> None:
    reason = refused(MemoryGiB="45097156608").reason
    assert reason.code is Code.VALUE_OUT_OF_RANGE
    assert "MemoryGiB = 45097156608" in reason.sentence


def test_machines_without_a_gpu_are_left_out_and_counted() -> None:
    cpu = {"AcceleratorName": "", "AcceleratorCount": "0", "GpuInfo": "", "InstanceType": "cpu-4"}
    batch = read({}, cpu, cpu | {"AcceleratorCount": ""})
    assert (len(batch.entries), batch.left_out) == (1, {"no GPU named": 2})


def test_a_key_that_stands_twice_is_quarantined_whole() -> None:
    batch = read({}, {"Price": "20.40"}, {"InstanceType": "other"})
    assert [found.sku for found in batch.entries] == ["other"]
    assert [row.reason.code for row in batch.quarantined] == [Code.DUPLICATE_KEY] * 2
    assert "h100x8 / eu-1 stands 2 times" in batch.quarantined[0].reason.sentence


def test_zone_and_memory_belong_to_the_key() -> None:
    other_size = {"GpuInfo": gpu_info(97871), "AvailabilityZone": "a"}
    batch = read({}, {"AvailabilityZone": "a"}, {"AvailabilityZone": "b"}, other_size)
    assert (len(batch.entries), batch.quarantined) == (4, ())


@pytest.mark.parametrize(
    "info",
    [
        '{"Gpus": [{"Name": "H100", "Count": 8, "MemoryInfo": {"SizeInMiB": 81920}}]}',
        "{'Gpus': [{'Name': 'H100', 'Count': '8.0', 'MemoryInfo': {'SizeInMiB': 81920}}]}",
        "{'Gpus': [{'Name': 'H100', 'Manufacturer': null, 'MemoryInfo': {'SizeInMiB': 81920}}]}",
        "{'Gpus': [{'Name': 'H100', 'MemoryInfo': {'SizeInMiB': '81920.0'}}]}",
        "{'Gpus': [{'Name': 'H100', 'TotalGpuMemoryInMiB': 655360}]}",
    ],
)
def test_gpu_info_is_read_in_every_notation(info: str) -> None:
    assert entry(GpuInfo=info).vram_bytes_per_gpu == 80 * GB


@pytest.mark.parametrize(
    "info",
    [
        "not a literal",
        "[1, 2]",
        "{'Gpus': []}",
        "{'Gpus': 'H100'}",
        "__import__('os').getcwd()",
        "[" * 4000,
        "{'Gpus': [" + "1," * 5000 + "]}",
    ],
)
def test_unreadable_gpu_info_refuses_its_row_alone(info: str) -> None:
    batch = read({"GpuInfo": info}, {"InstanceType": "good"})
    assert [found.sku for found in batch.entries] == ["good"]
    assert "GpuInfo: read" in batch.quarantined[0].reason.sentence


@pytest.mark.parametrize("size", ["float('nan')", "-81920", "1e30"])
def test_an_impossible_memory_figure_is_refused(size: str) -> None:
    assert refused(GpuInfo=gpu_info(size)).reason.code in (
        Code.VALUE_OUT_OF_RANGE,
        Code.ROW_UNREADABLE,
    )


@pytest.mark.parametrize("info", ["", gpu_info(0)])
def test_no_memory_figure_is_unknown_and_not_zero(info: str) -> None:
    found = entry(GpuInfo=info)
    assert found.vram_bytes_per_gpu is None
    assert Code.VRAM_UNKNOWN in codes(found)


def test_a_size_in_the_name_helps_where_the_column_is_empty() -> None:
    assert entry(AcceleratorName="RTX PRO 6000 96GB", GpuInfo="").vram_bytes_per_gpu == 96 * GB


def test_memory_that_fits_neither_way_is_refused() -> None:
    assert refused(GpuInfo=gpu_info(5242880)).reason.code is Code.VRAM_IMPOSSIBLE


def rows_of(count: str, size: int, name: str = "A100") -> dict[str, str]:
    return {
        "InstanceType": f"{name}x{count}",
        "AcceleratorName": name,
        "AcceleratorCount": count,
        "GpuInfo": gpu_info(size, name),
    }


def test_two_readings_stay_unknown_when_nothing_settles_them() -> None:
    (found,) = read(rows_of("2", 81920)).entries
    assert (found.vram_bytes_per_gpu, codes(found) >= {Code.VRAM_AMBIGUOUS}) == (None, True)


def memory_of_pair(*others: dict[str, str]) -> int | None:
    batch = read(rows_of("2", 81920), *others)
    return next(found for found in batch.entries if found.sku == "A100x2").vram_bytes_per_gpu


def test_rows_without_doubt_tell_what_the_column_of_the_file_counts() -> None:
    each = [rows_of(count, 81920) for count in ("4", "8")]
    assert memory_of_pair(*each, rows_of("4", 81920, "H100")) == 80 * GB
    totals = [rows_of("4", 163840), rows_of("8", 327680), rows_of("8", 655360, "H100")]
    assert memory_of_pair(*totals) == 40 * GB


def test_rows_that_disagree_tell_nothing() -> None:
    mixed = [rows_of("4", 81920), rows_of("8", 81920), rows_of("8", 655360, "H100")]
    assert memory_of_pair(*mixed, rows_of("4", 327680, "H100")) is None


def test_a_name_of_single_gpu_rows_carries_the_size_of_one() -> None:
    batch = read(rows_of("1", 80, "A100-80GB"), rows_of("2", 80, "A100-80GB"))
    assert [found.vram_bytes_per_gpu for found in batch.entries] == [80 * GB] * 2


def test_a_share_of_a_gpu_has_not_the_memory_of_all_of_it() -> None:
    found = entry(AcceleratorName="A10", AcceleratorCount="0.5", GpuInfo=gpu_info(24576, "A10"))
    assert (found.gpu_fraction, found.vram_bytes_per_gpu) == ("0.5", None)
    assert codes(found) >= {Code.FRACTIONAL_GPU, Code.VRAM_UNKNOWN}


@pytest.mark.parametrize(
    ("name", "instance", "form_factor", "link", "code"),
    [
        ("H100-SXM", "h", "SXM", None, Code.FORM_FACTOR_ONLY),
        ("H100_PCIE", "h", "PCIe", None, Code.FORM_FACTOR_ONLY),
        ("A100-80G-PCIe-NVLink", "a", "PCIe", LinkClass.NVLINK, Code.LINK_SCOPE_UNKNOWN),
        ("H100", "n3-H100x8-NVLink", None, LinkClass.NVLINK, None),
        ("RTX4090", "4090-nvlink", None, LinkClass.NVLINK, Code.IMPLAUSIBLE_LINK),
        ("H100", "h100-no-nvlink", None, None, None),
        ("A100_80G_PCIE", "gpu_8x_a100_SXM4", None, None, Code.CONFLICTING_VALUES),
    ],
)
def test_form_factor_and_link_are_two_things(
    name: str, instance: str, form_factor: str | None, link: LinkClass | None, code: Code | None
) -> None:
    info = gpu_info(24564 if "4090" in name else 81920, name)
    found = entry(AcceleratorName=name, InstanceType=instance, GpuInfo=info)
    assert (found.form_factor, found.link) == (form_factor, link)
    assert code is None or code in codes(found)


def test_one_gpu_has_no_link() -> None:
    assert entry(AcceleratorCount="1", InstanceType="h100-nvlink").link is None


def test_a_label_that_took_the_link_for_the_board_is_a_conflict() -> None:
    found = entry(AcceleratorName="H100_NVL", InstanceType="n3-H100x8-NVLink")
    assert (found.gpu_model, found.form_factor) == ("H100", None)
    assert (found.link, found.vram_bytes_per_gpu) == (LinkClass.NVLINK, 80 * GB)
    assert Code.CONFLICTING_VALUES in codes(found)


def test_a_cut_name_is_completed_by_the_instance_type() -> None:
    found = entry(
        InstanceType="2x-RTX_3060_Ti", AcceleratorName="RTX3060", GpuInfo=gpu_info(8192, "RTX3060")
    )
    assert found.gpu_model == "RTX 3060 Ti"


def test_an_unknown_gpu_is_kept_as_unknown() -> None:
    found = entry(AcceleratorName="Halyard X1", GpuInfo=gpu_info(65536, "Halyard X1"))
    assert found.words["InstanceType"] == "h100x8"  # a name of the host is no name of the card
    assert (found.gpu_model, found.vram_bytes_per_gpu) == (None, None)
    assert Code.GPU_UNKNOWN in codes(found)


def test_the_words_of_the_provider_are_kept() -> None:
    words = entry(AcceleratorName="H100-80G-SXM5").words
    assert words["AcceleratorName"] == "H100-80G-SXM5"
    assert words["Price"] == "19.20"


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", b"AcceleratorName,Clouds\nH100,AWS\n", b"<html>503</html>", b"\xff\xfe"]
)
def test_another_layout_is_unreadable_and_names_the_columns(body: bytes) -> None:
    with pytest.raises(UnreadablePage, match="expected InstanceType, AcceleratorName") as caught:
        read_bytes(body)
    assert caught.value.finding.code is Code.LAYOUT_CHANGED


def test_a_header_without_rows_is_unreadable() -> None:
    with pytest.raises(UnreadablePage, match="read 0"):
        read_bytes(body_of())


def test_order_and_line_ends_do_not_matter() -> None:
    body = body_of({}, header=tuple(reversed(HEADER)))
    assert read_bytes(body).entries == read_bytes(body.replace(b"\r\n", b"\n")).entries
    assert read_bytes(b"\xef\xbb\xbf" + body).entries == read_bytes(body).entries


def test_a_cut_file_proves_nothing_about_what_is_missing() -> None:
    body = body_of({}, {"InstanceType": "second"})
    batch = read_bytes(body[: body.rindex(b"second") + 20])
    assert [found.sku for found in batch.entries] == ["h100x8"]
    assert batch.quarantined[0].reason.code is Code.ROW_UNREADABLE
    assert not batch.complete


def test_invalid_bytes_and_nul_are_counted_and_never_kept() -> None:
    batch = read_bytes(body_of({}).replace(b"eu-1", b"eu\xff\x001"))
    assert batch.entries[0].region == "eu\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}1"
    assert batch.findings[0].code is Code.ENCODING_REPLACED


@pytest.mark.parametrize(("field", "length"), [("InstanceType", 201), ("Region", 121)])
def test_a_name_is_refused_rather_than_cut(field: str, length: int) -> None:
    assert refused(**{field: "x" * length}).reason.code is Code.VALUE_OUT_OF_RANGE


def test_a_row_without_a_name_is_refused() -> None:
    assert "InstanceType: read nothing" in refused(InstanceType=" ").reason.sentence


CELLS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["H100", "8", "-1", "NaN", "1e30", gpu_info(81920), "{", "0.0", "NVLink"]),
)


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(HEADER, CELLS)), min_size=1, max_size=5))
def test_any_row_is_read_refused_or_left_out_and_reading_is_pure(
    rows: list[dict[str, str]],
) -> None:
    """Every row that is not blank is accounted for; the same bytes give the same batch."""
    filled = [row for row in rows if any(cell.strip() for cell in row.values())]
    assume(filled)
    body = body_of(*rows)
    batch = read_bytes(body)
    taken = len(batch.entries) + len(batch.quarantined) + sum(batch.left_out.values())
    assert taken == len(filled)
    assert read_bytes(body) == batch
