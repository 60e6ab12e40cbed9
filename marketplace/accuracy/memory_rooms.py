"""Cases on the room that is left for the cache, and on whether an engine starts."""

from __future__ import annotations

from dataclasses import replace

from evaluator.jobs import ServingJob
from evaluator.kv_cache import bytes_per_token, sequence_bytes
from evaluator.memory import budget
from evaluator.partition import rank_classes
from evaluator.ranges import Range, exact
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
        return exact(left)
    allowed = reported_bytes(case) * serving_of(case).memory_utilization
    outside = STATIC_FRACTION if case.workload.get("engine") == "sglang" else ()
    taken = [_part(case, name, ours) for name, ours in PARTS.items() if name not in outside]
    return Range(
        allowed - sum(part.high for part in taken),
        allowed - sum(part.typical for part in taken),
        allowed - sum(part.low for part in taken),
    )


PARTS = {"weights": "weights", "activation_peak": "activations", "non_torch": "engine_overhead"}
"""Names in a log and in a budget. CUDA graphs lie outside this subtraction in these engines."""

STATIC_FRACTION = ("activation_peak", "non_torch")
"""SGLang's static fraction is for weights and cache; the rest is for these."""


def _part(case: Case, logged: str, ours: str) -> Range:
    seen = case.observed_bytes(logged)
    if seen is not None:
        return exact(seen)
    workload = replace(workload_of(case), serving=stepped(case))
    binding = budget(workload, plan_of(case)).binding
    component = binding.component(ours) if binding else None
    if component is None:
        raise NotJudged("the size of the model is not known")
    return component.bytes


def predict_capacity(case: Case) -> Range:
    """In bytes, or in tokens where the case counts tokens."""
    of = case.measured.get("of")
    if of == "kv_room":
        return kv_room(case)
    if of == "kv_needed":
        return exact(_needed(case, int(case.observed["kv_tokens"])))
    return kv_room(case).scaled((case.plan.get("dcp") or 1) / _per_token(case))


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


def starts(case: Case) -> tuple[bool, bool]:
    """Whether the engine starts in the typical case, and whether high and low agree on it."""
    if case.workload.get("task") == "train":
        raise NotJudged("whether a training job fits depends on what the case leaves out")
    room = kv_room(case)
    longest = serving_of(case).sequence_tokens if case.workload.get("max_model_len") else 1
    needed = _one_sequence(case, longest) if case.workload.get("engine") == "vllm" else 0
    return room.typical > 0 and room.typical >= needed, room.low >= needed or room.high < needed


def _one_sequence(case: Case, tokens: int) -> float:
    """vLLM refuses to start where one sequence of `max_model_len` does not fit."""
    shape, job, plan = shape_of(case), serving_of(case), cache_plan_of(case)
    sizes = (sequence_bytes(shape, job, plan, rank, tokens) for rank in rank_classes(shape, plan))
    return max(sizes)
