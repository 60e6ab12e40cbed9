"""What was worked out of workloads and machines: the same again for whoever looks next."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from evaluator.growth import Growth, growth
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.verdict import MachineVerdict, judge
from evaluator.workbook import Workbook

MOST_BOOKS, MOST_VERDICTS, MOST_TABLES = 16, 100, 100
"""Kept by each process; the one asked for longest ago goes first."""

Key = TypeVar("Key")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Rented:
    """What some GPUs cost for an hour, where they come only in whole rentals of so many."""

    amount: Decimal | None
    gpus: int

    def __call__(self, gpus: int) -> Decimal | None:
        return None if self.amount is None else self.amount * -(-gpus // self.gpus)


@lru_cache(maxsize=64)
def name_of(workload: Workload) -> str:
    """Its fingerprint, which is made of every dimension of its model: read once. With what budgets
    and findings quote of the model: whoever pastes one may have called another so.
    """
    shape = workload.model
    return f"{workload.fingerprint()} {(shape.name, shape.source)!r}"


_lock = Lock()
_books: OrderedDict[str, Workbook] = OrderedDict()
_verdicts: OrderedDict[tuple[str, str], MachineVerdict] = OrderedDict()
_tables: OrderedDict[tuple[str, str, Rented, int], Growth] = OrderedDict()


def workbook_of(workload: Workload) -> Workbook:
    """The same for workloads that every verdict treats alike, of models that are called alike."""
    key = name_of(workload)
    with _lock:
        book = _books.setdefault(key, Workbook(workload))
        _books.move_to_end(key)
        while len(_books) > MOST_BOOKS:
            _books.popitem(last=False)
    return book


def judge_machine(workload: Workload, machine: Machine) -> MachineVerdict:
    """All plans on a machine, judged once for all machines that are alike."""
    key = (name_of(workload), machine.fingerprint())
    with _lock:
        found = _verdicts.get(key)
    verdict = found or judge(workload, machine, workbook=workbook_of(workload))
    return _keep(_verdicts, MOST_VERDICTS, key, verdict)


def growth_of(workload: Workload, machine: Machine, price: Rented, most_machines: int) -> Growth:
    """The table of growth, likewise. Its bills depend on more of a workload than verdicts do."""
    key = (repr(workload), machine.fingerprint(), price, most_machines)
    with _lock:
        found = _tables.get(key)
    table = found or growth(workload, machine, price, most_machines)
    return _keep(_tables, MOST_TABLES, key, table)


def _keep(held: OrderedDict[Key, Kept], most: int, key: Key, value: Kept) -> Kept:
    with _lock:
        held[key] = value
        held.move_to_end(key)
        while len(held) > most:
            held.popitem(last=False)
    return value
