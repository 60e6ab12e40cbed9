"""How near the evaluator's times come to published training, serving and collective rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.estimates import Estimate
from evaluator.flops import published_flops
from evaluator.jobs import Recompute, TrainingJob, Workload
from evaluator.layouts import Layout
from evaluator.link_costs import busbw_range
from evaluator.ranges import Range
from evaluator.rentals import Rental
from evaluator.spending import goodput, wall_hours
from evaluator.timing import inverse, offline_rate, serving_times, step_estimate
from evaluator.units import SECONDS_PER_HOUR
from marketplace.accuracy.batches import with_batches
from marketplace.accuracy.collective_ranges import OPERATIONS, SWITCH
from marketplace.accuracy.planner_comparison import compare
from marketplace.accuracy.summary import KindSummary, Outcome, Summary, figures_of, summarise
from marketplace.accuracy.throughput_cases import (
    Case,
    NotJudged,
    is_offline,
    layout_of,
    nodes_of,
    read_cases,
    rental_of_case,
    serving_of,
    workload_of,
)

MALFORMED = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError)
"""What a case with a field of the wrong kind raises: it is reported, and the others go on."""
LARGE_MESSAGE = 2**30
"""Bytes of a collective whose size was not published: such figures are of large messages."""
NEAR_THE_BEST = 0.9
PLAIN_BELOW = 10_000
SMALLEST_GROUP = 3
LATENCIES = frozenset({"ttft_ms", "tpot_ms"})


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    outcome: Outcome


def score(path: Path) -> Summary:
    """Judges every counted case of a file or folder. Raises OSError where it cannot be opened."""
    judged: list[Judged] = []
    left_out: list[str] = []
    unreadable: list[str] = []
    shown: list[str] = []
    for case in read_cases(path):
        if isinstance(case, str):
            unreadable.append(case)
            continue
        try:
            if case.counted:
                judged.append(Judged(case, judge(case)))
            else:
                shown.append(f"{case.id}: shown, not counted: {case.metric} {case.value:,.0f}")
        except NotJudged:
            left_out.append(case.kind)
        except MALFORMED as problem:
            unreadable.append(f"{case.id}: {type(problem).__name__}: {problem}"[:200])
    return summarise(
        "throughput",
        [one.outcome for one in judged],
        left_out,
        unreadable,
        groups=count_groups(judged),
        cuts=cuts_of(judged),
        notes=(*shown, *compare(path)),
    )


def judge(case: Case) -> Outcome:
    """The prediction of one case, in its own unit, beside its measurement. Raises NotJudged."""
    predict = {"train": _training, "serve": _serving, "collective": _collective}.get(case.kind)
    if predict is None:
        raise NotJudged(f"no estimate for {case.kind}")
    value, words = predict(case)
    within = value.low <= case.value <= value.high
    return Outcome(
        id=case.id,
        kind=case.kind,
        within=within,
        predicted=value.typical,
        measured=case.value,
        why="" if within else f"{_plain(value.low)} to {_plain(value.high)}; {words}",
        low=value.low,
        high=value.high,
        source=case.source,
        unit=case.metric,
    )


def _plain(value: float) -> str:
    """Four digits, or a whole number with its thousands apart."""
    return f"{value:,.4g}" if value < PLAIN_BELOW else f"{value:,.0f}"


def _training(case: Case) -> tuple[Range, str]:
    layout, rental = layout_of(case), rental_of_case(case)
    stated, room = bool(case.workload.get("micro_batch")), rental.device.usable_bytes
    workload = with_batches(workload_of(case), layout, room, micro_stated=stated)
    job = workload.training
    arithmetic = str(case.workload.get("precision") or "bf16")
    step = step_estimate(workload, layout, rental, arithmetic)
    if step is None or job is None:
        raise NotJudged("the size of the model is not known")
    sequences = job.global_batch or layout.data * job.micro_batch
    if case.metric == "step_seconds":
        return step.value, _words(step)
    if case.metric == "gpu_hours":
        return _gpu_hours(case, step.value, sequences * job.seq_len), _words(step)
    shared = 1 if case.measured.get("scope") == "system" else case.gpus
    amount = sequences * _per_sequence(case, workload, job) / shared
    return inverse(step.value, amount), _words(step)


def _gpu_hours(case: Case, step: Range, step_tokens: int) -> Range:
    """A whole run keeps less than the rate of its steps."""
    wanted = case.workload.get("total_tokens")
    if not wanted:
        raise NotJudged("the number of tokens of the run was not published")
    steps = float(wanted) / step_tokens * case.gpus / SECONDS_PER_HOUR
    return wall_hours(step.scaled(steps), goodput(nodes_of(case)))


def _per_sequence(case: Case, workload: Workload, job: TrainingJob) -> float:
    """What the metric counts for one sequence: itself, its tokens, or FLOPs."""
    if case.metric == "samples_per_s":
        return 1.0
    return job.seq_len * _per_token(case, workload, job)


def _per_token(case: Case, workload: Workload, job: TrainingJob) -> float:
    """What the metric counts for one token: itself, or FLOPs in the published convention."""
    if case.metric in TOKEN_RATES:
        return 1.0
    convention = str(case.measured.get("convention") or "")
    flops = published_flops(
        workload.model,
        job.seq_len,
        causal="causal" in convention,
        recomputed="hardware" in convention and job.recompute is Recompute.FULL,
        lora=job.lora is not None,
    )
    if flops is None or case.metric not in ("tflops_per_gpu", "mfu"):
        raise NotJudged(f"no estimate for {case.metric}")
    return flops / (10**12 if case.metric == "tflops_per_gpu" else _peak(case))


def _peak(case: Case) -> float:
    """A published MFU refers to the peak of its own arithmetic."""
    _, peak = rental_of_case(case).device.rate(str(case.workload.get("precision") or "bf16"))
    return peak


def _words(estimate: Estimate) -> str:
    return f"{estimate.dominating}; widest: {estimate.widest}"


def _serving(case: Case) -> tuple[Range, str]:
    setting = (workload_of(case), layout_of(case), rental_of_case(case))
    if case.metric in LATENCIES:
        times = serving_times(*setting)
        if times is None:
            raise NotJudged(UNTIMED)
        one = times.ttft if case.metric == "ttft_ms" else times.tpot
        return one.value.scaled(1000), _words(one)
    if case.metric not in TOKEN_RATES:
        raise NotJudged(f"no estimate for {case.metric}")
    rate = _rate(case, *setting)
    if rate is None:
        raise NotJudged(UNTIMED)
    return rate.value.scaled(_counted(case)), _words(rate)


UNTIMED = "it does not fit, or its size is not known"
TOKEN_RATES = frozenset({"tokens_per_s", "tokens_per_s_per_gpu"})


def _rate(case: Case, workload: Workload, layout: Layout, rental: Rental) -> Estimate | None:
    if is_offline(case):
        return offline_rate(workload, layout, rental)
    times = serving_times(workload, layout, rental)
    return times.rate if times else None


def _counted(case: Case) -> float:
    """What a published rate counts of the output tokens/s of all GPUs together."""
    job = serving_of(case)
    prompts = case.measured.get("tokens") == "input"
    shared = case.gpus if case.measured.get("scope") == "per_gpu" else 1
    return (job.input_tokens / job.output_tokens if prompts else 1.0) / shared


def _collective(case: Case) -> tuple[Range, str]:
    stated, nodes = case.workload, nodes_of(case)
    operation = OPERATIONS.get(str(stated.get("op")))
    links = rental_of_case(case).worlds
    if operation is None or len(links) > 1:
        raise NotJudged("the operation or the link is not known")
    size = int(stated.get("message_bytes") or LARGE_MESSAGE)
    switch = SWITCH.get(str(stated.get("algorithm") or ""))
    found = busbw_range(
        operation, links[0].wire, case.gpus, nodes, links[0].fabric, size, switch=switch
    )
    if found is None:
        raise NotJudged("the link is not known")
    return found, "the class of the link"


def count_groups(judged: Sequence[Judged]) -> dict[str, int]:
    """Curves of three and more cases, and those where our pick per GPU is near the best one."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        if _ranked(one.case):
            groups[one.case.group].append(one)
    large = [group for group in groups.values() if len(group) >= SMALLEST_GROUP]
    return {"groups": len(large), "right": sum(map(_picks_well, large))}


def _ranked(case: Case) -> bool:
    """Whether a case stands in a curve of rates."""
    return bool(case.group) and case.kind in ("train", "serve") and case.metric not in LATENCIES


def _picks_well(group: Sequence[Judged]) -> bool:
    picked = max(group, key=lambda one: _per_gpu(one.case, one.outcome.predicted))
    best = max(_per_gpu(one.case, one.case.value) for one in group)
    return _per_gpu(picked.case, picked.case.value) >= NEAR_THE_BEST * best


def _per_gpu(case: Case, value: float) -> float:
    """A figure of merit per GPU: a step time becomes sequences per second."""
    if case.metric == "step_seconds":
        return float(case.workload.get("global_batch") or 1) / value / case.gpus
    return value if case.measured.get("scope") == "per_gpu" else value / case.gpus


def cuts_of(judged: Sequence[Judged]) -> dict[str, KindSummary]:
    """Figures by kind of the half that constants were fitted on, of the rest, and by link."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for one in judged:
        half = "fitted half" if one.case.for_fitting else "other half"
        parts[f"{one.case.kind}, {half}"].append(one.outcome)
        parts[f"{one.case.kind}, {_link_words(one.case)}"].append(one.outcome)
    return {name: figures_of(outcomes) for name, outcomes in sorted(parts.items())}


def _link_words(case: Case) -> str:
    if case.gpus == 1:
        return "one GPU"
    return "link known" if case.link_known else "link not known"
