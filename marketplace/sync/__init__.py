"""Bring one source up to date: claim, fetch, keep the bytes, read, compare, publish."""

from marketplace.sync.derived import refresh
from marketplace.sync.running import rehearse, reject, reparse, sync_file, sync_source

__all__ = ["refresh", "rehearse", "reject", "reparse", "sync_file", "sync_source"]
