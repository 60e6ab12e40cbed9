"""What stands in the way of a plan, and the values that remove it: in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from evaluator.degrees import Plan
from evaluator.findings import Code
from evaluator.jobs import Workload

Value = int | str
Fix = Mapping[str, Value]
"""New values of a plan's degrees or of a job's keys, by name."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a plan cannot be had, with what `fix` removes this obstacle; another may stand behind."""

    code: Code
    words: Mapping[str, Value]
    fix: Fix


DEGREES = frozenset(item.name for item in fields(Plan))


def fixed(workload: Workload, plan: Plan, fix: Fix) -> tuple[Workload, Plan]:
    """The job and the plan with new values."""
    keys = {name: value for name, value in fix.items() if name not in DEGREES}
    plan = replace(plan, **{name: int(fix[name]) for name in fix if name in DEGREES})
    if not keys:
        return workload, plan
    if workload.serving:
        return replace(workload, serving=replace(workload.serving, **keys)), plan  # type: ignore[arg-type]
    training = workload.training
    return replace(workload, training=training and replace(training, **keys)), plan  # type: ignore[arg-type]


DEGREE_WORDS = {
    "tp": "a tensor parallel degree of {}",
    "ep": "an expert parallel degree of {}",
    "pp": "{} pipeline stages",
    "dp": "a dp of {}",
    "virtual": "{} virtual stages",
    "shard": "a shard group of {}",
}


def change_words(fix: Fix) -> str:
    """Degrees to use, then keys to set, as sentences."""
    used = [_degree_words(name, value) for name, value in fix.items() if name in DEGREES]
    keys = [f"{name} to {value}" for name, value in fix.items() if name not in DEGREES]
    parts = (("Use", used), ("Set", keys))
    return " ".join(f"{verb} {listed(words)}." for verb, words in parts if words)


def _degree_words(name: str, value: Value) -> str:
    if value == 1 and name not in ("tp", "shard"):
        return f"{'an' if name in ('ep', 'etp') else 'a'} {name} of 1"
    return DEGREE_WORDS.get(name, f"a {name} of {{}}").format(value)


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def indivisible(quantity: str, degree: int, **fix: Value) -> Obstacle:
    return Obstacle(Code.PLAN_INDIVISIBLE, {"quantity": quantity, "degree": degree}, fix)


def unsupported(who: str, what: str, **fix: Value) -> Obstacle:
    what = f"{what[0].upper()}{what[1:]}"
    return Obstacle(Code.PLAN_UNSUPPORTED, {"who": who, "what": what}, fix)
