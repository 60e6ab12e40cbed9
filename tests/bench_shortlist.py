"""The shortlist of a large market against peers, in one process, turns shuffled.

Each figure is a ratio within a round: its median, in brackets the tenth and ninetieth in a hundred,
then the median times of ours and of the other. Gpuhunt answers a smaller question: it filters.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time

from evaluator.economics import terms_of
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.shortlist import judge_fleet, shortlist
from evaluator.verdict import judge_briefly
from evaluator.workbook import Workbook
from evaluator.workload import parse_workload, workload_presets
from tests.market import Market, cloud, peers
from tests.peer_gpuhunt import is_installed, peer_query

OFFERS, TINY = 100_000, 1_000
ROUNDS = 25
SAMPLE = 40
"""Listings that are judged one by one; the figure is scaled up to all of them."""
Arm = Callable[[], object]


def workload_of(slug: str, number: int) -> Workload:
    """A workload that was never asked before: another length of its sequences each time."""
    known = parse_workload(workload_presets()[slug])
    if known.serving:
        return replace(known, serving=replace(known.serving, output_tokens=200 + number))
    job = known.training
    return replace(known, training=replace(job, seq_len=1024 + 8 * number) if job else None)


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


@dataclass(frozen=True)
class Spent:
    """Seconds of one arm by round: on the wall, and of the processor, which no neighbour moves."""

    wall: list[float]
    processor: list[float]


def rounds(arms: Mapping[str, Arm], times: int) -> dict[str, Spent]:
    """The order within a round is shuffled."""
    by, found = random.Random(2), {name: Spent([], []) for name in arms}
    for _ in range(times):
        for name in by.sample(list(arms), len(arms)):
            wall, processor = perf_counter(), process_time()
            arms[name]()
            found[name].wall.append(perf_counter() - wall)
            found[name].processor.append(process_time() - processor)
    return found


def tell(name: str, ours: Spent, theirs: Spent, against: str, scale: float = 1) -> None:
    print(
        f"  {name:<36} {_ratio(ours.wall, theirs.wall, scale)} ms on the wall,"
        f" {_ratio(ours.processor, theirs.processor, scale)} ms of the processor, against {against}"
    )


def _ratio(ours: list[float], theirs: list[float], scale: float) -> str:
    ratios = [other * scale / own for own, other in zip(ours, theirs, strict=True)]
    low, *_, high = quantiles(ratios, n=10)
    spread = f"{median(ratios):,.1f} x ({low:,.1f} to {high:,.1f})"
    return f"{spread}: {median(ours) * 1000:,.1f} and {median(theirs) * scale * 1000:,.1f}"


def bench_market(name: str, market: Market, slug: str, times: int) -> None:
    start = perf_counter()
    fleet = Fleet.of(market.offers, market.machines)
    built = perf_counter() - start
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
        peer = {"peer": peer_query(market, Path(folder))} if is_installed() else {}
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


def bench_shortlists(times: int = ROUNDS) -> None:
    large = cloud(OFFERS)
    for slug in workload_presets():
        bench_market("cloud", large, slug, times)
    slug = next(iter(workload_presets()))
    bench_market("tiny", cloud(TINY), slug, times)
    bench_market("market", peers(OFFERS), slug, max(3, times // 5))
    bench_one_listing()
    if find_spec("aiconfigurator") is None:
        print("  skipped: aiconfigurator is not installed")


if __name__ == "__main__":
    bench_shortlists()
