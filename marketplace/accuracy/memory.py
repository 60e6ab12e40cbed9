"""How near the evaluator's memory figures come to measured ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evaluator.adapters import adapter_params_on
from evaluator.budgets import RankBudget
from evaluator.fields import InvalidWorkload
from evaluator.formats import WeightFormat
from evaluator.job_fields import LORA_TARGETS
from evaluator.jobs import Lora, Workload
from evaluator.kv_cache import LOGGED, bytes_per_token
from evaluator.memory import budget
from evaluator.parameters import total_params
from evaluator.partition import RankClass, rank_classes
from evaluator.plans import Plan
from evaluator.ranges import Range, exact, total
from evaluator.serving import ADAPTER_BYTES, engine_of, less, on_host
from evaluator.sizes import sizes_of
from evaluator.states import states_component
from evaluator.weights import weights_on
from marketplace.accuracy.memory_cases import (
    Case,
    NotJudged,
    UnreadableCase,
    cache_plan_of,
    format_of,
    plan_of,
    read_cases,
    serving_of,
    shape_of,
    workload_of,
)
from marketplace.accuracy.memory_rooms import (
    blind_tolerance,
    most_hopeful,
    predict_capacity,
    starts,
    stepped,
)
from marketplace.accuracy.summary import Outcome, Summary, summarise

MALFORMED = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError)
"""What a case with a field of the wrong kind raises: it is reported, and the others go on."""


def score(path: Path) -> Summary:
    """Judges every case of a file or folder. Raises OSError where it cannot be opened."""
    outcomes, left_out, unreadable = [], [], []
    for case in read_cases(path):
        if isinstance(case, UnreadableCase):
            unreadable.append(str(case))
            continue
        try:
            outcomes += answers(case)
        except NotJudged:
            left_out.append(case.kind)
        except InvalidWorkload as problem:
            unreadable.append(f"{case.id}: {problem}"[:200])
        except MALFORMED as problem:
            unreadable.append(f"{case.id}: {type(problem).__name__}: {problem}"[:200])
    return summarise("memory", outcomes, left_out, unreadable)


def answers(case: Case) -> list[Outcome]:
    """The answer to a case, and for a blind one a second, given as if there were no log."""
    return [judge(case), judge_blind(case)] if case.blind else [judge(case)]


def judge_blind(case: Case) -> Outcome:
    """The answer with `observed` withheld: a kind of its own. Raises NotJudged."""
    unseen = replace(case, observed={})
    if case.kind == "kv_capacity":
        unseen = replace(unseen, tolerance=blind_tolerance(unseen))
    answer = judge(unseen)
    within, why = answer.within, answer.why
    if case.kind == "kv_capacity" and within and answer.predicted > most_hopeful(unseen):
        within, why = False, "optimistic by more than is allowed"
    return replace(answer, kind=f"{case.kind}_blind", counted=False, within=within, why=why)


def judge(case: Case) -> Outcome:
    """The prediction of one case beside its measurement. Raises NotJudged."""
    if case.measured["unit"] == "bool":
        return _verdict(case)
    predict = PREDICTIONS.get(case.kind)
    if predict is None:
        raise NotJudged(f"no estimate for {case.kind} yet")
    return _outcome(case, predict(case).scaled(1 / case.unit_bytes))


def _outcome(case: Case, predicted: Range) -> Outcome:
    typical, tolerance = predicted.typical, case.tolerance
    if tolerance == "lower_bound":
        within, limit = predicted.low <= case.value, "must not exceed the measured value"
        typical = predicted.low
    elif tolerance == "not_below":
        within, limit = typical >= case.value, "must not be below the measured value"
    elif isinstance(tolerance, int | float):
        error = (typical - case.value) / case.value
        within, limit = abs(error) <= tolerance, f"{error:+.2%}, allowed {tolerance:.2%}"
    else:
        raise NotJudged(f"tolerance {tolerance}")
    return Outcome(
        id=case.id,
        kind=case.kind,
        within=within,
        predicted=typical,
        measured=case.value,
        why="" if within else limit,
        low=predicted.low,
        high=predicted.high,
        compared=isinstance(tolerance, int | float),
        source=case.source,
        unit=case.measured["unit"],
    )


def _weights(case: Case) -> Range:
    """Per GPU the heaviest rank; otherwise the whole model, and the file where no engine loads."""
    shape, form = shape_of(case), format_of(case)
    if total_params(shape) is None:
        raise NotJudged("the parameter count is not known")
    plan = plan_of(case) if case.measured.get("scope") == "per_gpu" else Plan()
    sizes = [_weights_on(case, form, plan, rank) for rank in rank_classes(shape, plan)]
    return max(sizes, key=lambda size: size.typical) + _adapter_room(case)


def _weights_on(case: Case, form: WeightFormat, plan: Plan, rank: RankClass) -> Range:
    """Of one GPU without an embedding that its engine leaves in host memory."""
    shape = shape_of(case)
    size = weights_on(shape, form, plan, rank, loaded=bool(case.workload.get("engine")))
    if case.measured.get("scope") != "per_gpu" or not shape.computable:
        return size
    return less(size, on_host(sizes_of(shape), engine_of(serving_of(case)), form, plan, rank))


def _adapter_room(case: Case) -> Range:
    """An engine started for LoRA logs the room for adapters with the weights. Where the rank is
    not stated it may be a small one on attention, or 64 on every projection."""
    if case.workload.get("lora") is None:
        return exact(0)
    stated = serving_of(case).lora
    guesses = (stated,) * 3 if stated else (Lora(8), Lora(16, LORA_TARGETS), Lora(64, LORA_TARGETS))
    plan = plan_of(case)
    rank = rank_classes(shape_of(case), plan)[0]
    sizes = [adapter_params_on(shape_of(case), one, plan, rank) * ADAPTER_BYTES for one in guesses]
    return Range(*sizes)


def _kv_per_token(case: Case) -> Range:
    shape, job = shape_of(case), serving_of(case)
    if not shape.dimensioned:
        raise NotJudged("layers or heads are not known")
    plan = cache_plan_of(case) if case.measured.get("scope") == "per_gpu" else Plan()
    split = case.plan.get("dcp") or 1
    each = max(bytes_per_token(shape, job, plan, rank) for rank in rank_classes(shape, plan))
    return LOGGED.scaled(each / split)


def _states(case: Case) -> Range:
    """States follow from a parameter count alone, so no dimensions are asked for."""
    workload, plan = workload_of(case), plan_of(case)
    if total_params(workload.model) is None or workload.training is None:
        raise NotJudged("the parameter count is not known")
    ranks = rank_classes(workload.model, plan)
    chosen = ranks[-1:] if case.measured.get("stage") == "last" else ranks
    form = format_of(case)
    parts = [states_component(workload, workload.training, form, plan, rank) for rank in chosen]
    return max((part.bytes for part in parts), key=lambda size: size.typical)


def _activations(case: Case) -> Range:
    if case.workload.get("task") == "train":
        return _component(case, ("activations", "logits"))
    workload = replace(workload_of(case), serving=stepped(case))
    return _of(_rank(case, workload), ("activations",))


def _total_training(case: Case) -> Range:
    """The peak of the allocator, which holds tensors only; where only a bound is published, the
    states that are certain."""
    if case.tolerance == "lower_bound":
        return _states(case)
    rank = _rank(case, workload_of(case))
    return total(part.bytes for part in rank.components if part.name != "overhead")


def _total_inference(case: Case) -> Range:
    """All that the process holds; nothing is said of requests, so the cache holds one token. Of a
    model without dimensions the weights and what the engine holds besides."""
    job = replace(serving_of(case), input_tokens=1)
    if shape_of(case).dimensioned and budget(workload_of(case), plan_of(case)).ranks:
        return _rank(case, replace(workload_of(case), serving=job)).without(UNTAKEN)
    plan = plan_of(case)
    return _weights(case) + engine_of(job).beside(plan.tp * plan.pp)


UNTAKEN = ("cache_reserve", "free_margin")
"""Memory that an engine leaves free."""


def _component(case: Case, names: tuple[str, ...]) -> Range:
    return _of(_rank(case, workload_of(case)), names)


def _rank(case: Case, workload: Workload) -> RankBudget:
    """The binding rank class, or the last stage where the case was measured there."""
    memory = budget(workload, plan_of(case))
    if memory.binding is None:
        raise NotJudged("the size of the model is not known")
    return memory.ranks[-1] if case.measured.get("stage") == "last" else memory.binding


def _of(rank: RankBudget, names: tuple[str, ...]) -> Range:
    return total(part.bytes for part in rank.components if part.name in names)


def _verdict(case: Case) -> Outcome:
    """An engine that refuses (`oom`) or starts (`fits`) against our word for it."""
    started, sure = starts(case)
    word = ("fits" if started else "does_not_fit") if sure else "tight"
    expected = "fits" if (case.kind == "fits") == case.value else "does_not_fit"
    marginal = word == "tight" and case.tolerance == "marginal_allowed"
    within = marginal or started == (expected == "fits")
    why = "" if within else "another verdict"
    return Outcome(case.id, case.kind, within, word, expected, why, source=case.source)


PREDICTIONS: dict[str, Callable[[Case], Range]] = {
    "weights": _weights,
    "kv_per_token": _kv_per_token,
    "kv_capacity": predict_capacity,
    "activations": _activations,
    "model_states": _states,
    "total_training": _total_training,
    "total_inference": _total_inference,
}
