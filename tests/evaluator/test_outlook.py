"""What a plan promises at a price, in figures and in words."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import ceil

import pytest

from evaluator.facts import UNKNOWN
from evaluator.jobs import Workload
from evaluator.machine import LinkClass
from evaluator.outlook import Outlook, Price, deadline_words, outlook_of, queue_words, words_of
from evaluator.plans import Plan
from evaluator.prices import TimeUnit
from evaluator.queueing import OpenLoop
from evaluator.ranges import Range
from evaluator.spending import InTime, meets
from tests.evaluator.cards import served, trained
from tests.evaluator.machines import known
from tests.evaluator.test_scaling import machine

SWITCHED = machine()
SHARDED = Plan(dp=8, shard=8)
TWENTY = Price(Decimal(20))


def seen(workload: Workload, plan: Plan, price: Price | None = TWENTY) -> Outlook:
    found = outlook_of(workload, plan, SWITCHED, price)
    assert found is not None
    return found


def test_a_training_job_ends_in_hours_for_money_from_low_to_high() -> None:
    found = seen(trained(tokens_to_train=10**10), SHARDED)
    assert found.hours is not None
    assert found.cost is not None
    assert found.hours.low < found.hours.typical < found.hours.high
    assert found.cost.typical == 20 * ceil(found.hours.typical)
    assert found.cost.low < found.cost.high


def test_a_deadline_is_judged_by_the_slow_end() -> None:
    job = trained(tokens_to_train=10**10, deadline_hours=1000.0)
    found = seen(job, SHARDED).deadline
    assert found is not None
    assert found.word is InTime.YES
    late = seen(trained(tokens_to_train=10**10, deadline_hours=1.0), SHARDED)
    assert late.late


@pytest.mark.parametrize(
    ("limit", "words"),
    [(21, "in time with 1 hour to spare"), (24, "in time with 4 hours to spare")],
)
def test_hours_to_spare_are_counted_in_words(limit: float, words: str) -> None:
    assert deadline_words(meets(limit, Range(5, 10, 20))) == words


def test_a_job_without_an_end_has_no_hours_but_a_price_per_token() -> None:
    found = seen(trained(), SHARDED)
    assert found.hours is None
    assert found.cost is None
    assert found.per_million is not None


def test_without_a_price_there_is_time_and_no_money() -> None:
    found = seen(trained(tokens_to_train=10**10), SHARDED, None)
    assert found.hours is not None
    assert found.cost is None
    assert found.per_million is None


def test_a_day_is_billed_whole() -> None:
    found = seen(trained(tokens_to_train=10**8), SHARDED, Price(Decimal(20), TimeUnit.DAY))
    assert found.cost is not None
    assert found.cost.low == found.cost.high == Decimal(480)


def test_targets_that_the_typical_value_misses_are_named() -> None:
    strict = served(concurrency=64, ttft_ms=1.0, tpot_ms=10_000.0, tokens_per_s=1e9)
    missed = seen(strict, Plan(tp=4)).missed
    assert len(missed) == 2
    assert missed[0].startswith("time to the first token")


def test_an_unknown_link_makes_a_span_that_says_so() -> None:
    dark = replace(SWITCHED, link=UNKNOWN)
    found = outlook_of(served(concurrency=16), Plan(tp=4), dark, TWENTY)
    assert found is not None
    assert found.conditional
    assert found.widest == "the link between the GPUs is not known"
    assert found.rate.low < seen(served(concurrency=16), Plan(tp=4)).rate.low


def test_what_dominates_a_rate_is_what_takes_the_time_of_a_request() -> None:
    """A long prompt with a short answer is prefill; a short prompt is reading weights."""
    long = seen(served(input_tokens=8000, output_tokens=16, concurrency=1), Plan(tp=4))
    short = seen(served(input_tokens=16, output_tokens=2000, concurrency=1), Plan(tp=4))
    assert long.dominating.startswith("prefill")
    assert short.dominating.startswith("reading weights")


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [
        (0.01, "99% of the requests wait for none"),
        (3.0, "of the waits 95% end within"),
        (100.0, "the queue grows without end"),
    ],
)
def test_a_queue_is_told_where_arrivals_are_stated(arrivals: float, words: str) -> None:
    found = seen(served(concurrency=8, arrival_rate=arrivals), Plan(tp=2)).queue
    assert found is not None
    if words.startswith("of the waits"):
        found = replace(found, service_seconds=0.88 * found.slots / found.arrivals_per_s)
    assert words in queue_words(found)
    assert seen(served(concurrency=8), Plan(tp=2)).queue is None


def test_near_saturation_no_wait_is_told() -> None:
    assert "cannot be told" in queue_words(OpenLoop(8, 1.9, 4.0))


def test_what_waits_for_a_link_is_named_with_the_link() -> None:
    job = served(concurrency=64, input_tokens=4000)
    slow = replace(SWITCHED, link=known(LinkClass.P2P_DISABLED))
    dark = replace(SWITCHED, link=UNKNOWN)
    for on, link in ((slow, "PCIe without peer access"), (dark, "an unknown link")):
        found = outlook_of(job, Plan(tp=8), on, TWENTY)
        assert found is not None
        assert found.dominating.startswith("all-reduce")
        assert f" over {link}: " in found.dominating
        assert found.dominating.endswith("% of the time")
    assert " over " not in seen(served(concurrency=1), Plan(tp=2)).dominating


def test_what_waits_for_machines_is_named_with_their_network() -> None:
    joined, wide = replace(SWITCHED, inter_node=known("10 GbE")), Plan(dp=16, shard=16, nodes=2)
    found = outlook_of(trained(), wide, joined, TWENTY)
    assert found is not None
    assert "over NVSwitch between all GPUs and 10 GbE: " in found.dominating


def test_a_plan_that_does_not_fit_has_no_outlook() -> None:
    assert outlook_of(served(form="bf16"), Plan(), SWITCHED, TWENTY) is None


@pytest.mark.parametrize(
    ("workload", "plan", "words"),
    [
        (served(concurrency=4), Plan(tp=4), "USD per 1,000,000 tokens"),
        (trained(tokens_to_train=10**10, deadline_hours=900.0), SHARDED, "USD to finish, in time"),
    ],
)
def test_one_line_says_it_all(workload: Workload, plan: Plan, words: str) -> None:
    line = words_of(seen(workload, plan), "USD")
    assert "tokens/s" in line
    assert words in line
