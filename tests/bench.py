"""`make bench`: how the work grows, each figure a ratio against a floor of the same run.

No figure is asserted: machines differ, ratios less so. Each line says what is compared with what.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from random import shuffle
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

import django
import numpy as np
from numpy.typing import NDArray

django.setup()

from bs4 import BeautifulSoup  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from evaluator.columns import Models, budget_columns, plan_columns  # noqa: E402
from evaluator.jobs import Workload  # noqa: E402
from evaluator.models import preset, presets  # noqa: E402
from evaluator.plans import Plan  # noqa: E402
from evaluator.shapes import ModelShape  # noqa: E402
from evaluator.sizes import Sizes  # noqa: E402
from evaluator.workload import parse_workload, workload_presets  # noqa: E402
from marketplace import sources, sync  # noqa: E402
from marketplace.catalog.base import Page  # noqa: E402
from marketplace.catalog.registry import adapter_for  # noqa: E402
from marketplace.models import Source  # noqa: E402
from marketplace.samples.server import serve_samples  # noqa: E402
from tests.bench_cold import bench_cold  # noqa: E402
from tests.bench_pages import bench_pages  # noqa: E402
from tests.bench_shortlist import bench_shortlists  # noqa: E402
from tests.bench_sync import bench_sync  # noqa: E402
from tests.scratch import scratch_database  # noqa: E402


def fastest(work: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of the fastest of several rounds: the least disturbed one."""
    return min(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def tell(name: str, ours: float, floor: float, against: str) -> None:
    print(f"{name:<44} {ours * 1000:>10.1f} ms {ours / floor:>8.2f} x {against}")


PAIRS = 1000
BUDGET_ROUNDS = 40


def bench_budgets() -> None:
    """A thousand (model, plan) pairs in one call, against the weight formula alone in NumPy.

    The floor takes models and plans from ready columns. Ours is timed with such columns too, then
    from shapes and plans as objects, the same list of models again and again or a list in a new
    order each time, then with shapes that the process has not met before, one for all pairs or all
    of them. A ratio is that of the fastest rounds, in brackets of the medians.
    """
    shapes = [shape for shape in map(preset, presets()) if shape.computable and shape.dimensioned]
    models, which = Models(shapes), np.arange(PAIRS) % len(shapes)
    degrees = [Plan(tp=tp, pp=pp, dp=2) for tp in (1, 2, 4, 8) for pp in (1, 2, 4)]
    pairs = [degrees[number % len(degrees)] for number in range(PAIRS)]
    plans = plan_columns(pairs)
    floor = _rounds(lambda: _bare_weights(models.sizes(which), plans))
    print(f"{PAIRS} pairs of {len(shapes)} models, floor: {floor[0] * 1e6:.0f} µs")
    for slug in workload_presets():
        workload = parse_workload(workload_presets()[slug])
        ways: dict[str, Callable[[], object]] = {
            "from columns": lambda w=workload: budget_columns(w, models, which, plans).binding,
            "from shapes and plans": lambda w=workload: _from_objects(w, shapes, which, pairs),
            "models in a new order": lambda w=workload: _turned(w, shapes, which, pairs),
            "one model not met before": lambda w=workload: _unmet(w, shapes[:1], 0 * which, pairs),
            "no model met before": lambda w=workload: _unmet(w, shapes, which, pairs),
        }
        for way, work in ways.items():
            _tell_spread(f"{slug}, {way}", _rounds(work), floor)


def _from_objects(
    workload: Workload, shapes: list[ModelShape], which: NDArray[Any], pairs: list[Plan]
) -> object:
    return budget_columns(workload, Models(shapes), which, plan_columns(pairs)).binding


def _turned(
    workload: Workload, shapes: list[ModelShape], which: NDArray[Any], pairs: list[Plan]
) -> object:
    """A list that no cache has seen, of models that all are known."""
    shuffle(shapes)
    return _from_objects(workload, shapes, which, pairs)


def _unmet(
    workload: Workload, shapes: list[ModelShape], which: NDArray[Any], pairs: list[Plan]
) -> object:
    """Names that no cache has seen: everything about a model is worked out again."""
    fresh = [replace(shape, name=f"{shape.name} {perf_counter()}") for shape in shapes]
    return _from_objects(workload, fresh, which, pairs)


def _rounds(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the processor in the fastest round and in the median one: of a few milliseconds
    the clock on the wall would tell who else was at work."""
    taken = sorted(_seconds(work, process_time) for _ in range(BUDGET_ROUNDS))
    return taken[0], taken[BUDGET_ROUNDS // 2]


def _tell_spread(name: str, ours: tuple[float, float], floor: tuple[float, float]) -> None:
    best, usual = (one / other for one, other in zip(ours, floor, strict=True))
    print(f"{name:<54} {ours[0] * 1000:>7.2f} ms {best:>6.0f} x ({usual:.0f} x) the bare weights")


def _bare_weights(sizes: Sizes, plans: Plan) -> object:
    """Dense decoder, 16 bits: embedding, head, attention, gated MLP and norms of 32 layers."""
    width, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    attention = 2 * sizes.hidden * width + 2 * sizes.hidden * keys
    layer = attention + 3 * sizes.hidden * sizes.dense + 2 * sizes.hidden
    whole = 2 * sizes.vocab * sizes.hidden + 32 * layer + sizes.hidden
    return 2 * whole / (plans.tp * plans.pp)


def bench_reading() -> None:
    body = files("marketplace.samples").joinpath("pages/brackwater.html").read_bytes()
    page = Page("https://brackwater.example/gpu-servers", body, "text/html; charset=utf-8")
    adapter = adapter_for("page")
    floor = fastest(lambda: BeautifulSoup(body, "lxml"))
    tell("read a catalog page", fastest(lambda: adapter.read([page])), floor, "parsing it")


def bench_sync_and_pages() -> None:
    """On a database of its own, as the tests have it."""
    with scratch_database():
        with serve_samples(*settings.SAMPLE_SERVER_ADDRESS):
            sources.keep_known_sources()
            keys = list(Source.objects.filter(bundled=True).values_list("pk", flat=True))
            first = _seconds(lambda: [sync.sync_source(key) for key in keys])
            again = fastest(lambda: [sync.sync_source(key) for key in keys])
        tell("a second sync of the same pages", again, first, "the first sync")
        _bench_pages()


def _bench_pages() -> None:
    client = Client(HTTP_HOST="127.0.0.1")
    floor = fastest(lambda: client.get("/healthz"), rounds=10)
    for slug in workload_presets():
        call_command("shortlist", slug, stdout=open(os.devnull, "w"))  # noqa: SIM115
    for address in ("/", "/listings/", "/status/"):
        tell(f"page {address}", fastest(lambda a=address: client.get(a)), floor, "/healthz")


if __name__ == "__main__":
    bench_shortlists()
    bench_cold()
    bench_budgets()
    bench_reading()
    bench_sync_and_pages()
    bench_sync()
    bench_pages()
