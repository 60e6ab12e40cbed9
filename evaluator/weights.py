"""Bytes of the weights on one GPU, by format, and what stays in 16 bits."""

from __future__ import annotations

from functools import lru_cache

from evaluator.budgets import Component
from evaluator.formats import WeightFormat, weight_format
from evaluator.gguf import LONG_BLOCK, Mix
from evaluator.jobs import Workload
from evaluator.parameters import Split, others, total_params
from evaluator.partition import (
    COPY,
    FIRST,
    LAST,
    Piece,
    RankClass,
    Rule,
    Stage,
    local_params,
    rank_classes,
    stage_of,
)
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, choose, choose_range, exact
from evaluator.shapes import ModelShape

EXPERT_PADDING = 256
"""MXFP4 kernels round the inner size of an expert up to this; inferred from two loaded models
(64.4 and 13.5 GiB, llm-d-planner), so the range reaches from no padding to a repacked layout."""
REPACKED = 1.025
LOADED = Range(0.99, 1.001, 1.03)
DIVIDED = Range(0.99, 1.008, 1.03)
"""What engines log against the computed size. On one GPU the usual excess is 0.02 to 0.2 %; over
tensor ranks 0.06 to 1.8 %, since some tensors are whole on each. Single logs reach 2.7 %."""
ON_FILE = Range(0.99, 1.0, 1.01)
"""Published file sizes have two to three digits, and bits per weight as many."""
UNCOVERED_SPREAD = Range(0.97, 1.0, 1.08)
"""An architecture whose parts are not known: how much of it a format leaves in 16 bits, and how
evenly ranks share it, are guesses."""


@lru_cache(maxsize=256)
def stored_bytes(workload: Workload) -> int | None:
    """Weights of the whole model as stored. None where its size or format is not known."""
    model, form = workload.model, weight_format(workload.weights_format)
    if form is None or not model.dimensioned or total_params(model) is None:
        return None
    whole = rank_classes(model, Plan())[0]
    return round(float(weights_on(model, form, Plan(), whole, loaded=False).typical))


def weights_on(
    shape: ModelShape,
    form: WeightFormat,
    plan: Plan,
    rank: RankClass,
    *,
    loaded: bool = True,
) -> Range:
    """Bytes on one GPU of a rank class. `loaded` False is the checkpoint, without padding."""
    if not shape.computable:
        return _uncovered(shape, form, plan, loaded)
    return weights_bytes(stage_of(shape, rank), others(shape), form, plan, loaded=loaded)


def weights_bytes(
    stage: Stage, beyond: Number, form: WeightFormat, plan: Plan, *, loaded: bool = True
) -> Range:
    """Bytes on one GPU of a stage; `beyond` are parameters beside the text model."""
    held = exact(0.0)
    for piece in stage.pieces:
        local = local_params(piece, plan) * piece.count
        held += _bits(form, piece, stage, loaded).scaled(local / 8)
    whole = held + _beyond_text(stage, beyond, form, plan)
    return whole.times(_spread(form, plan, loaded))


def _spread(form: WeightFormat, plan: Plan, loaded: bool) -> Range:
    if form.mapped or not loaded:
        return ON_FILE
    return choose_range(plan.tp > 1, DIVIDED, LOADED)


def _uncovered(shape: ModelShape, form: WeightFormat, plan: Plan, loaded: bool) -> Range:
    bits = form.bits.scaled((shape.given_params or 0) / 8 / (plan.tp * plan.pp))
    even = plan.gpus == 1 and form.whole
    spread = _spread(form, plan, loaded) if even else UNCOVERED_SPREAD
    return Range(bits.low * spread.low, bits.typical, bits.high * spread.high)


def _bits(form: WeightFormat, piece: Piece, stage: Stage, loaded: bool) -> Range:
    if form.mix:
        return form.bits.scaled(_mixed_bits(form.mix, piece.place, stage) / form.mix.mean)
    if form.whole:
        return form.bits
    if piece.rule is Rule.KEPT or (form.experts_only and piece.rule is not Rule.EXPERT):
        return exact(16)
    if form.experts_only and loaded:
        padded = -(-piece.axis // EXPERT_PADDING) * EXPERT_PADDING / piece.axis
        return Range(1.0, padded, padded * REPACKED).scaled(form.bits.typical)
    return form.bits


def _mixed_bits(mix: Mix, place: str, stage: Stage) -> Number:
    """Of a table that is also the head, those of a head."""
    odd = stage.width % LONG_BLOCK > 0
    head = choose(odd, mix.wider_head, mix.head)
    if place in (FIRST, COPY):
        return choose(stage.tied, head, choose(odd, mix.wider_table, mix.table))
    return head if place == LAST else choose(odd, mix.wider_layers, mix.layers)


def _beyond_text(stage: Stage, beyond: Number, form: WeightFormat, plan: Plan) -> Range:
    """A vision tower and the like: 16 bits, on the first stage, divided by tp or replicated."""
    bits = form.bits.typical if form.whole else 16
    size = choose(stage.rank.has_embedding, beyond * bits / 8, 0.0)
    return Range(size / plan.tp, size / plan.tp, size)


def weights_component(
    shape: ModelShape, format_name: str, form: WeightFormat, plan: Plan, rank: RankClass
) -> Component:
    return Component(
        name="weights",
        bytes=weights_on(shape, form, plan, rank),
        formula="sum over parts: parameters on this rank x bits of the format / 8",
        inputs=(
            ("weights_format", format_name),
            ("bits of a quantised weight", f"{form.bits.typical:g}"),
            ("layers on this rank", str(rank.layers)),
            ("whole on every tensor rank", _replicated(shape, rank)),
            ("tp", str(plan.tp)),
        ),
        source=f"{shape.source or 'the model config'}; {form.source}",
    )


def _replicated(shape: ModelShape, rank: RankClass) -> str:
    """Parameters that tensor parallelism does not divide, in words."""
    if not shape.computable:
        return "unknown"
    pieces = (one for one in stage_of(shape, rank).pieces if one.split is Split.NONE)
    return f"{sum(one.params * one.count for one in pieces):,} parameters"
