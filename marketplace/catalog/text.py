"""Text of strangers, made safe to store: no control, zero-width or bidirectional characters."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_TEXT = 4000
"""Readers look no further: a longer text is prose or bait, never the words of one attribute."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffc\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


_LONGEST_KEPT = 200


def clean(text: str) -> str:
    """Without characters that PostgreSQL refuses or that no one sees, white space collapsed.

    U+FFFD, which stands for undecodable bytes, becomes a space: it is not the provider's word.
    """
    return _kept(text) if len(text) <= _LONGEST_KEPT else _cleaned(text)


def _cleaned(text: str) -> str:
    return " ".join(strip_unseen(text).replace("\ufffd", " ").split())


_kept = lru_cache(maxsize=16_384)(_cleaned)
"""A page says the same short words thousands of times."""


def strip_unseen(text: str) -> str:
    """Like `clean`, with white space as it was."""
    return _UNSAFE.sub("", text)


def bounded(text: str) -> str:
    """Cleaned and cut to `MAX_TEXT`, so that every pattern ends soon whatever it is given."""
    return clean(text[: 2 * MAX_TEXT])[:MAX_TEXT]


def has_mixed_scripts(word: str) -> bool:
    """Whether Latin digits or letters stand beside look-alikes of another script.

    A Cyrillic "Н100" or a full-width "Ｈ１００" must not pass for a card that it does not name.
    """
    foreign = any(ord(letter) > 0x24F and letter.isalnum() for letter in word)
    return foreign and any(letter.isascii() and letter.isalnum() for letter in word)
