"""When a failed request is worth another one, and how long to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import uniform

from marketplace.catalog.failures import BadStatus, FetchError, Unreachable
from marketplace.catalog.fetch import NOTHING_KNOWN, Fetched, Permit, Validators, fetch

LONGEST_REST = 24 * 3600.0
"""Seconds. No header keeps a source away for longer: a slip of the pen may say a year."""

PAUSES = (1.0, 4.0)
"""Seconds before the first and the second retry; each is drawn from half to one and a half."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 522, 524})
"""Answers that another request may turn into a page."""

LONGEST_PAUSE = 10.0
"""A site that asks for more than this is left alone until then, and not waited for."""

Pause = Callable[[float], None]


def rest_asked(retry_after: str, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, at most a day; None where it says nothing.

    RFC 9110, section 10.2.3: whole seconds or an HTTP date. A date in the past is 0.
    """
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_REST)
    try:
        at = parsedate_to_datetime(text)
        left = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(left, 0.0), LONGEST_REST)


def is_passing(error: FetchError) -> bool:
    """Whether the same request may succeed a little later."""
    return isinstance(error, Unreachable) or (
        isinstance(error, BadStatus) and error.status in PASSING
    )


def fetch_again(
    url: str, permit: Permit, validators: Validators = NOTHING_KNOWN, pause: Pause = time.sleep
) -> Fetched:
    """Like `fetch`, with at most two more requests after a failure that may pass."""
    for seconds in PAUSES:
        try:
            return fetch(url, permit, validators)
        except FetchError as error:
            if not is_passing(error):
                raise
            wanted = _wait_before_retry(error, seconds)
            if wanted is None:
                raise
            pause(wanted)
    return fetch(url, permit, validators)


def _wait_before_retry(error: FetchError, seconds: float) -> float | None:
    """Jittered, so that many workers do not come back together; None: not within this visit."""
    jittered = uniform(seconds / 2, seconds * 1.5)  # noqa: S311  no secret is drawn
    asked = rest_asked(error.retry_after, datetime.now(UTC)) if isinstance(error, BadStatus) else 0
    if (asked or 0) > LONGEST_PAUSE:
        return None
    return max(jittered, asked or 0)
