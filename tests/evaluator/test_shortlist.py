from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.budgets import FitWord
from evaluator.candidates import age_words
from evaluator.facts import UNKNOWN, declared
from evaluator.findings import Code, finding
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.offers import Offering
from evaluator.plans import Plan
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from evaluator.shortlist import NOTHING_JUDGED, Candidate, Shortlist, judge_fleet, shortlist
from evaluator.spending import InTime
from evaluator.verdict import ORDER, Status
from tests.evaluator.machines import SERVE_8B, TRAIN_70B, machine, measured, preset, serve, train

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
MACHINES = {
    "h100x1": machine("H100", 1, gb=80),
    "h100x8": machine("H100", 8, gb=80),
    "a100x8": machine("A100", 8, gb=80, link=LinkClass.NVSWITCH),
    "b200x8": machine("B200", 8, link=measured(LinkClass.NVSWITCH)),
    "l4x1": machine("L4", 1),
    "l4x8": machine("L4", 8),
    "a40x2": machine("A40", 2),
    "blank": machine("H100", 8, usable_bytes_per_gpu=UNKNOWN),
}


def offer(
    configuration: str = "h100x1", amount: str | None = "2.00", key: str = "", **changes: Any
) -> Offering:
    currency = changes.pop("currency", "USD")
    basis = changes.pop("basis", Basis.MACHINE)
    quotes = (Quote(Decimal(amount), currency, TimeUnit.HOUR, basis),) if amount else ()
    name = key or f"{configuration}-{amount}"
    values: dict[str, Any] = {"provider": "Ridge", "title": name, "quotes": quotes}
    return Offering(name, configuration, **(values | changes))


def ask(
    offerings: Sequence[Offering], workload: Workload | None = None, **options: Any
) -> Shortlist:
    return shortlist(workload or preset(SERVE_8B), Fleet.of(offerings, MACHINES), **options)


def keys(part: Sequence[Candidate]) -> list[str]:
    return [one.offering.key for one in part]


def test_row_0_is_the_best_single_gpu_and_the_rest_follows_by_cost() -> None:
    found = ask([offer(amount="3.00"), offer("h100x8", "16"), offer(amount="2.00")])
    assert keys(found.rows) == ["h100x1-2.00", "h100x1-3.00", "h100x8-16"]
    assert [row.rank for row in found.rows] == [0, 1, 2]
    assert found.rows[0].plan.plan == Plan()


def test_row_0_stands_even_where_no_single_gpu_serves() -> None:
    found = ask([offer("b200x8", "30"), offer("l4x1", "0.50")], preset(TRAIN_70B))
    first, second = found.rows
    assert (first.plan.plan, first.status) == (Plan(), Status.UNSUITABLE)
    assert first.machine.gpu_model == "B200"
    assert second.plan.plan.gpus == 8
    assert second.narrowest
    assert second.narrowest.plan.label == "TP 8"
    assert second.status is Status.READY


def test_a_missing_price_never_ranks_first() -> None:
    found = ask([offer(amount=None, key="free"), offer(amount="9.00")])
    assert keys(found.rows) == ["h100x1-9.00"]
    assert keys(found.unranked) == ["free"]
    assert found.unranked[0].rank is None
    assert Code.NOT_RANKED in {one.code for one in found.unranked[0].findings}


def test_currencies_are_never_mixed() -> None:
    found = ask([offer(amount="1.00", currency="EUR"), offer(amount="2.00")])
    assert keys(found.rows) == ["h100x1-2.00"]
    assert "EUR" in found.unranked[0].rate.not_ranked_because


def test_a_rate_per_gpu_counts_every_gpu_of_the_rental() -> None:
    found = ask([offer("h100x8", "2.00", basis=Basis.GPU)])
    assert found.rows[0].cost_per_hour == Decimal("16.00")


def test_several_machines_cost_several_rentals() -> None:
    found = ask([offer("h100x8", "16.00")], preset(TRAIN_70B))
    row = next(one for one in found.rows if one.status.serves)
    assert row.rentals == row.plan.plan.nodes > 1
    assert row.cost_per_hour == 16 * row.rentals


def test_ready_comes_before_a_cheaper_conditional_one() -> None:
    found = ask([offer("a100x8", "5"), offer("b200x8", "50")], preset(TRAIN_70B))
    statuses = [row.status for row in found.rows[1:]]
    assert statuses == [Status.READY, Status.CONDITIONAL]


def test_the_same_machine_at_the_same_price_elsewhere_is_one_row() -> None:
    alike = [
        offer(key=f"k{region}", title="H100", region=region) for region in ("north", "east", "west")
    ]
    found = ask([*alike, offer(amount="3.00", title="H100")])
    assert [len(row.alike) for row in found.rows] == [2, 0]
    assert found.rows[0].offering.region == "east"
    assert found.hidden == {"the same machine is shown at the same price in another place": 2}


def test_sold_out_is_a_near_miss_and_a_waitlist_is_a_warning() -> None:
    found = ask(
        [
            offer(amount="1.00", availability=Availability.SOLD_OUT),
            offer(amount="2.00", availability=Availability.WAITLIST),
        ]
    )
    assert keys(found.rows) == ["h100x1-2.00"]
    assert keys(found.near_misses) == ["h100x1-1.00"]
    assert Code.NOT_AVAILABLE in {one.code for one in found.rows[0].findings}


def test_a_machine_that_is_waited_for_comes_after_one_that_can_be_had() -> None:
    found = ask([offer(amount="1.00", availability=Availability.PREORDER), offer(amount="9.00")])
    assert keys(found.rows) == ["h100x1-9.00", "h100x1-1.00"]
    assert [row.status for row in found.rows] == [Status.READY, Status.CONDITIONAL]


def test_row_0_has_a_comparable_price_where_any_single_gpu_that_serves_has_one() -> None:
    workload = serve("llama-3.1-8b", input_tokens=4096, output_tokens=512, concurrency=42)
    found = ask([offer("a40x2", "2.00"), offer("h100x1", None)], workload)
    assert found.rows[0].plan.fit.word is FitWord.TIGHT
    assert keys(found.rows)[0] == "a40x2-2.00"
    assert keys(found.unranked) == ["h100x1-None"]


def test_links_that_the_plan_does_not_use_are_a_note_and_no_warning() -> None:
    doubted = offer("h100x8", "16", findings=(finding(Code.FORM_FACTOR_ONLY, form_factor="SXM5"),))
    single = ask([doubted]).rows[0]
    assert {Code.FORM_FACTOR_ONLY, Code.TOPOLOGY_NOT_VERIFIED} <= {one.code for one in single.notes}
    several = next(row for row in ask([doubted], preset(TRAIN_70B)).rows if row.status.serves)
    warned = {one.code for one in several.warnings}
    assert {Code.FORM_FACTOR_ONLY, Code.TOPOLOGY_NOT_VERIFIED} <= warned
    assert set(several.warnings) | set(several.notes) == set(several.findings)


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"regions": ["Oslo"]}, "they are outside the wanted regions"),
        ({"max_price_per_hour": 1.5}, "they cost more than 1.5 USD per hour"),
        ({"min_grade": "measured"}, "less is known of them than measured"),
    ],
)
def test_needs_exclude_and_are_counted(needs: dict[str, Any], reason: str) -> None:
    found = ask([offer(region="Rome")], serve("llama-3.1-8b", needs=needs))
    assert found.hidden == {reason: 1}
    assert (found.rows, found.unranked, found.near_misses) == ((), (), ())


def test_a_wanted_region_may_be_a_zone_and_is_read_without_case() -> None:
    wanted = serve("llama-3.1-8b", needs={"regions": ["OSLO-2"]})
    assert ask([offer(region="north", zone="oslo-2")], wanted).rows


def test_spot_is_ranked_where_it_is_asked_for() -> None:
    spot = (Quote(Decimal(1), "USD", TimeUnit.HOUR, Basis.MACHINE, Purchase.SPOT),)
    only_spot = replace(offer(key="spot"), quotes=spot)
    assert not ask([only_spot]).rows[0].rate.ranked
    assert ask([only_spot], serve("llama-3.1-8b", needs={"spot": True})).rows[0].rate.ranked


def test_every_doubt_stands_on_the_row() -> None:
    seen = replace(
        offer("h100x8", "16", seen_at=NOW - timedelta(hours=3)),
        findings=(finding(Code.AVAILABILITY_UNKNOWN),),
    )
    found = {one.code: one for one in ask([seen], now=NOW).rows[0].findings}
    assert {Code.AVAILABILITY_UNKNOWN, Code.TOPOLOGY_NOT_VERIFIED} <= found.keys()
    assert found[Code.SNAPSHOT_NOT_RESERVATION].sentence.startswith("Seen 3 hours ago")


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=59), "less than a minute"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(minutes=119), "1 hour"),
        (timedelta(days=2, hours=5), "2 days"),
        (timedelta(seconds=-5), "less than a minute"),
    ],
)
def test_an_age_is_told_in_its_largest_whole_unit(age: timedelta, words: str) -> None:
    assert age_words(age) == words


def test_an_empty_catalog_is_an_answer() -> None:
    found = ask([])
    assert (found.total, found.shown, found.rows) == (0, 0, ())


OFFERINGS = st.lists(
    st.builds(
        offer,
        st.sampled_from(list(MACHINES)),
        st.sampled_from(["1.00", "2.50", "2.50", "7", None]),
        currency=st.sampled_from(["USD", "USD", "EUR", None]),
        basis=st.sampled_from(list(Basis)),
        region=st.sampled_from(["north", "south", ""]),
        availability=st.sampled_from(list(Availability)),
    ),
    max_size=25,
).map(lambda found: [replace(one, key=f"{at}") for at, one in enumerate(found)])
WORKLOADS = st.sampled_from([SERVE_8B, TRAIN_70B])


@settings(max_examples=60, deadline=None)
@given(OFFERINGS, WORKLOADS, st.integers(0, 2**32), st.integers(1, 10))
def test_the_order_of_the_input_changes_nothing(
    offerings: list[Offering], slug: str, seed: int, limit: int
) -> None:
    shuffled = random.Random(seed).sample(offerings, len(offerings))
    before = ask(offerings, preset(slug), limit=limit)
    after = ask(shuffled, preset(slug), limit=limit)
    assert before == after


@settings(max_examples=60, deadline=None)
@given(OFFERINGS, WORKLOADS, st.integers(1, 10))
def test_every_offering_is_shown_or_counted_as_hidden(
    offerings: list[Offering], slug: str, limit: int
) -> None:
    found = ask(offerings, preset(slug), limit=limit)
    assert found.shown + sum(found.hidden.values()) == found.total == len(offerings)
    assert len(found.rows) <= limit


@settings(max_examples=60, deadline=None)
@given(OFFERINGS, WORKLOADS)
def test_ranked_rows_are_comparable_serve_and_never_grow_cheaper(
    offerings: list[Offering], slug: str
) -> None:
    rows = ask(offerings, preset(slug), limit=100).rows[1:]
    assert all(row.status.serves and row.rate.ranked for row in rows)
    order = [
        (ORDER[row.status], row.plan.fit.word == "tight", _late(row), _money(row)) for row in rows
    ]
    assert order == sorted(order)


def _late(row: Candidate) -> bool:
    """Whether a deadline is missed at the slow end. Without one, and untimed, nobody says so."""
    deadline = row.outlook.deadline if row.outlook else None
    return deadline is not None and deadline.word is not InTime.YES


def _money(row: Candidate) -> Decimal:
    """Of a job with an end, of a million tokens, else of an hour."""
    if row.outlook and row.outlook.cost:
        return row.outlook.cost.high.quantize(Decimal("0.000001"))
    served = row.outlook is not None and row.outlook.ttft is not None
    million = row.outlook.per_million if row.outlook and served else None
    return million.high if million else row.cost_per_hour or Decimal(0)


def test_the_verdict_of_each_configuration_is_worked_out_once() -> None:
    many = [offer(amount=f"{cents}", key=f"{cents}") for cents in range(1, 200)]
    found = ask(many, limit=500)
    assert found.configurations == 1
    assert len({id(row.machine) for row in found.rows}) == 1


def test_a_machine_that_is_missing_is_an_error_with_its_key() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        ask([offer("nowhere")])


def test_a_machine_without_any_fact_is_listed_as_not_judged() -> None:
    found = shortlist(
        preset(SERVE_8B), Fleet.of([offer("empty")], {"empty": Machine(vcpus=declared(4))})
    )
    assert found.rows[0].status is Status.UNKNOWN


def test_kept_verdicts_serve_workloads_that_differ_in_costs_and_budget() -> None:
    plain = train("llama-3.1-8b", tokens_to_train=10**9, lora={"rank": 8})
    costly = replace(plain, costs=replace(plain.costs, setup_hours=300.0), budget_amount=Decimal(5))
    fleet = Fleet.of([offer("h100x8", "16"), offer(amount="2.00")], MACHINES)
    judged = judge_fleet(plain, fleet)
    for workload in (plain, costly, plain):
        kept = shortlist(workload, fleet, judged=judged)
        assert kept == shortlist(workload, fleet)
        assert kept.rows[1].outlook
    assert shortlist(plain, fleet, judged=judged) != shortlist(costly, fleet, judged=judged)


def test_a_job_of_which_no_plan_can_be_cut_hides_every_offer_with_the_reason() -> None:
    job = train(global_batch=8, micro_batch=8)
    assert job.training is not None
    odd = replace(job, training=replace(job.training, global_batch=7))
    found = shortlist(odd, Fleet.of([offer("h100x8", "16")], MACHINES))
    assert (found.rows, found.hidden) == ((), {NOTHING_JUDGED: 1})
