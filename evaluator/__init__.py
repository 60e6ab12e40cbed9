"""Judges multi-GPU machines against workloads. Pure: no Django, network, clock or environment.

The way of one question: `parse_workload` reads what is asked, `Machine` holds what is known of a
machine as facts with grades, `judge` tries every plan on it, and `rank` in `evaluator.shortlist`
orders many offerings.
"""

from evaluator.facts import UNKNOWN, Fact, Grade, RanBy, declared, strongest
from evaluator.fields import InvalidWorkload
from evaluator.findings import Code, Finding, Severity
from evaluator.jobs import Workload
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.memory import budget, fit, smallest_change
from evaluator.plans import Plan, plans_of
from evaluator.prices import Basis, Purchase, Quote, TimeUnit
from evaluator.verdict import MachineVerdict, PlanVerdict, Status, judge
from evaluator.workload import parse_workload, workload_presets

__version__ = "0.1.0"

__all__ = [
    "UNKNOWN",
    "Availability",
    "Basis",
    "Code",
    "Fact",
    "Finding",
    "Grade",
    "InvalidWorkload",
    "LinkClass",
    "Machine",
    "MachineVerdict",
    "Plan",
    "PlanVerdict",
    "Purchase",
    "Quote",
    "RanBy",
    "Severity",
    "Status",
    "TimeUnit",
    "Workload",
    "budget",
    "declared",
    "fit",
    "judge",
    "parse_workload",
    "plans_of",
    "smallest_change",
    "strongest",
    "workload_presets",
]
