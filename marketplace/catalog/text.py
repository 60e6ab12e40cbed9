"""Text of strangers, made safe to store: no control, zero-width or bidirectional characters."""

from __future__ import annotations

import re

MAX_TEXT = 4000
"""Readers look no further: a longer text is prose or bait, never the words of one attribute."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffc\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """Without characters that PostgreSQL refuses or that no one sees, white space collapsed.

    U+FFFD, which stands for undecodable bytes, becomes a space: it is not the provider's word.
    """
    return " ".join(strip_unseen(text).replace("\ufffd", " ").split())


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
