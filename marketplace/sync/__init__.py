"""Bring one source up to date: claim, fetch, keep the bytes, read, compare, publish."""

from marketplace.sync.decisions import ACCEPTABLE
from marketplace.sync.derived import refresh
from marketplace.sync.running import (
    rehearse,
    rehearse_stored,
    reject,
    reparse,
    sync_file,
    sync_source,
)

__all__ = [
    "ACCEPTABLE",
    "refresh",
    "rehearse",
    "rehearse_stored",
    "reject",
    "reparse",
    "sync_file",
    "sync_source",
]
