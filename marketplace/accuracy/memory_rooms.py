"""Cases on the room that is left for the cache, and on whether an engine starts."""

from __future__ import annotations

from dataclasses import replace

from evaluator.budgets import FitWord
from evaluator.engines import Share
from evaluator.formats import weight_format
from evaluator.jobs import Recompute, ServingJob, Workload
from evaluator.kv_cache import LOGGED, bytes_per_token, sequence_bytes
from evaluator.memory import budget, fit
from evaluator.parameters import total_params
from evaluator.partition import rank_classes
from evaluator.plans import Plan
from evaluator.ranges import Range, total
from evaluator.serving import allowance_of, engine_of, free_share
from evaluator.states import states_component
from evaluator.units import GIB
from marketplace.accuracy.memory_cases import (
    Case,
    NotJudged,
    cache_plan_of,
    plan_of,
    reported_bytes,
    serving_of,
    shape_of,
    workload_of,
)

LARGE_CARD = 70 * GIB


def stepped(case: Case) -> ServingJob:
    """The job with vLLM's own defaults for sequences and tokens of a step where none is stated:
    1,024 and 8,192 on cards of 70 GiB and more other than the A100, else 256 and 2,048."""
    job = serving_of(case)
    if job.engine != "vllm":
        return job
    large = reported_bytes(case) >= LARGE_CARD and "A100" not in str(case.gpu.get("name"))
    tokens, sequences = (8192, 1024) if large else (2048, 256)
    return replace(
        job,
        max_num_seqs=job.max_num_seqs or sequences,
        max_num_batched_tokens=job.max_num_batched_tokens or tokens,
    )


def kv_room(case: Case) -> Range:
    """Bytes left for the cache on one GPU; figures of the same log outrank estimates."""
    left = case.observed_bytes("kv")
    if left is not None:
        return _logged(left)
    workload = workload_of(case)
    runs = engine_of(serving_of(case))
    allowed = allowance_of(workload, plan_of(case)).of(reported_bytes(case))
    inside = {name: ours for name, ours in PARTS.items() if ours[0] not in runs.outside}
    taken = [_part(case, name, ours) for name, ours in inside.items()]
    room = Range(
        allowed - sum(part.high for part in taken),
        allowed - sum(part.typical for part in taken),
        allowed - sum(part.low for part in taken),
    )
    return room.scaled(free_share(serving_of(case)) if runs.share is Share.FREE else 1.0)


HALF_A_DIGIT = 0.005 * GIB
"""Logs print GiB with two digits."""
IN_TOKENS = Range(0.985, 1.0, 1.015)
"""Counts of tokens are rounded to whole blocks of layer groups, 1.1 % down in vllm#21348, and
published ones have two to three digits."""


def _logged(size: float) -> Range:
    return Range(size - HALF_A_DIGIT, size, size + HALF_A_DIGIT)


PARTS = {
    "weights": ("weights",),
    "activation_peak": ("activations",),
    "non_torch": ("engine_overhead", "communicators"),
    "cuda_graph": ("cuda_graphs",),
}
"""Names in a log, and of the components of a budget that it counts together."""


def _part(case: Case, logged: str, ours: tuple[str, ...]) -> Range:
    seen = case.observed_bytes(logged)
    if seen is not None:
        return _logged(seen)
    workload = replace(workload_of(case), serving=stepped(case))
    binding = budget(workload, plan_of(case)).binding
    if binding is None:
        raise NotJudged("the size of the model is not known")
    return total(part.bytes for part in binding.components if part.name in ours)


def predict_capacity(case: Case) -> Range:
    """In bytes, or in tokens where the case counts tokens."""
    of = case.measured.get("of")
    if of == "kv_room":
        return kv_room(case)
    if of == "kv_needed":
        return LOGGED.scaled(_needed(case, int(case.observed["kv_tokens"])))
    room, each = kv_room(case), _per_token(case) / (case.plan.get("dcp") or 1)
    low = min(max(0.0, room.low) * IN_TOKENS.low, room.typical)
    return Range(low, room.typical, room.high * IN_TOKENS.high).scaled(1 / each)


def _needed(case: Case, tokens: int) -> float:
    """Memory of all tokens. Windows cap every sequence, so they are shared out among them."""
    shape, job = shape_of(case), serving_of(case)
    if shape.window is None or not job.window_kv:
        return tokens * _per_token(case)
    sequences = job.max_num_seqs or -(-tokens // job.sequence_tokens)
    return sequences * _one_sequence(case, -(-tokens // sequences))


def _per_token(case: Case) -> float:
    shape, job, plan = shape_of(case), serving_of(case), cache_plan_of(case)
    if not shape.dimensioned:
        raise NotJudged("layers or heads are not known")
    return max(bytes_per_token(shape, job, plan, rank) for rank in rank_classes(shape, plan))


SMALL_ROOM = 5 * GIB
BLIND_ERROR, HOPEFUL, OF_CARD = 0.15, 0.05, 0.05
"""Without a log: allowed error and allowed optimism, relative to the room, or for a small room
relative to the card."""


def blind_tolerance(case: Case) -> float:
    """The error that is allowed without a log, relative to the measured value."""
    room = _measured_room(case)
    return BLIND_ERROR if room >= SMALL_ROOM else OF_CARD * reported_bytes(case) / room


def most_hopeful(case: Case) -> float:
    """The largest prediction that is not too optimistic, in the unit of the case."""
    room = _measured_room(case)
    above = HOPEFUL if room >= SMALL_ROOM else OF_CARD * reported_bytes(case) / room
    return float(case.value) * (1 + above)


def _measured_room(case: Case) -> float:
    if case.measured["unit"] != "tokens":
        return float(case.value) * case.unit_bytes
    return float(case.value) * _per_token(case) / (case.plan.get("dcp") or 1)


def starts(case: Case) -> tuple[bool, bool]:
    """Whether the engine starts in the typical case, and whether high and low agree on it."""
    if case.workload.get("task") == "train":
        return _trains(case)
    room = kv_room(case)
    longest = serving_of(case).sequence_tokens if case.workload.get("max_model_len") else 1
    needed = _at_start(case) * _one_sequence(case, longest)
    return room.typical > 0 and room.typical >= needed, room.low >= needed or room.high < needed


def _at_start(case: Case) -> int:
    """Sequences of full length an engine wants room for at start; the others limit requests."""
    if case.workload.get("engine") == "llama.cpp":
        return case.workload.get("max_num_seqs") or 1
    return 1 if case.workload.get("engine") == "vllm" else 0


def _trains(case: Case) -> tuple[bool, bool]:
    """A job that does not say what it recomputes may recompute everything: then the verdict is
    sure only where it does not depend on that. A model without dimensions has its states only."""
    workload, plan, card = workload_of(case), plan_of(case), int(reported_bytes(case))
    job = workload.training
    if job is None:
        raise NotJudged("a training case without a training job")
    stated = [job.recompute] if case.workload.get("recompute") else [Recompute.NONE, Recompute.FULL]
    words = {
        _word(replace(workload, training=replace(job, recompute=how)), plan, card) for how in stated
    }
    return words != {FitWord.DOES_NOT_FIT}, len(words) == 1 and FitWord.TIGHT not in words


def _word(workload: Workload, plan: Plan, card: int) -> FitWord:
    """ "Tight" at best where only the states of a model can be known."""
    memory = budget(workload, plan)
    if memory.ranks:
        return fit(memory, card).word
    if total_params(workload.model) is None:
        raise NotJudged("the size of the model is not known")
    return FitWord.TIGHT if certain_states(workload, plan) <= card else FitWord.DOES_NOT_FIT


def certain_states(workload: Workload, plan: Plan) -> float:
    """Bytes of the states on the heaviest rank, in the typical case."""
    job, form = workload.training, weight_format(workload.weights_format)
    if job is None or form is None:
        raise NotJudged("no training job, or a format of unknown size")
    ranks = rank_classes(workload.model, plan)
    parts = (states_component(workload, job, form, plan, rank) for rank in ranks)
    return max(float(part.bytes.typical) for part in parts)


def _one_sequence(case: Case, tokens: int) -> float:
    """vLLM refuses to start where one sequence of `max_model_len` does not fit."""
    shape, job, plan = shape_of(case), serving_of(case), cache_plan_of(case)
    sizes = (sequence_bytes(shape, job, plan, rank, tokens) for rank in rank_classes(shape, plan))
    return max(sizes)
