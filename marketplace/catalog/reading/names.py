"""GPU names in a provider's text, read once for each spelling."""

from __future__ import annotations

from functools import lru_cache

from evaluator.gpus import UNREAD, Label, read_label
from marketplace.catalog.text import bounded

_LONGEST_KEPT = 300


@lru_cache(maxsize=16_384)
def _kept(text: str) -> Label:
    return read_label(text)


def label_of(text: str) -> Label:
    """The first GPU that a text names. Catalogs repeat their words, so short ones are kept."""
    words = bounded(text)
    return _kept(words) if len(words) <= _LONGEST_KEPT else read_label(words)


def names_gpu(text: str) -> bool:
    """Whether a text names a card that we know."""
    return label_of(text) is not UNREAD
