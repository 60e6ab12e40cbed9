"""Bytes of the weights on one GPU, by format, and what stays in 16 bits."""

from __future__ import annotations

from evaluator.budgets import Component
from evaluator.formats import WeightFormat
from evaluator.parameters import Module, others
from evaluator.partition import RankClass, local_params, parts_of
from evaluator.plans import Plan
from evaluator.ranges import Range, exact, total
from evaluator.shapes import ModelShape

MATRICES = (Module.ATTENTION, Module.MLP, Module.EXPERT)
"""Modules that a format may quantise; embedding, head, norms and router keep 16 bits."""

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
    sizes: dict[tuple[Module, int, bool], int] = {}
    for held in parts_of(shape, rank):
        part = held.part
        key = (part.module, part.padded_axis, held.kept)
        sizes[key] = sizes.get(key, 0) + local_params(part, shape, plan) * held.count
    spread = _spread(form, plan, loaded)
    text = total(
        _bits(form, module, axis, kept, loaded).scaled(params / 8)
        for (module, axis, kept), params in sizes.items()
    )
    whole = text + _beyond_text(shape, form, plan, rank)
    return Range(whole.low * spread.low, whole.typical * spread.typical, whole.high * spread.high)


def _spread(form: WeightFormat, plan: Plan, loaded: bool) -> Range:
    if form.mapped or not loaded:
        return ON_FILE
    return DIVIDED if plan.tp > 1 else LOADED


def _uncovered(shape: ModelShape, form: WeightFormat, plan: Plan, loaded: bool) -> Range:
    bits = form.bits.scaled((shape.given_params or 0) / 8 / (plan.tp * plan.pp))
    even = plan.gpus == 1 and form.whole
    spread = _spread(form, plan, loaded) if even else UNCOVERED_SPREAD
    return Range(bits.low * spread.low, bits.typical, bits.high * spread.high)


def _bits(form: WeightFormat, module: Module, axis: int, kept: bool, loaded: bool) -> Range:
    if form.whole:
        return form.bits
    quantised = module is Module.EXPERT if form.experts_only else module in MATRICES
    if kept or not quantised:
        return exact(16)
    if form.experts_only and loaded:
        padded = -(-axis // EXPERT_PADDING) * EXPERT_PADDING / axis
        bits = form.bits.typical
        return Range(bits, bits * padded, bits * max(padded * REPACKED, padded))
    return form.bits


def _beyond_text(shape: ModelShape, form: WeightFormat, plan: Plan, rank: RankClass) -> Range:
    """A vision tower and the like: 16 bits, on the first stage, divided by tp or replicated."""
    extra = others(shape) if rank.has_embedding else 0
    bits = form.bits.typical if form.whole else 16
    size = extra * bits / 8
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
            ("tp", str(plan.tp)),
        ),
        source=f"{shape.source or 'the model config'}; {form.source}",
    )
