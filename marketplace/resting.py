"""Large values that live as long as the catalog stays as it is, kept out of the collector's way."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sized
from typing import TypeVar

MANY = 5_000
"""Rows from which on a full collection costs a page more than its own making."""

Made = TypeVar("Made")


def made_to_rest(make: Callable[[], Made], size: Callable[[Made], Sized]) -> Made:
    """What `make` gives. Where it has MANY rows the collector never walks through it again.

    It runs no collection meanwhile either: each would look at all that has been made so far. What
    was set aside before is looked at once more, so that nothing is held for good.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        made = make()
        if len(size(made)) >= MANY:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
    finally:
        if running:
            gc.enable()
    return made
