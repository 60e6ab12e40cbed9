"""Whether a site's robots.txt lets us ask for a page (RFC 9309)."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin

from protego import Protego

from marketplace.catalog.failures import (
    BadStatus,
    Busy,
    FetchError,
    Resting,
    RobotsDisallow,
    RobotsUnreachable,
)
from marketplace.catalog.fetch import Fetched, Permit, fetch

Ask = Callable[[str, Permit], Fetched]


def heed_robots(url: str, permit: Permit, ask: Ask = fetch) -> None:
    """Return when the page may be asked for. Raises RobotsDisallow or RobotsUnreachable.

    A robots.txt that is not there (4xx) allows; one that cannot be had now disallows for now.
    """
    try:
        rules = ask(urljoin(url, "/robots.txt"), permit).body.decode("utf-8", "replace")
    except Resting:
        raise
    except FetchError as error:
        if _is_absent(error):
            return
        raise RobotsUnreachable(f"robots.txt: {error}") from error
    if not Protego.parse(rules).can_fetch(url, permit.agent):
        raise RobotsDisallow("robots.txt disallows this address")


def _is_absent(error: FetchError) -> bool:
    absent = isinstance(error, BadStatus) and 400 <= error.status < 500
    return absent and not isinstance(error, Busy)
