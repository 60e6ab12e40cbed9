"""The curator's desk: every table, with history where it matters."""

from marketplace.admin import catalog, curation, evaluation, evidence, listings, quarantine

__all__ = ["catalog", "curation", "evaluation", "evidence", "listings", "quarantine"]
