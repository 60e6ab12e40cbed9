"""Django's `floatformat`, sooner for the coordinates of pictures."""

from __future__ import annotations

from math import floor
from typing import Any

from django.template.defaultfilters import floatformat

PLACES = {"0u": 0, "1u": 1}
SMALLEST, LARGEST = 1e-6, 1e6
NEAR = 1e-6
"""Closer to the middle between two roundings than this, the decimal digits must decide."""


def fixed(value: Any, places: Any = -1) -> str:
    """The same text as `floatformat`, for every value."""
    digits = PLACES.get(places)
    if digits is None or type(value) is not float or not SMALLEST < abs(value) < LARGEST:
        return str(floatformat(value, places))
    scaled = value * 10**digits
    if abs(scaled - floor(scaled) - 0.5) < NEAR:
        return str(floatformat(value, places))
    text = f"{value:.{digits}f}"
    return text[1:] if text.strip("-0.") == "" and text[0] == "-" else text


fixed.is_safe = True  # type: ignore[attr-defined]  # as Django marks its filters
