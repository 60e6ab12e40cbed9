"""What is offered, as one sees it who has evidence of some of the machines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeAlias

from evaluator.findings import Finding
from evaluator.machine import Machine
from evaluator.offers import Offering
from marketplace.fleets import Offered

Own: TypeAlias = Mapping[str, tuple[Machine, tuple[Finding, ...]]]
"""By the key of the listing: the viewer's machine, and the note that it is the viewer's."""


def seen_by(shared: Offered, own: Own) -> Offered:
    """Nothing is read again: the viewer's machines take the place of those that are declared. Made
    once for what is known of them.
    """
    return shared.seen_with(_known(own), lambda: _overlaid(shared, own))


def _known(own: Own) -> Hashable:
    return tuple(sorted((key, one.fingerprint(), notes) for key, (one, notes) in own.items()))


def _overlaid(shared: Offered, own: Own) -> Offered:
    private = {machine.fingerprint(): machine for machine, _ in own.values()}
    offers = [with_own(offering, own) for offering in shared.fleet.offers]
    return Offered.of(offers, shared.machines | private)


def with_own(offering: Offering, own: Own) -> Offering:
    if offering.key not in own:
        return offering
    machine, notes = own[offering.key]
    findings = (*notes, *offering.findings)
    return replace(offering, configuration=machine.fingerprint(), findings=findings)
