"""What is offered, as one sees it who has evidence of some of the machines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from django.contrib.auth.models import AnonymousUser, User

from evaluator.findings import Finding
from evaluator.machine import Machine
from evaluator.offers import Offering
from marketplace.fleets import Offered
from marketplace.models import Evidence

Own: TypeAlias = Mapping[str, tuple[Machine, tuple[Finding, ...]]]
"""By the key of the listing: the viewer's machine, and the note that it is the viewer's."""


OF_LOOKS = (
    *("listing", "machine", "machine__opened_by", "machine__opened_at", "state", "mismatch"),
    *("facts__name", "facts__value", "facts__grade", "facts__source", "facts__ran_by"),
    *("facts__as_of", "facts__expires_at", "facts__caveat"),
)
"""All that decides what a viewer's evidence comes to, besides the catalog and the clock."""


def looks_of(viewer: User | AnonymousUser | None) -> str:
    """What a viewer brought, as one text: equal ones are judged alike. Empty is nothing."""
    if viewer is None or not viewer.is_authenticated:
        return ""
    rows = Evidence.objects.filter(uploaded_by=viewer).order_by("pk", "facts__pk")
    found = list(rows.values_list(*OF_LOOKS))
    return repr((viewer.pk, found)) if found else ""


def seen_by(shared: Offered, own: Own) -> Offered:
    """Nothing is read again: the viewer's machines take the place of those that are declared. Made
    once for what is known of them.
    """
    return shared.seen_with(_known(own), lambda: _overlaid(shared, own))


def _known(own: Own) -> Hashable:
    return tuple(sorted((key, one.fingerprint(), notes) for key, (one, notes) in own.items()))


def _overlaid(shared: Offered, own: Own) -> Offered:
    table, private = shared.table, {one.fingerprint(): one for one, _ in own.values()}
    rows = np.flatnonzero(np.isin(table.key.astype(np.str_), list(own)))
    others = {row: with_own(table.offer(row), own) for row in rows.tolist()}
    return Offered.of(table.known_as(others), shared.machines | private)


def with_own(offering: Offering, own: Own) -> Offering:
    if offering.key not in own:
        return offering
    machine, notes = own[offering.key]
    findings = (*notes, *offering.findings)
    return replace(offering, configuration=machine.fingerprint(), findings=findings)
