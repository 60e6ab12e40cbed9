"""The shortlist of a large market against peers, in one process, turns shuffled.

Each figure is a ratio within a round: its median, in brackets the tenth and ninetieth in a hundred
(of fewer than ten rounds the least and the most), then the median times of ours and of the other.
Gpuhunt answers a smaller question: it filters. AIConfigurator answers another one: one model on one
type of GPU, without listings or prices.
"""

from __future__ import annotations

import gc
import random
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from evaluator.economics import terms_of
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.shortlist import judge_fleet, shortlist
from evaluator.verdict import judge_briefly
from evaluator.workbook import Workbook
from evaluator.workload import parse_workload, workload_presets
from tests import peer_aiconfigurator as planner
from tests.market import Market, cloud, peers
from tests.peer_gpuhunt import is_installed, peer_query
from tests.turns import Arm, rounds, tell

OFFERS, TINY = 100_000, 1_000
ROUNDS, SEARCHES = 25, 2
SAMPLE = 40
"""Listings that are judged one by one; the figure is scaled up to all of them."""


def workload_of(slug: str, number: int) -> Workload:
    """A workload that was never asked before: a preset with longer sequences each time."""
    known = parse_workload(workload_presets()[slug])
    if job := known.serving:
        return replace(known, serving=replace(job, output_tokens=job.output_tokens + number))
    if work := known.training:
        return replace(known, training=replace(work, seq_len=work.seq_len + 8 * number))
    return known


def arms_of(slug: str, market: Market, fleet: Fleet) -> dict[str, Arm]:
    numbers = count()
    kept = workload_of(slug, next(numbers))
    judged = judge_fleet(kept, fleet)
    return {
        "a new workload, top 20 with reasons": lambda: shortlist(
            workload_of(slug, next(numbers)), fleet
        ),
        "the same with kept verdicts": lambda: shortlist(kept, fleet, judged=judged),
    }


def each_alone(slug: str, market: Market) -> Arm:
    """Some listings, every one on its own."""
    numbers, by = count(10**6), random.Random(1)
    machines = [market.machines[one.configuration] for one in by.sample(market.offers, SAMPLE)]

    def judge() -> None:
        workload = workload_of(slug, next(numbers))
        for machine in machines:
            judge_briefly(Workbook(workload), machine)

    return judge


def _peer(market: Market, folder: Path) -> Arm:
    asked = peer_query(market, folder)
    set_aside()
    return asked


def set_aside() -> None:
    """What was made so far is out of the collector's way."""
    gc.collect()
    gc.freeze()


def bench_market(name: str, market: Market, slug: str, times: int) -> None:
    start = perf_counter()
    fleet = Fleet.of(market.offers, market.machines)
    built = perf_counter() - start
    set_aside()
    start = perf_counter()
    fleet.rates(terms_of(workload_of(slug, 0)))
    rated = perf_counter() - start
    start = perf_counter()
    shortlist(workload_of(slug, 10**7), fleet)
    first = perf_counter() - start
    judged = judge_fleet(workload_of(slug, 0), fleet)
    pairs = int(judged.tried[judged.case[fleet.machine]].sum())
    print(
        f"{name}: {len(market.offers):,} offers of {len(market.machines):,} configurations, "
        f"{pairs:,} offer-plan pairs, {slug}\n"
        f"  snapshot built in {built:.2f} s, prices in {rated:.2f} s, first answer in {first:.2f} s"
    )
    arms = arms_of(slug, market, fleet)
    alone, ours = each_alone(slug, market), list(arms)
    with tempfile.TemporaryDirectory() as folder:
        peer = {"peer": _peer(market, Path(folder))} if is_installed() else {}
        found = rounds({**arms, "alone": alone, **peer}, times)
    for arm in ours:
        tell(arm, found[arm], found["alone"], "listing by listing", len(market.offers) / SAMPLE)
        if peer:
            tell(arm, found[arm], found["peer"], "gpuhunt's query, which only filters")
    if not peer:
        print("  skipped: gpuhunt is not installed (the extra `bench` brings it)")


def bench_one_listing() -> None:
    """All plans on one machine of eight GPUs, every reason written."""
    market = cloud(TINY)
    machine = next(
        one for one in market.machines.values() if one.gpu_count.value == 8 and one.link.known
    )
    numbers = count()

    def judge() -> int:
        book = Workbook(workload_of("train-llama-70b", next(numbers)))
        return len(judge_briefly(book, machine, 1).plans)

    plans = judge()
    spent = rounds({"judge": judge}, ROUNDS)["judge"]
    wall, processor = (median(part) * 1000 for part in (spent.wall, spent.processor))
    print(
        f"one listing of 8 GPUs, {plans} plans, a new workload: {wall:.1f} ms on the wall,"
        f" {processor:.1f} ms of the processor"
    )


def served_like_the_search(number: int) -> Workload:
    """The model, lengths and targets of AIConfigurator's question; another length each time."""
    return parse_workload(
        {
            "name": "Serve Llama 3.1 70B within targets",
            "task": "serve",
            "model": {"preset": "llama-3.1-70b"},
            "engine": "vllm",
            "input_tokens": planner.INPUT_TOKENS,
            "output_tokens": planner.OUTPUT_TOKENS + number,
            "concurrency": 32,
            "targets": {"ttft_ms": planner.TTFT_MS, "tpot_ms": planner.TPOT_MS},
        }
    )


def bench_search(market: Market) -> None:
    """Few rounds: a search takes seconds."""
    search = planner.peer_search()
    if search is None:
        print(f"  skipped: aiconfigurator is not installed ({planner.BRINGS})")
        return
    fleet, numbers = Fleet.of(market.offers, market.machines), count()
    ours = "a new workload, top 20 with reasons"
    arms: dict[str, Arm] = {
        ours: lambda: shortlist(served_like_the_search(next(numbers)), fleet),
        "search": search,
    }
    arms[ours]()
    found = rounds(arms, SEARCHES)
    print(
        f"a planner's search, another question: Llama 3.1 70B on {planner.GPUS} x H200, no prices"
    )
    against = "one AIConfigurator search from a cold start, which knows no listing"
    tell(ours, found[ours], found["search"], against)


def bench_shortlists(times: int = ROUNDS) -> None:
    large = cloud(OFFERS)
    for slug in workload_presets():
        bench_market("cloud", large, slug, times)
    slug = next(iter(workload_presets()))
    bench_search(large)
    bench_market("tiny", cloud(TINY), slug, times)
    bench_market("market", peers(OFFERS), slug, max(3, times // 5))
    bench_one_listing()


if __name__ == "__main__":
    bench_shortlists()
