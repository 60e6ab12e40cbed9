"""The curator's desk: every table, with history where it matters."""

from marketplace.admin import catalog, evaluation, evidence, listings

__all__ = ["catalog", "evaluation", "evidence", "listings"]
