"""What was worked out of a workload's plans, for every listing that is looked at next."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from evaluator.jobs import Workload
from evaluator.workbook import Workbook

MOST = 16
"""Workloads in each process; the one asked for longest ago goes first."""

_lock = Lock()
_books: OrderedDict[str, Workbook] = OrderedDict()


def workbook_of(workload: Workload) -> Workbook:
    """The same for workloads that every verdict treats alike."""
    key = workload.fingerprint()
    with _lock:
        book = _books.setdefault(key, Workbook(workload))
        _books.move_to_end(key)
        while len(_books) > MOST:
            _books.popitem(last=False)
    return book
