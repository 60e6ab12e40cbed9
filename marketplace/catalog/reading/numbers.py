"""Numbers as people print them: decimal comma, Swiss and Indian grouping, no-break spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

NUMBER = (
    r"(?:\d{1,3}(?:[ \u00a0\u202f\u2009]\d{3}(?!\d)){1,4}(?:[.,]\d{1,4})?"
    r"|\d{1,15}(?:[.,'’]\d{1,12}){0,5}(?:[eE][-+]?\d{1,3})?|(?<!\d)\.\d{1,6})"
)
"""Digits with every separator in use. Bounded, so that a megabyte of digits costs little."""

_COMMA_DECIMAL = frozenset(
    [
        "de",
        "fr",
        "es",
        "it",
        "pl",
        "nl",
        "pt",
        "ru",
        "tr",
        "cs",
        "sk",
        "sv",
        "da",
        "nb",
        "nn",
        "no",
        "fi",
        "hu",
        "ro",
        "bg",
        "hr",
        "sl",
        "sr",
        "uk",
        "el",
        "lt",
        "lv",
        "et",
        "id",
        "vi",
    ]
)
"""Languages whose decimal sign is a comma (Unicode CLDR, number symbols)."""


@dataclass(frozen=True, slots=True)
class Number:
    """`ambiguous`: the separator may be decimal or thousands, `value` is the likelier."""

    value: Decimal
    ambiguous: bool = False


def uses_decimal_comma(language: str) -> bool:
    """Whether a language tag such as "de-AT" prints 2,49. An unknown language does not."""
    parts = language.lower().replace("_", "-").split("-")
    if parts[0] in ("de", "it", "fr") and "ch" in parts[1:]:
        return False
    return parts[0] in _COMMA_DECIMAL and not (parts[0] == "es" and "mx" in parts[1:])


def read_number(text: str, language: str = "", *, european: bool = False) -> Number | None:
    """One printed number. None where separators stand in no known order.

    `european` says that the words around it write numbers with a comma although the page's
    language does not, as in "2.990 €" on an English page.
    """
    bare = re.sub(r"[ \u00a0\u202f\u2009'’]", "", text.strip())
    mantissa, _, exponent = bare.lower().partition("e")
    signs = [sign for sign in mantissa if sign in ".,"]
    if not signs:
        return _number(bare)
    suffix = f"e{exponent}" if exponent else ""
    if len(set(signs)) == 2:
        return _two_signs(mantissa, signs, suffix)
    if len(signs) > 1:
        return _number(mantissa.replace(signs[0], "")) if _is_grouped(mantissa) else None
    return _one_sign(mantissa, signs[0], suffix, language, european)


def _two_signs(mantissa: str, signs: list[str], suffix: str) -> Number | None:
    decimal, group = signs[-1], signs[0]
    whole, _, fraction = mantissa.rpartition(decimal)
    if decimal in whole or not _is_grouped(whole):
        return None
    return _number(whole.replace(group, "") + "." + fraction + suffix)


def _one_sign(
    mantissa: str, sign: str, suffix: str, language: str, european: bool
) -> Number | None:
    whole, _, fraction = mantissa.partition(sign)
    comma = uses_decimal_comma(language)
    decimal = _number(f"{whole}.{fraction}{suffix}")
    if len(fraction) != 3 or len(whole) > 3 or not whole.strip("0") or suffix:
        return decimal
    grouped = _number(whole + fraction)
    if sign == ",":
        return _doubtful(decimal) if comma else grouped
    return _doubtful(grouped) if comma or european else decimal


def _is_grouped(text: str) -> bool:
    """Groups of three, or of two before a last group of three (lakh, crore)."""
    return bool(re.fullmatch(r"\d{1,3}(?:[.,]\d{2}){0,4}[.,]\d{3}|\d{1,3}(?:[.,]\d{3}){1,4}", text))


def _doubtful(number: Number | None) -> Number | None:
    return Number(number.value, True) if number else None


def _number(text: str) -> Number | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return Number(value) if value.is_finite() else None


def read_integer(text: str) -> int | None:
    """A whole count such as "208", "1,024", "56.0" or "-3"; None for anything else."""
    bare = text.strip()
    if re.fullmatch(r"-?\d{1,15}", bare):
        return int(bare)
    if re.fullmatch(r"\d{1,15}\.0{1,6}", bare):
        return int(bare.partition(".")[0])
    if re.fullmatch(r"\d{1,3}(?:[., '’\u00a0\u202f]\d{3}){1,4}", bare):
        return int(re.sub(r"\D", "", bare))
    return None
