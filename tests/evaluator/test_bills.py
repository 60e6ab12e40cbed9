"""The all-in cost: lines that add up, what is open, and the worked examples of economics."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.affordable import BudgetWord, break_even, hours_bought, use_of, within
from evaluator.bills import Bill, Job, Line, Price, bill_of, spent_on
from evaluator.facts import declared
from evaluator.first_step import checkpoint_range, first_step
from evaluator.jobs import Workload
from evaluator.prices import Purchase, TimeUnit
from evaluator.ranges import Range, exact
from evaluator.spending import (
    Reclaimed,
    cost_ratio,
    hours_for,
    machine_hours,
    stay_needed_s,
)
from evaluator.spot import reclaimed
from evaluator.units import GB
from tests.evaluator.machines import machine, serve, train

TWO = Price(Decimal(2))
SPOT = Price(Decimal(2), purchase=Purchase.SPOT)
TEN_HOURS = exact(10.0)
L70_PARAMS = 70_550_000_000


def job(costs: dict[str, Any] | None = None, work: Range | None = TEN_HOURS, **keys: Any) -> Job:
    workload = train(costs=costs or {}, tokens_to_train=10**9, **keys)
    return Job(workload, machine(), work, 16 * GB, trained=8_030_000_000)


def lines(bill: Bill) -> dict[str, Line]:
    return {line.name: line for line in bill.lines}


def typical(bill: Bill, name: str) -> Decimal:
    cost = lines(bill)[name].cost
    assert cost is not None
    return cost.typical


PLAIN = {"setup_hours": 0, "verification_hours": 0, "download_bytes_per_s": 10**12}


def test_lines_add_up_to_the_total() -> None:
    bill = bill_of(job({"storage_per_gb_month": 0.1, "egress_per_gb": 0.05}), TWO)
    assert bill.open == ()
    for end in ("low", "typical", "high"):
        parts = [getattr(line.cost, end) for line in bill.lines]
        assert sum(parts) == getattr(bill.total, end)


def test_what_nobody_states_is_open_and_not_free() -> None:
    bill = bill_of(job(), TWO)
    assert bill.open == ("storage", "egress")
    assert lines(bill)["storage"].cost is None
    free = bill_of(job({"storage_per_gb_month": 0, "egress_per_gb": 0}), TWO)
    assert free.open == ()
    assert free.total == bill.total


def test_every_line_says_what_it_rests_on_and_a_stated_figure_is_no_assumption() -> None:
    bill = bill_of(job(), TWO)
    assert all(line.assumption for line in bill.lines)
    assert not any(line.stated for line in bill.lines)
    said = lines(bill_of(job({**PLAIN, "minimum_hours": 24}), TWO))
    for name in ("start and installation", "verification", "download and loading", "rounding"):
        assert said[name].stated, name


def test_a_started_hour_is_paid_and_a_minimum_term_too() -> None:
    assert bill_of(job(PLAIN), TWO).total.typical == 22
    day = bill_of(job({**PLAIN, "minimum_hours": 24}), TWO)
    assert day.total.typical == 48
    minute = bill_of(job({**PLAIN, "billing_unit_hours": 0.25}), TWO)
    assert minute.total.typical == Decimal("20.5")


def test_a_rate_by_the_second_is_hardly_rounded() -> None:
    bill = bill_of(job(PLAIN), Price(Decimal(2), TimeUnit.SECOND))
    assert 0 <= typical(bill, "rounding") < Decimal("0.001")


def test_storage_goes_on_while_the_machine_is_stopped() -> None:
    """GB x rate per month x hours / 730."""
    costs = {**PLAIN, "storage_per_gb_month": 0.10, "stopped_hours": 720}
    bill = bill_of(job(costs, dataset_bytes=84 * GB, checkpoint_bytes=0), TWO)
    hours = Decimal(str(bill.hours.typical + 720))
    expected = 100 * Decimal("0.10") * hours / 730
    assert typical(bill, "storage") == pytest.approx(expected)


def test_egress_is_bytes_out_times_its_rate() -> None:
    costs = {"egress_per_gb": 0.08}
    assert typical(bill_of(job(costs, checkpoint_bytes=100 * GB), TWO), "egress") == 8
    own = bill_of(job({**costs, "egress_bytes": 10 * GB}, checkpoint_bytes=100 * GB), TWO)
    assert typical(own, "egress") == Decimal("0.8")


def test_the_download_is_machine_time() -> None:
    """16 GB of weights at 1 GB/s: 16 s of the machine, and loading them."""
    found = first_step(serve("llama-3.1-8b"), machine(), 16 * GB, 10**9)
    assert found is not None
    assert found.download.typical == pytest.approx(16)
    slow = first_step(serve("llama-3.1-8b"), machine(), 16 * GB)
    assert slow is not None
    assert slow.download.low < 16 < slow.download.high
    assert (found.stated, slow.stated) == (True, False)


def test_the_machine_s_own_download_rate_counts_before_an_assumption() -> None:
    of = machine(download_bytes_per_s=declared(10**9))
    found = first_step(serve("llama-3.1-8b"), of, 16 * GB)
    assert found is not None
    assert found.download.low == found.download.high == pytest.approx(16)


def test_weights_of_unknown_size_leave_their_line_open() -> None:
    unknown = Job(train(tokens_to_train=10**9), machine(), TEN_HOURS, None)
    assert "download and loading" in bill_of(unknown, TWO).open


def test_a_checkpoint_of_70b_is_0_85_to_0_99_terabytes() -> None:
    found = checkpoint_range(train("llama-3.1-70b"), L70_PARAMS)
    assert found is not None
    assert found.low / 1e12 == pytest.approx(0.85, abs=0.005)
    assert found.high / 1e12 == pytest.approx(0.99, abs=0.005)
    stated = checkpoint_range(train(checkpoint_bytes=5 * GB), L70_PARAMS)
    assert stated == exact(5.0 * GB)


def test_a_server_s_bill_ends_with_the_first_request() -> None:
    workload = serve("llama-3.1-8b")
    bill = bill_of(Job(workload, machine(), None, 16 * GB), TWO)
    assert not bill.ends
    assert "work" not in lines(bill)
    assert "rounding" not in lines(bill)
    assert bill.hours == spent_on(Job(workload, machine(), None, 16 * GB)).rented


# --- spot capacity


def test_spot_without_a_stated_stay_leaves_the_restarts_open() -> None:
    bill = bill_of(job(), SPOT)
    assert "restarts on spot capacity" in bill.open
    assert "restarts on spot capacity" not in lines(bill_of(job(), TWO))


def test_spot_pays_for_saving_lost_work_and_restarts() -> None:
    firm, spot = bill_of(job(), TWO), bill_of(job({"reclaim_hours": 6}), SPOT)
    assert spot.total.typical > firm.total.typical
    assert spot.hours.typical > firm.hours.typical
    assert "checkpoint every" in lines(spot)["restarts on spot capacity"].assumption


def test_several_machines_are_reclaimed_more_often() -> None:
    one = job({"reclaim_hours": 24})
    four = Job(one.workload, one.machine, one.work, one.weights_bytes, one.trained, machines=4)
    assert bill_of(four, SPOT).hours.typical > bill_of(one, SPOT).hours.typical


def test_a_job_that_is_taken_away_faster_than_it_is_saved_has_no_end() -> None:
    bill = bill_of(job({"reclaim_hours": 0.01}, checkpoint_bytes=10**13), SPOT)
    assert "restarts on spot capacity" in bill.open
    assert "faster" in lines(bill)["restarts on spot capacity"].assumption


def test_spot_says_from_which_stay_on_it_pays() -> None:
    price = Price(Decimal(1), purchase=Purchase.SPOT, firm_per_hour=Decimal(2))
    words = lines(bill_of(job(), price))["restarts on spot capacity"].assumption
    assert "it pays off where a machine stays" in words
    dear = Price(Decimal(3), purchase=Purchase.SPOT, firm_per_hour=Decimal(2))
    assert "costs no less" in lines(bill_of(job(), dear))["restarts on spot capacity"].assumption


@given(st.floats(1, 3600), st.floats(0, 7200), st.floats(0.05, 0.95))
def test_at_the_stay_that_is_needed_both_prices_are_equal(
    saving: float, restart: float, share: float
) -> None:
    stay = stay_needed_s(saving, restart, share)
    stop = Reclaimed(stay, saving_s=saving, restart_s=restart)
    assert share * stop.price_factor == pytest.approx(1, rel=1e-6)


def test_a_price_that_is_no_lower_never_pays() -> None:
    assert stay_needed_s(120, 600, 1) == float("inf")


def test_young_s_interval_of_the_worked_example() -> None:
    """M = 6 h, 120 s to save, 600 s to restart: 2277 s, 13.3 %, 1.154 times the price."""
    stop = reclaimed(6 * 3600, exact(120 * 1e9), exact(600))[1]
    assert stop.interval_s == pytest.approx(2277, abs=1)
    assert stop.price_factor == pytest.approx(1.154, abs=0.001)
    assert stop.interval_for_availability_s == pytest.approx(
        120 + (2 * 22_200 * 120 + 120**2) ** 0.5
    )


def test_hardware_seldom_fails_on_one_node() -> None:
    """Llama 3: 419 interruptions in 54 days on 16,384 GPUs are 50,700 GPU-hours between two."""
    per_gpu = 54 * 24 * 16_384 / 419
    assert per_gpu == pytest.approx(50_700, rel=0.001)
    assert per_gpu / 8 / 24 == pytest.approx(264, abs=0.5)
    eight = reclaimed(per_gpu / 8 * 3600, exact(120 * 1e9), exact(600))[1]
    assert eight.overhead < 0.005


# --- use of a server


def test_use_is_stated_or_follows_from_the_arrivals_or_is_full() -> None:
    rate = Range(500, 1000, 2000)
    assert use_of(serve(costs={"utilisation": 0.4}), rate).share == exact(0.4)
    arrivals = use_of(serve(arrival_rate=2.0, output_tokens=200), rate)
    assert arrivals.share == Range(0.2, 0.4, 0.8)
    assert arrivals.served(rate) == exact(400.0)
    assert use_of(serve(), rate).share == exact(1.0)
    assert use_of(serve(), rate).words == "busy all the time"
    for low in range(300, 400):
        rates = Range(low, low * 1.3, low * 1.7)
        served = use_of(serve(arrival_rate=0.5, output_tokens=256), rates).served(rates)
        assert served.typical == pytest.approx(128)
    more = use_of(serve(arrival_rate=1e6, output_tokens=200), rate)
    assert (more.share, more.words) == (exact(1.0), "busy all the time at the arrival rate")


# --- budget


def bill(low: int, high: int) -> Bill:
    return Bill((Line("work", cost(low, high), "x"), Line("egress", None, "x")), TEN_HOURS, True)


def cost(low: int, high: int) -> Any:
    found = lines(bill_of(job(PLAIN), TWO))["work"].cost
    return type(found)(Decimal(low), Decimal(low), Decimal(high))


@pytest.mark.parametrize(
    ("budget", "word", "left"),
    [
        (200, BudgetWord.INSIDE, 0),
        (199, BudgetWord.MAY_EXCEED, -1),
        (100, BudgetWord.MAY_EXCEED, -100),
        (99, BudgetWord.EXCEEDS, -101),
    ],
)
def test_a_budget_is_judged_by_the_dear_end(budget: int, word: BudgetWord, left: int) -> None:
    found = within(Decimal(budget), bill(100, 200))
    assert (found.word, found.left, found.open) == (word, left, ("egress",))


def test_a_budget_keeps_a_server_for_so_many_hours() -> None:
    assert hours_bought(Decimal(300), bill(100, 200), Decimal(2)) == 50
    assert hours_bought(Decimal(100), bill(100, 200), Decimal(2)) == 0


ORDER = [BudgetWord.EXCEEDS, BudgetWord.MAY_EXCEED, BudgetWord.INSIDE]


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_more_budget_is_never_worse(low: int, spread: int, budget: int, more: int) -> None:
    found = bill(low, low + spread)
    before, after = (within(Decimal(one), found).word for one in (budget, budget + more))
    assert ORDER.index(after) >= ORDER.index(before)


HOURS = st.floats(0.01, 10_000)
MONEY = st.decimals("0.01", "1000", places=2)
UNITS = st.sampled_from([TimeUnit.SECOND, TimeUnit.HOUR, TimeUnit.DAY])


@given(HOURS, HOURS, MONEY, UNITS)
def test_longer_work_never_costs_less(one: float, other: float, rate: Decimal, unit: Any) -> None:
    short, long = sorted((one, other))
    price = Price(rate, unit)
    less, more = (bill_of(job(work=exact(hours)), price).total for hours in (short, long))
    assert less.low <= more.low
    assert less.typical <= more.typical
    assert less.high <= more.high


@given(HOURS, MONEY, MONEY, UNITS)
def test_a_dearer_rate_never_costs_less(
    hours: float, one: Decimal, other: Decimal, unit: Any
) -> None:
    low, high = sorted((one, other))
    cheap, dear = (bill_of(job(work=exact(hours)), Price(rate, unit)).total for rate in (low, high))
    assert cheap.typical <= dear.typical


@given(HOURS, MONEY, UNITS, st.floats(0, 100))
def test_rounding_is_never_below_what_is_used(
    hours: float, rate: Decimal, unit: Any, least: float
) -> None:
    found = bill_of(job({"minimum_hours": least}, exact(hours)), Price(rate, unit))
    rounding = lines(found)["rounding"].cost
    assert rounding is not None
    assert min(rounding.low, rounding.typical, rounding.high) >= 0


# --- one bigger GPU


def test_one_bigger_gpu_against_several_of_the_worked_example() -> None:
    """L70: H200 x1 4166, L40S x4 1943 tokens/s: one H200 may cost up to 8.6 L40S."""
    found = break_even(4166, Decimal("3.50"), 1943, Decimal("4.00"), 4)
    assert found.ratio == pytest.approx(8.6, abs=0.03)
    assert found.big_below == pytest.approx(Decimal("8.58"), abs=Decimal("0.01"))
    assert found.big_from == pytest.approx(1943 * 3.5 / 4)
    assert found.wins is True


@pytest.mark.parametrize(
    ("gpus", "rate", "each"), [(1, 4166, 4166), (2, 6170, 3085), (4, 2811, 703), (4, 1943, 486)]
)
def test_rate_per_gpu_of_the_worked_example(gpus: int, rate: float, each: float) -> None:
    assert rate / gpus == pytest.approx(each, abs=0.6)
    assert break_even(4166, None, rate, None, gpus).ratio == pytest.approx(4166 / each, rel=0.002)


def test_without_prices_only_the_ratio_is_known() -> None:
    found = break_even(4166, None, 1943, Decimal(4), 4)
    assert found.wins is None
    assert found.big_from is None
    assert found.big_below is not None


@given(st.floats(1, 1e5), MONEY, st.floats(1, 1e5), MONEY, st.integers(2, 16))
def test_both_ways_of_saying_it_agree(
    big: float, big_price: Decimal, small: float, small_price: Decimal, gpus: int
) -> None:
    found = break_even(big, big_price, small, small_price, gpus)
    assert found.big_from is not None
    if abs(big - found.big_from) > 1e-6 * big:
        assert found.wins is (big > found.big_from)


def test_cost_of_one_job_on_more_gpus_of_the_worked_example() -> None:
    """(n2 x X_n1) / (n1 x X_n2): L70 on L40S, 177.7 tokens/s on 4 GPUs and 176.2 on 8."""
    assert cost_ratio((4, 177.7), (8, 176.2)) == pytest.approx(2.017, abs=0.001)


def test_hours_and_machine_hours_of_the_worked_example() -> None:
    """hours = tokens / (X x 3600); machine hours = hours x machines, in whole billing units."""
    hours = hours_for(10**9, exact(25_000.0))
    assert hours.typical == pytest.approx(11.11, abs=0.005)
    assert machine_hours(hours.typical, 2, Decimal(1)) == 24


# --- the workload file


def test_a_workload_file_states_costs() -> None:
    costs = train(costs={"setup_hours": 0, "utilisation": 0.5, "egress_per_gb": 0.09}).costs
    assert (costs.setup_hours, costs.utilisation) == (0, 0.5)
    assert costs.egress_per_gb == Decimal("0.09")
    assert costs.storage_per_gb_month is None


@pytest.mark.parametrize(
    "costs",
    [
        {"setup_hour": 1},
        {"utilisation": 1.5},
        {"utilisation": 0},
        {"egress_per_gb": -1},
        {"egress_per_gb": "cheap"},
        {"billing_unit_hours": 0},
        [],
    ],
)
def test_odd_costs_are_refused_by_name(costs: Any) -> None:
    with pytest.raises(ValueError, match="costs"):
        train(costs=costs)


def test_costs_change_no_verdict_so_they_are_no_part_of_its_key() -> None:
    plain: Workload = train()
    assert train(costs={"setup_hours": 3}).fingerprint() == plain.fingerprint()
