"""The only crossing from rows to the evaluator: a listing and its facts make a Machine."""

from __future__ import annotations

from evaluator.machine import Machine
from marketplace.models import Listing


def machine_of(listing: Listing) -> Machine:
    """What a listing declares, with corrections and measured facts in place of weaker ones."""
    raise NotImplementedError


def configuration_of(listing: Listing) -> str:
    """Fingerprint of the listing's machine, for `Listing.configuration`."""
    return machine_of(listing).fingerprint()
