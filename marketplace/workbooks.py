"""What was worked out of workloads and machines: the same again for whoever looks next."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.verdict import MachineVerdict, judge
from evaluator.workbook import Workbook

MOST_BOOKS, MOST_VERDICTS = 16, 100
"""Kept by each process; the one asked for longest ago goes first."""

_lock = Lock()
_books: OrderedDict[str, Workbook] = OrderedDict()
_verdicts: OrderedDict[tuple[str, str], MachineVerdict] = OrderedDict()


def workbook_of(workload: Workload) -> Workbook:
    """The same for workloads that every verdict treats alike."""
    key = workload.fingerprint()
    with _lock:
        book = _books.setdefault(key, Workbook(workload))
        _books.move_to_end(key)
        while len(_books) > MOST_BOOKS:
            _books.popitem(last=False)
    return book


def judge_machine(workload: Workload, machine: Machine) -> MachineVerdict:
    """All plans on a machine, judged once for all machines that are alike."""
    key = (workload.fingerprint(), machine.fingerprint())
    with _lock:
        found = _verdicts.get(key)
    return found or _keep(key, judge(workload, machine, workbook=workbook_of(workload)))


def _keep(key: tuple[str, str], verdict: MachineVerdict) -> MachineVerdict:
    with _lock:
        _verdicts[key] = verdict
        while len(_verdicts) > MOST_VERDICTS:
            _verdicts.popitem(last=False)
    return verdict
