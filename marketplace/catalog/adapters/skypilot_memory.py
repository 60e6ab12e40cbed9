"""What the memory column of one file counts, learnt from the rows that leave no doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator.findings import Code, finding
from evaluator.gpus import known_sizes_gb
from evaluator.units import GB
from marketplace.catalog.adapters.skypilot_rows import Draft
from marketplace.catalog.vram import Resolved, Scope, resolve

ENOUGH_ROWS = 3
"""So many rows without doubt have to agree before they decide one that has two readings."""


@dataclass(frozen=True, slots=True)
class Custom:
    """How one file writes memory. `names_of_one` are accelerator names of single-GPU rows.

    A size within such a name is that of one GPU, wherever in the file the name stands.
    """

    scope: Scope = Scope.UNKNOWN
    names_of_one: frozenset[str] = frozenset()


def custom_of(drafts: Sequence[Draft]) -> Custom:
    """The scope is EACH or TOTAL when every decisive row of the file says so, else UNKNOWN.

    A row is decisive when its figure is a published size in one way only: 8 x H100 with 81920 MiB
    can only be each, with 655360 only a total.
    """
    scopes = [_decisive_scope(draft) for draft in drafts]
    known = [scope for scope in scopes if scope is not Scope.UNKNOWN]
    agreed = len(known) >= ENOUGH_ROWS and len(set(known)) == 1
    names = frozenset(draft.accelerator for draft in drafts if draft.gpu_count == 1)
    return Custom(known[0] if agreed else Scope.UNKNOWN, names)


def memory_of(draft: Draft, custom: Custom) -> Resolved:
    """Memory per GPU, or unknown where two sizes stay possible."""
    named = draft.named_figures
    if draft.accelerator in custom.names_of_one:
        named = tuple(replace(figure, scope=Scope.EACH) for figure in named)
    column = (draft.column_figure,) if draft.column_figure else ()
    resolved = resolve(draft.model, draft.gpu_count, (*named, *column))
    if resolved.ambiguous and column and custom.scope is not Scope.UNKNOWN:
        figures = (*named, replace(column[0], scope=custom.scope))
        resolved = resolve(draft.model, draft.gpu_count, figures)
    if draft.fraction and resolved.bytes_per_gpu:
        return _of_share(draft, resolved)
    return _without_doubt(draft, resolved) if resolved.ambiguous else resolved


def _of_share(draft: Draft, resolved: Resolved) -> Resolved:
    """A share of a card with a whole card's figure: the size of the share is not known."""
    sizes = known_sizes_gb(draft.model or "")
    if resolved.bytes_per_gpu not in [size * GB for size in sizes]:
        return resolved
    words = f"{draft.fraction} of {draft.names}"
    return Resolved(findings=(finding(Code.VRAM_UNKNOWN, words=words),))


def _decisive_scope(draft: Draft) -> Scope:
    if draft.gpu_count < 2 or draft.fraction or not draft.column_figure:
        return Scope.UNKNOWN
    resolved = resolve(draft.model, draft.gpu_count, (draft.column_figure,))
    if resolved.ambiguous or resolved.bytes_per_gpu is None:
        return Scope.UNKNOWN
    codes = {item.code for item in resolved.findings}
    return Scope.TOTAL if Code.VRAM_TOTAL_DIVIDED in codes else Scope.EACH


def _without_doubt(draft: Draft, resolved: Resolved) -> Resolved:
    """A column that means anything has no likelier reading, so the size stays unknown."""
    sizes = " or ".join(str(size // GB) for size in resolved.possible_bytes)
    words = draft.column_figure.words if draft.column_figure else draft.names
    doubt = finding(Code.VRAM_AMBIGUOUS, words=words, sizes=sizes)
    return replace(resolved, bytes_per_gpu=None, reported_bytes=None, findings=(doubt,))
