"""Parts of the plans page: the ladder, one plan in full, and where the time of a step goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from evaluator.budgets import FitWord
from evaluator.collectives import traffic
from evaluator.jobs import Workload
from evaluator.layouts import layout_of
from evaluator.link_rates import link_rates
from evaluator.machine import Machine
from evaluator.memory import budget
from evaluator.outlook import Outlook, outlook_of
from evaluator.placement import placement_of
from evaluator.plan_words import plan_words
from evaluator.plans import Plan, refusal_of
from evaluator.rentals import rental_of
from evaluator.states import trainable_params
from evaluator.time_sources import SPREAD, time_sources
from evaluator.timing import step_estimate
from evaluator.token_path import token_path
from evaluator.training_time import step_tokens
from evaluator.verdict import MachineVerdict, PlanVerdict
from marketplace.drawing.plan_diagram import PlanDiagram, plan_diagram
from marketplace.drawing.plan_wires import SMALL, STACKED, TOLD, Spacing
from marketplace.drawing.timeline import (
    NARROW,
    Strip,
    strip_of_step,
    strip_of_token,
    table_of,
    timeline,
)

MOST_TIMED = 24
"""Plans of one page that are timed and drawn small; the others are wider ones that serve too."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One plan of the ladder. `marks` are the distinctions it bears, each with its reason.

    `asked` is False for wide plans that are timed only once they are chosen.
    """

    verdict: PlanVerdict
    outlook: Outlook | None
    diagram: PlanDiagram | None
    marks: tuple[tuple[str, str], ...] = ()
    asked: bool = True


def ladder(workload: Workload, machine: Machine, verdict: MachineVerdict) -> list[Rung]:
    """Plans that serve, narrowest first, with the first that fits and the first on target."""
    serving = [one for one in verdict.plans if one.status.serves]
    timed = {one.plan: outlook_of(workload, one.plan, machine) for one in serving[:MOST_TIMED]}
    on_target = _on_target(workload, serving, timed)
    return [
        Rung(
            one,
            timed.get(one.plan),
            diagram_of(workload, machine, one, SMALL) if one.plan in timed else None,
            tuple(_marks(one, verdict, on_target)),
            one.plan in timed,
        )
        for one in serving
    ]


def has_targets(workload: Workload) -> bool:
    job, training = workload.serving, workload.training
    if job:
        return any(limit is not None for limit in (job.ttft_ms, job.tpot_ms, job.tokens_per_s))
    return training is not None and None not in (training.deadline_hours, training.tokens_to_train)


def _on_target(
    workload: Workload, serving: Sequence[PlanVerdict], timed: dict[Plan, Outlook | None]
) -> PlanVerdict | None:
    """The narrowest plan whose typical figures meet every target of the workload."""
    if not has_targets(workload):
        return None
    for one in serving:
        found = timed.get(one.plan)
        if found and not found.missed and not found.late:
            return one
    return None


def _marks(
    one: PlanVerdict, verdict: MachineVerdict, on_target: PlanVerdict | None
) -> Iterator[tuple[str, str]]:
    first = narrowest(verdict)
    if first and one.plan == first.plan:
        yield "narrowest that fits", why_narrowest(verdict)
    if on_target and one.plan == on_target.plan:
        yield "narrowest that meets the targets", "its typical figures meet each of them"


def narrowest(verdict: MachineVerdict) -> PlanVerdict | None:
    """The first plan that serves. A plan stopped by its link or host is no answer."""
    return next((one for one in verdict.plans if one.status.serves), None)


def why_narrowest(verdict: MachineVerdict) -> str:
    """What ruled out every narrower plan, by how many."""
    before: dict[str, int] = {}
    for one in takewhile(lambda one: not one.status.serves, verdict.plans):
        before[_stopped_by(one)] = before.get(_stopped_by(one), 0) + 1
    if not before:
        return "no plan is narrower, so none asks less of a link"
    count = sum(before.values())
    told = ", ".join(f"{number} {word}" for word, number in before.items())
    why = next(iter(before)) if len(before) == 1 else f"({told})"
    return f"{count} narrower {'one is' if count == 1 else 'ones are'} ruled out {why}"


def _stopped_by(one: PlanVerdict) -> str:
    if one.fit.word is FitWord.DOES_NOT_FIT:
        return "by memory"
    if one.link.word.stops:
        return "by the link"
    return "as unknown" if one.fit.word is FitWord.UNKNOWN else "by the host"


def diagram_of(
    workload: Workload, machine: Machine, one: PlanVerdict, spacing: Spacing = TOLD
) -> PlanDiagram | None:
    """None for a model whose dimensions are unknown: nothing says what lies where."""
    if not workload.model.dimensioned:
        return None
    placed = placement_of(workload.model, one.plan, machine.gpu_count.value)
    moved = traffic(workload, one.plan, trainable_params(workload))
    return plan_diagram(one.plan, placed, moved, one.link, spacing)


def plan_context(workload: Workload, machine: Machine, one: PlanVerdict) -> dict[str, Any]:
    """All that the page says about one plan."""
    known = workload.model.dimensioned
    return {
        "plan": one,
        "memory": budget(workload, one.plan),
        "diagram": diagram_of(workload, machine, one),
        "stacked": diagram_of(workload, machine, one, STACKED),
        "lines": plan_words(workload, one.plan, machine.gpu_count.value) if known else None,
        "rates": link_rates(workload, one.plan, machine),
    }


def time_context(
    workload: Workload, machine: Machine, verdict: MachineVerdict, one: PlanVerdict
) -> dict[str, Any]:
    """One token, or one optimizer step, under the chosen plan and the plain ones of its width."""
    strips: list[Strip] = []
    untimed: list[tuple[str, str]] = []
    too_large = {judged.plan for judged in verdict.plans if judged.fit.missing_bytes}
    for plan in side_by_side(workload, machine, one.plan):
        strip, why = strip_of(workload, machine, plan)
        if strip:
            strips.append(
                replace(strip, name=f"{strip.name} (does not fit)") if plan in too_large else strip
            )
        else:
            untimed.append((plan.label, why))
    what = "one token" if workload.serving else "one optimizer step"
    return {
        "spread": SPREAD,
        "sources": time_sources(workload, one.plan, machine),
        "strips": strips,
        "untimed": untimed,
        "times": timeline(strips, what),
        "narrow": timeline(strips, what, NARROW),
        "steps_differ": len({strip.tokens for strip in strips}) > 1,
        "time_rows": table_of(strips),
        "time_of": what,
        "guessed": any(strip.conditional for strip in strips),
    }


def side_by_side(workload: Workload, machine: Machine, chosen: Plan) -> list[Plan]:
    """The chosen plan, then pipeline, tensor and replicas over as many GPUs of one machine."""
    wide = chosen.gpus // chosen.nodes if chosen.gpus > 1 else machine.gpu_count.value or 1
    if wide < 2:
        return [chosen]
    apart = Plan(replicas=wide) if workload.serving else Plan(dp=wide, shard=wide)
    return list(dict.fromkeys([chosen, Plan(pp=wide), Plan(tp=wide), apart]))


def strip_of(workload: Workload, machine: Machine, plan: Plan) -> tuple[Strip | None, str]:
    """The strip of a plan, or why there is none."""
    refused = refusal_of(workload, plan)
    if refused:
        return None, refused.sentence
    if workload.serving:
        path = token_path(workload, plan, machine)
        return (strip_of_token(plan.label, path), "") if path else (None, NOT_TIMED)
    rental, layout = rental_of(machine, plan.nodes), layout_of(plan)
    step = step_estimate(workload, layout, rental) if rental else None
    if step is None or workload.training is None:
        return None, NOT_TIMED
    tokens = step_tokens(workload.training, layout)
    conditional = step.conditional
    strip = strip_of_step(
        plan.label, step.value, step.terms, conditional=conditional, tokens=tokens
    )
    return strip, ""


NOT_TIMED = "it does not fit, or a figure of the card is not published"
