"""Memory per GPU: right, ambiguous or unknown, never a total that passes for one card."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.findings import Code
from evaluator.gpus import SIZE_TOLERANCE, known_sizes_gb, read_label, relatives_of, specs
from evaluator.units import GB, MIB
from marketplace.catalog.vram import Figure, Resolved, Scope, figures_of, resolve, stated

LISTED = sorted({spec.model for spec in specs()})


def read(title: str, gpu_count: int | None, *more: Figure) -> Resolved:
    label = read_label(title)
    return resolve(label.model, gpu_count, (*figures_of(label), *more))


def feed(size: int, scope: Scope = Scope.UNKNOWN) -> Figure:
    """A number in a column that is named MiB and may count GB."""
    return Figure(size * MIB, scope, f"SizeInMiB {size}", bytes_if_gb=size * GB)


def each_gb(resolved: Resolved) -> float | None:
    return resolved.bytes_per_gpu / GB if resolved.bytes_per_gpu else None


def codes(resolved: Resolved) -> set[Code]:
    return {item.code for item in resolved.findings}


@pytest.mark.parametrize(
    ("title", "gpu_count", "expected", "expected_codes"),
    [
        ("H100 80GB", 8, 80, set()),
        ("H100 640GB", 8, 80, {Code.VRAM_TOTAL_DIVIDED}),
        ("V100 256GB", 8, 32, {Code.VRAM_TOTAL_DIVIDED}),
        ("H100 NVL 188GB", 2, 94, {Code.VRAM_TOTAL_DIVIDED}),
        ("MI300X 1.5TB HBM3", 8, 192, {Code.VRAM_TOTAL_DIVIDED}),
        ("B200 1,536GB", 8, 180, {Code.VRAM_TOTAL_DIVIDED, Code.VRAM_NONSTANDARD}),
        ("B200 1,440GB", 8, 180, {Code.VRAM_TOTAL_DIVIDED}),
        ("A100-80GB-320GB", 4, 80, set()),
        ("A100 80GB", 2, 80, {Code.VRAM_AMBIGUOUS}),
        ("L40S 45GB", 4, 48, {Code.VRAM_NONSTANDARD}),
        ("RTX 4090 48GB", 1, 48, {Code.VRAM_NONSTANDARD}),
        ("RTX 4090 48GB", 8, 48, {Code.VRAM_NONSTANDARD}),
        ("RTX 4090 48GB", 2, 24, {Code.VRAM_TOTAL_DIVIDED}),
        ("A10 4GB", 1, 4, {Code.VRAM_NONSTANDARD}),
        ("GH200 576GB", 1, 96, set()),
        ("GH200 480GB", 1, None, {Code.VRAM_UNKNOWN}),
        ("H100 94GB", 2, 94, {Code.VRAM_NONSTANDARD}),
        ("H100 80GB", None, 80, set()),
        ("H100 640GB", None, None, {Code.VRAM_UNKNOWN}),
        ("V100", 8, None, {Code.VRAM_UNKNOWN}),
    ],
)
def test_a_printed_figure(
    title: str, gpu_count: int | None, expected: float | None, expected_codes: set[Code]
) -> None:
    resolved = read(title, gpu_count)
    assert (each_gb(resolved), codes(resolved)) == (expected, expected_codes)
    assert resolved.impossible is None


@pytest.mark.parametrize(
    ("title", "gpu_count"), [("H100 600GB", 8), ("H100 160GB", 8), ("H100 600GB", 1)]
)
def test_a_figure_that_fits_neither_way_is_refused(title: str, gpu_count: int) -> None:
    resolved = read(title, gpu_count)
    assert resolved.bytes_per_gpu is None
    assert resolved.impossible
    assert resolved.impossible.code is Code.VRAM_IMPOSSIBLE


def test_words_that_say_total_settle_it() -> None:
    total = stated(Decimal(80), "GB", Scope.TOTAL, "GPU memory (total): 80 GB")
    resolved = read("A100 80GB", 2, total)
    assert (each_gb(resolved), codes(resolved)) == (40, {Code.VRAM_TOTAL_DIVIDED})


def test_words_that_say_each_settle_it() -> None:
    resolved = resolve("A100", 2, [stated(Decimal(80), "GB", Scope.EACH)])
    assert (each_gb(resolved), codes(resolved)) == (80, set())


def test_a_total_beside_the_size_of_one_needs_no_warning() -> None:
    resolved = read("A100 80GB", 4, stated(Decimal(320), "GB"))
    assert (each_gb(resolved), codes(resolved)) == (80, set())


def test_two_figures_that_disagree_leave_it_unknown() -> None:
    each = Scope.EACH
    figures = [stated(Decimal(40), "GB", each), stated(Decimal(80), "GB", each)]
    resolved = resolve("A100", 4, figures)
    assert (resolved.bytes_per_gpu, codes(resolved)) == (None, {Code.CONFLICTING_VALUES})


def test_host_memory_of_a_superchip_is_not_video_memory() -> None:
    resolved = read("GH200 576GB", 1, stated(Decimal(96), "GB"))
    assert (each_gb(resolved), codes(resolved)) == (96, set())


@pytest.mark.parametrize(
    ("model", "gpu_count", "size", "expected"),
    [
        ("H100", 8, 655360, 80),
        ("H100", 8, 81920, 80),
        ("H100", 8, 81559, 80),
        ("H100", 2, 191660, 94),
        ("H100", 1, 95830, 94),
        ("RTX A6000", 8, 48, 48),
        ("L4", 4, 24, 24),
        ("RTX 4060", 1, 16380, 16),
        ("RTX 3080", 4, 40960, 10),
        ("B300", 8, 2150400, 288),
        ("GB200", 4, 196608, 186),
        ("RTX 4090", 1, 49140, 48),
        ("H100", 8, 0, None),
    ],
)
def test_a_number_from_a_feed(
    model: str, gpu_count: int, size: int, expected: float | None
) -> None:
    assert each_gb(resolve(model, gpu_count, [feed(size)])) == expected


def test_gigabytes_in_a_mib_field_are_said() -> None:
    assert Code.VRAM_UNIT_CORRECTED in codes(resolve("RTX A6000", 8, [feed(48)]))


def test_a_total_times_the_count_is_refused() -> None:
    assert resolve("H100", 8, [feed(5242880)]).impossible


def test_two_readings_are_both_kept() -> None:
    resolved = resolve("A100", 2, [feed(81920)])
    assert resolved.possible_bytes == (40 * GB, 80 * GB)
    assert resolved.ambiguous


def test_a_divided_pair_may_be_two_modified_cards() -> None:
    assert resolve("RTX 4090", 2, [feed(49128)]).possible_bytes == (24 * GB, 48 * GB)


def test_stacked_memory_cannot_be_doubled() -> None:
    assert resolve("H100", 2, [feed(163840)]).possible_bytes == (80 * GB,)


def test_an_unlisted_card_keeps_what_one_gpu_is_said_to_have() -> None:
    figure = stated(Decimal(64), "GB", Scope.EACH)
    assert resolve(None, 8, [figure]).bytes_per_gpu == 64 * GB
    assert resolve(None, 1, [stated(Decimal(64), "GB")]).bytes_per_gpu == 64 * GB


def test_an_unlisted_card_without_words_stays_unknown() -> None:
    resolved = resolve(None, 8, [stated(Decimal(64), "GB")])
    assert (resolved.bytes_per_gpu, codes(resolved)) == (None, {Code.VRAM_UNKNOWN})


def test_an_unknown_unit_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"read 'furlong', expected one of B, .*GIB"):
        stated(Decimal(1), "furlong")


@given(
    st.sampled_from(LISTED),
    st.integers(1, 16),
    st.integers(1, 4 * 10**6),
    st.sampled_from(Scope),
)
def test_memory_is_never_larger_than_the_figure(
    model: str, gpu_count: int, size: int, scope: Scope
) -> None:
    """Apart from snapping to a label, and from a number that counts GB in a MiB field."""
    figure = feed(size, scope)
    resolved = resolve(model, gpu_count, [figure])
    corrected = Code.VRAM_UNIT_CORRECTED in codes(resolved)
    largest = figure.bytes_if_gb if corrected else figure.byte_count
    assert largest
    assert (resolved.bytes_per_gpu or 0) <= largest * (1 + SIZE_TOLERANCE)


@given(st.sampled_from(LISTED), st.integers(2, 16), st.integers(1, 4 * 10**6))
def test_several_gpus_get_a_published_or_doubled_size_or_none(
    model: str, gpu_count: int, size: int
) -> None:
    published = {gb for name in (model, *relatives_of(model)) for gb in known_sizes_gb(name)}
    each = each_gb(resolve(model, gpu_count, [feed(size)]))
    assert each is None or each in published | {2 * gb for gb in published}


@given(st.sampled_from(LISTED), st.integers(1, 16))
def test_each_published_size_is_found_as_each_and_as_a_total(model: str, gpu_count: int) -> None:
    for size in known_sizes_gb(model):
        each = resolve(model, gpu_count, [stated(Decimal(size), "GB", Scope.EACH)])
        total = resolve(model, gpu_count, [stated(Decimal(size * gpu_count), "GB", Scope.TOTAL)])
        assert (each_gb(each), each_gb(total)) == (size, size)
