"""Rows become facts: declared by the catalog, outweighed by corrections and by evidence."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from evaluator.facts import Grade, RanBy
from evaluator.gpus import specs
from evaluator.machine import LinkClass
from evaluator.units import GB, GIB, MIB
from marketplace.listings import current, offerings
from marketplace.machines import configuration_of, machine_of
from marketplace.models import Fact, Listing, Source
from tests.pages.catalog import make_listing, make_price, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def source() -> Source:
    return make_source()


def listing(source: Source, **changes: Any) -> Listing:
    return make_listing(source, **changes)


def add_fact(of: Listing, name: str, value: Any, grade: Grade, **changes: Any) -> Fact:
    values = {"source": "topo -m", "ran_by": RanBy.RENTER.value, "as_of": timezone.now()}
    return Fact.objects.create(listing=of, name=name, value=value, grade=grade, **values | changes)


def test_a_catalog_declares_and_no_more(source: Source) -> None:
    row = listing(source)
    machine = machine_of(row)
    assert machine.link.value is LinkClass.NVSWITCH
    assert {machine.link.grade, machine.gpu_count.grade, machine.vcpus.grade} == {Grade.DECLARED}
    assert machine.link.as_of == row.last_seen
    assert row.seen_in.sha256[:12] in machine.link.source


def test_a_null_column_is_unknown(source: Source) -> None:
    machine = machine_of(listing(source, link=None, vcpus=None, ram_bytes=None))
    assert (machine.link.known, machine.vcpus.known) == (False, False)
    assert machine.ram_bytes.value is None


@pytest.mark.parametrize("form", ["SXM5", "PCIe", "NVL"])
def test_a_form_factor_in_a_row_sets_no_link(source: Source, form: str) -> None:
    row = listing(source, link=None, form_factor=form, title=f"8x H100 {form} NVLink-ready")
    assert not machine_of(row).link.known


def test_memory_is_what_the_driver_reports_and_not_the_label(source: Source) -> None:
    machine = machine_of(listing(source))
    assert machine.usable_bytes_per_gpu.value == 81559 * MIB
    assert {spec.id for spec in machine.specs} == {"h100-sxm5-80"}


def test_a_model_of_several_sizes_without_a_stated_one_is_unknown(source: Source) -> None:
    row = listing(source, gpu_model="A100", vram_bytes_per_gpu=None, form_factor=None)
    assert not machine_of(row).usable_bytes_per_gpu.known


def test_a_model_of_one_size_needs_no_stated_one(source: Source) -> None:
    row = listing(source, gpu_model="L40S", vram_bytes_per_gpu=None, form_factor=None)
    assert machine_of(row).usable_bytes_per_gpu.value == 48305799168


@pytest.mark.parametrize(
    ("stated", "counted"),
    [(48 * GB, 48 * GB), (49140 * MIB, 48 * GB), (12 * GIB, 12 * GB)],
)
def test_a_size_of_no_published_card_is_a_lower_end(
    source: Source, stated: int, counted: int
) -> None:
    row = listing(source, gpu_model="RTX 4090", vram_bytes_per_gpu=stated, form_factor=None)
    fact = machine_of(row).usable_bytes_per_gpu
    assert (fact.value, bool(fact.caveat)) == (counted, True)


def test_no_published_card_reports_less_than_its_label_in_decimal_gigabytes() -> None:
    """The lower end that is used for cards of no published size."""
    for spec in specs():
        assert spec.usable_bytes is None or spec.usable_bytes >= spec.label_gb * GB, spec.id


def test_a_total_is_shared_by_the_machines_of_a_rental(source: Source) -> None:
    machine = machine_of(listing(source, gpu_count=16, nodes=2))
    assert (machine.gpu_count.value, machine.nodes) == (8, 2)
    assert not machine_of(listing(source, sku="odd", gpu_count=15, nodes=2)).gpu_count.known


def test_a_share_of_a_gpu_has_the_stated_share_of_memory_or_none(source: Source) -> None:
    share = {"gpu_fraction": "1/4", "gpu_count": 1}
    small = machine_of(listing(source, sku="a", vram_bytes_per_gpu=20 * GB, **share))
    whole = machine_of(listing(source, sku="b", vram_bytes_per_gpu=80 * GB, **share))
    assert (small.fractional, small.usable_bytes_per_gpu.value) == (True, 20 * GB)
    assert not whole.usable_bytes_per_gpu.known


def test_evidence_outweighs_the_catalog_and_the_conflict_is_named(source: Source) -> None:
    row = listing(source)
    add_fact(row, "link", "nvlink_pairs", Grade.MEASURED)
    machine = machine_of(row)
    assert machine.link.value is LinkClass.NVLINK_PAIRS
    conflict = machine.conflict_over("link")
    assert conflict is not None
    assert conflict.outweighed == "declared nvswitch"


def test_evidence_that_agrees_or_says_more_is_no_conflict(source: Source) -> None:
    row = listing(source, link="nvlink")
    add_fact(row, "link", "nvswitch", Grade.MEASURED)
    add_fact(row, "usable_bytes_per_gpu", 81000 * MIB, Grade.MEASURED)
    machine = machine_of(row)
    assert machine.conflicts == ()
    assert machine.usable_bytes_per_gpu.value == 81000 * MIB


def test_weaker_facts_never_replace_stronger_ones(source: Source) -> None:
    row = listing(source)
    add_fact(row, "link", "nvswitch", Grade.BENCHMARKED)
    add_fact(row, "link", "pcie", Grade.MEASURED)
    machine = machine_of(row)
    assert (machine.link.value, machine.link.grade) == (LinkClass.NVSWITCH, Grade.BENCHMARKED)
    assert machine.conflict_over("link") is not None


def test_what_has_expired_counts_as_a_declaration(source: Source) -> None:
    row = listing(source)
    gone = timezone.now() - timedelta(days=1)
    add_fact(row, "link", "nvswitch", Grade.MEASURED, expires_at=gone)
    assert machine_of(row).link.grade is Grade.DECLARED


def test_a_correction_replaces_the_catalogs_word(source: Source) -> None:
    row = listing(source)
    row.corrections = {
        "link": {"value": "pcie", "grade": "declared", "source": "a mail of the provider"},
        "vcpus": {"value": None},
        "vram_bytes_per_gpu": {"value": 96 * GB, "grade": 1},
    }
    machine = machine_of(row)
    assert (machine.link.value, machine.link.ran_by) == (LinkClass.PCIE, RanBy.CURATOR)
    assert not machine.vcpus.known
    assert {spec.label_gb for spec in machine.specs} == {96}


def test_memory_of_one_gpu_or_of_the_machine_is_judged_by_the_smaller(source: Source) -> None:
    words = {"words": "80GB", "sizes": "40 or 80"}
    doubt = [{"code": "vram_ambiguous", "gaps": words}]
    row = listing(source, gpu_model="A100", gpu_count=2, form_factor=None, findings=doubt)
    assert {spec.label_gb for spec in machine_of(row).specs} == {40, 80}
    assert machine_of(row).usable_bytes_per_gpu.value == 40960 * MIB
    row.corrections = {"vram_bytes_per_gpu": {"value": 80 * GB}}
    assert machine_of(row).usable_bytes_per_gpu.value == 81920 * MIB


def test_a_disbelieved_size_is_unknown_and_not_the_catalogs(source: Source) -> None:
    row = listing(source, gpu_model="A100", form_factor=None)
    assert machine_of(row).usable_bytes_per_gpu.known
    row.corrections = {"vram_bytes_per_gpu": {"value": None}}
    assert not machine_of(row).usable_bytes_per_gpu.known


def test_an_unsaved_row_can_be_judged_too(source: Source) -> None:
    row = listing(source)
    draft = Listing(gpu_model="H100", gpu_count=8, last_seen=row.last_seen, seen_in=row.seen_in)
    assert machine_of(draft).gpu_count.value == 8


def test_dates_and_places_do_not_make_another_configuration(source: Source) -> None:
    one, other = listing(source), listing(source, sku="other", region="us-west")
    other.last_seen += timedelta(days=1)
    assert configuration_of(one) == configuration_of(other)
    other.link = None
    assert configuration_of(one) != configuration_of(other)


def test_a_higher_grade_makes_another_configuration(source: Source) -> None:
    row = listing(source)
    before = configuration_of(row)
    add_fact(row, "link", "nvswitch", Grade.MEASURED)
    assert configuration_of(row) != before


def test_offerings_take_two_queries_and_current_prices_only(
    source: Source, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for at in range(5):
        row = listing(source, sku=f"s{at}")
        make_price(row, Decimal(9), term="old", superseded_at=timezone.now())
    with django_assert_num_queries(2):
        found = offerings(current())
    assert [[str(quote.amount) for quote in one.quotes] for one in found] == [["19.92000000"]] * 5


def test_a_gone_listing_is_no_offering(source: Source) -> None:
    listing(source, gone_at=timezone.now())
    assert offerings(current()) == []
