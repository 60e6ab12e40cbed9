"""GPU names in a provider's text, read once for each spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

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


Aliases = Mapping[str, str]
"""A curator's spellings of cards, and the model that each means."""

NO_ALIASES: Aliases = MappingProxyType({})


def label_with(text: str, aliases: Aliases) -> Label:
    """The GPU that a text names by itself, else by one of the spellings, the longest first."""
    label = label_of(text)
    if label.model or not aliases:
        return label
    words = bounded(text)
    for spelling in sorted(aliases, key=len, reverse=True):
        pattern = rf"(?<![A-Za-z0-9]){re.escape(spelling)}(?![A-Za-z0-9])"
        if found := re.search(pattern, words, re.I):
            return Label(model=aliases[spelling], words=found[0])
    return label
