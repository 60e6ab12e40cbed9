"""What is kept of workloads and machines equals what is worked out anew."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from django.utils import timezone

from evaluator.growth import growth
from evaluator.workload import parse_workload, workload_presets
from marketplace import workbooks
from marketplace.forms import preset
from marketplace.machines import machine_of
from marketplace.models import Listing
from marketplace.rankings import Asking, offered_to, ranked_of
from marketplace.workbooks import Rented, growth_of, judge_machine, name_of, workbook_of
from tests.pages.catalog import make_listing, make_source

EIGHT = Listing(
    gpu_model="H100", form_factor="SXM", gpu_count=8, vram_bytes_per_gpu=80 * 10**9, link="nvswitch"
)


@pytest.mark.parametrize("slug", list(workload_presets()))
def test_a_table_of_growth_is_made_once_for_equal_content(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, machine, price = preset(slug), machine_of(EIGHT), Rented(Decimal("19.92"), 8)
    first = growth_of(workload, machine, price, 1)
    assert first == growth(workload, machine, price, 1)
    monkeypatch.setattr(workbooks, "growth", lambda *_: pytest.fail("made again"))
    assert growth_of(replace(workload), machine_of(EIGHT), replace(price), 1) is first


@pytest.mark.parametrize("change", ["price", "machines", "costs", "machine"])
def test_another_question_has_another_table(change: str) -> None:
    workload, machine, price, most = (
        preset("train-llama-70b"),
        machine_of(EIGHT),
        Rented(Decimal("19.92"), 8),
        1,
    )
    first = growth_of(workload, machine, price, most)
    if change == "price":
        price = Rented(Decimal("20"), 8)
    elif change == "machines":
        most = 2
    elif change == "costs":
        workload = replace(workload, costs=replace(workload.costs, setup_hours=9.0))
    else:
        machine = replace(machine, gpu_count=replace(machine.gpu_count, value=4))
    assert growth_of(workload, machine, price, most) == growth(workload, machine, price, most)
    assert growth_of(workload, machine, price, most) is not first


@pytest.mark.parametrize("slug", list(workload_presets()))
def test_a_workload_is_named_by_its_fingerprint(slug: str) -> None:
    assert name_of(preset(slug)).startswith(preset(slug).fingerprint())
    assert name_of(replace(preset(slug), name="another")) == name_of(preset(slug))
    longer = replace(preset(slug), weights_format="fp8")
    assert name_of(longer).startswith(longer.fingerprint())
    assert name_of(longer) != name_of(preset(slug))


def test_the_words_of_a_pasted_model_are_not_told_of_a_preset_like_it() -> None:
    published, machine = preset(next(iter(workload_presets()))), machine_of(EIGHT)
    pasted = replace(published, model=replace(published.model, source="somebody's notes"))
    assert pasted.fingerprint() == published.fingerprint()
    for workload, told in ((pasted, True), (published, False)):
        plan = judge_machine(workload, machine).plans[0].plan
        assert ("somebody" in repr(workbook_of(workload).budget(plan))) is told


@pytest.mark.django_db
def test_the_name_of_a_pasted_model_is_told_to_nobody_who_pastes_one_like_it() -> None:
    make_listing(make_source())
    for name, told in (("acme/one", True), ("somebody/other", False)):
        model = {"_name_or_path": name, "total_params": 7 * 10**9}
        workload = parse_workload({"task": "serve", "model": model})
        found = ranked_of(workload, offered_to(None), Asking(), timezone.now())
        assert ("acme/one" in repr(found)) is told
