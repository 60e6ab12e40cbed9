"""What a listing's page shows about links: the picture, the evidence, and what to ask or run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.findings import Code, Finding, finding, recall
from evaluator.machine import LinkClass, Machine
from evaluator.questions import benchmark_for, commands_for, questions_for
from evaluator.verdict import PlanVerdict
from marketplace.evidence import seen_elsewhere
from marketplace.link_matrix import picture_of
from marketplace.models import Evidence, Listing
from marketplace.models.evidence import Change
from marketplace.own_looks import OwnLooks
from marketplace.seen_machines import accepted_machines, timeline


def links_context(
    row: Listing,
    held: Sequence[Evidence],
    machine: Machine,
    own: OwnLooks | None,
    plan: PlanVerdict | None,
) -> dict[str, Any]:
    """Everything of the section about links; `held` is the evidence that its viewer may see."""
    rented = own.rented if own else None
    declared = LinkClass(row.link) if row.link else None
    open_to_ask = [recall(stored) for stored in row.findings]
    return {
        "rented": rented,
        "other_rentals": own.others if own else 0,
        "pending": own is not None and own.pending,
        "links": picture_of(machine.topology.value, declared, plan.link.groups if plan else ()),
        "topology": machine.topology,
        "timeline": timeline(held),
        "conflicts": [one for one in machine.conflicts if rented],
        "mismatched": _mismatched(held),
        "elsewhere": seen_elsewhere(row, held),
        "others": accepted_machines(row, held, rented),
        "commands": commands_for(machine),
        "benchmark": benchmark_for(machine),
        "questions": questions_for(machine, open_to_ask),
        "changes": list(Change),
    }


def _mismatched(held: Sequence[Evidence]) -> list[Finding]:
    return [finding(Code.EVIDENCE_MISMATCH, words=row.mismatch) for row in held if row.mismatch]
