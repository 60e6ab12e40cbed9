"""The benchmark that would disprove a prediction: its figures, its rules, what to record beside."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.estimates import Estimate
from evaluator.jobs import Workload
from evaluator.launch.sheet import Benchmark, Counter, Predicted
from evaluator.layouts import layout_of
from evaluator.machine import Machine
from evaluator.plans import Plan
from evaluator.rentals import rental_of
from evaluator.timing import serving_times, step_estimate, training_rate

SAME = (
    "The same checkpoint, precision and format of the cache on both sides.",
    "The same versions of driver, CUDA, engine and NCCL on both sides, written down.",
)
SERVING_RULES = (
    *SAME,
    "The same lengths of prompts and answers and the same number of users: end-of-text is ignored.",
    "The same window: start the clock when all users run, stop it before they run out.",
    "Warm-up as in production: compiled, graphs captured, prefix cache off or as in production.",
    "Requests come over the network as in production, not from within the engine.",
    "Three runs; the middle one counts, and all three are kept.",
)
TRAINING_RULES = (
    *SAME,
    "The same effective batch: micro-batch, ranks and accumulated rounds.",
    "The same window: leave out the first 10 steps, then at least 30 steps without a checkpoint.",
    "Data loading as in production: the real dataset from the real storage, not random tokens.",
    "The loss of the first 20 steps agrees on both sides, or they do not compute the same.",
    "Three runs; the middle one counts, and all three are kept.",
)
COUNTERS = (
    Counter("throughput", "the benchmark's own tokens/s, and tokens counted over the clock"),
    Counter("latency", "median, 95th and 99th percentile: first token, each token; or each step"),
    Counter("GPU utilisation", "nvidia-smi dmon -s pucm -d 1, or rocm-smi --showuse"),
    Counter("memory", "peak per GPU: nvidia-smi --query-gpu=memory.used --format=csv -l 1"),
    Counter(
        "link traffic", "nvidia-smi nvlink -gt d, dcgmi dmon -e 1009,1010,1011,1012, port bytes"
    ),
    Counter("CPU load", "mpstat -P ALL 1: one core at 100 % starves a GPU"),
    Counter("storage stalls", "iostat -x 1, and the share of steps that wait for data"),
)


def benchmark_of(workload: Workload, plan: Plan, machine: Machine) -> Benchmark:
    """The figures to be measured with their ranges; none where the plan cannot be timed."""
    found = list(_estimates(workload, plan, machine))
    predicted = tuple(Predicted(name, one.value, one.unit) for name, one in found)
    return Benchmark(
        predicted=predicted,
        rules=SERVING_RULES if workload.serving else TRAINING_RULES,
        counters=COUNTERS,
        disproved_if=_disproved(predicted),
        conditional=any(one.conditional for _, one in found),
    )


def _estimates(workload: Workload, plan: Plan, machine: Machine) -> Iterator[tuple[str, Estimate]]:
    rental, layout = rental_of(machine, plan.nodes), layout_of(plan)
    if rental is None:
        return
    if workload.serving and (times := serving_times(workload, layout, rental)):
        yield "output rate of all GPUs", times.rate
        yield "time to the first token", times.ttft
        yield "time per token", times.tpot
    step = step_estimate(workload, layout, rental) if workload.training else None
    rate = training_rate(workload, layout, rental) if step else None
    if step and rate:
        yield "step", step
        yield "rate of all GPUs", rate


def _disproved(predicted: tuple[Predicted, ...]) -> str:
    if not predicted:
        return "Nothing is predicted for this plan: a run can only inform, not disprove."
    ranges = (
        f"{one.metric} outside {_four(one.value.low)} to {_four(one.value.high)} {one.unit}"
        for one in predicted
    )
    return f"The prediction is wrong if the middle run shows {', or '.join(ranges)}."


def _four(number: float) -> str:
    """Four digits, as the tables of the pages write them."""
    return f"{number:,.4g}" if number < 10_000 else f"{number:,.0f}"
