"""Bytes per trained parameter of optimizer and precision recipes (ZeRO, arXiv 1910.02054, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.jobs import Precision

RECIPES: Mapping[tuple[str, str], Precision] = {
    ("adamw", "mixed"): Precision(2, 2, 4, 8),
    ("adamw", "mixed-fp32-grads"): Precision(2, 4, 4, 8),
    ("adamw", "fp32"): Precision(4, 4, 0, 8),
    ("adamw", "bf16"): Precision(2, 2, 0, 4),
    ("adamw-8bit", "mixed"): Precision(2, 2, 4, 2.03),
    ("adamw-8bit", "bf16"): Precision(2, 2, 0, 2.03),
    ("sgd", "mixed"): Precision(2, 2, 4, 4),
    ("sgd", "fp32"): Precision(4, 4, 0, 4),
    ("sgd", "bf16"): Precision(2, 2, 0, 2),
    ("adafactor", "mixed"): Precision(2, 2, 4, 0.01),
    ("adafactor", "fp32"): Precision(4, 4, 0, 0.01),
    ("adafactor", "bf16"): Precision(2, 2, 0, 0.01),
}
"""8-bit states carry one fp32 scale per block of 256 values for each of two moments. Adafactor
keeps one row and one column of each matrix, under a hundredth of a byte per parameter."""

OPTIMIZER_ALIASES: Mapping[str, str] = {
    "adam": "adamw",
    "adam8bit": "adamw-8bit",
    "adamw8bit": "adamw-8bit",
    "adamw_8bit": "adamw-8bit",
    "sgd-momentum": "sgd",
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "paged_adamw_32bit": "adamw",
    "paged_adamw_8bit": "adamw-8bit",
    "adamw_bnb_8bit": "adamw-8bit",
}
"""The last five are names of transformers' `optim`. Paged states leave the card only when it is
full, so they count."""


def optimizers() -> tuple[str, ...]:
    return tuple(dict.fromkeys([name for name, _ in RECIPES] + list(OPTIMIZER_ALIASES)))


def precisions(optimizer: str) -> tuple[str, ...]:
    """Precision words that an optimizer has a recipe for."""
    return tuple(word for name, word in RECIPES if name == canonical(optimizer))


def canonical(optimizer: str) -> str:
    return OPTIMIZER_ALIASES.get(optimizer, optimizer)


def recipe(optimizer: str, precision: str) -> Precision:
    """Raises KeyError for a pair that has no recipe; `precisions` lists those that have."""
    return RECIPES[canonical(optimizer), precision]
