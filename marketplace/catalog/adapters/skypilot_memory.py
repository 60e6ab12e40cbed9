"""What the memory column of one file counts, learnt from the rows that leave no doubt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum

from evaluator.findings import Code, finding
from evaluator.gpus import known_sizes_gb
from evaluator.units import GB
from marketplace.catalog.adapters.skypilot_rows import Draft
from marketplace.catalog.vram import Resolved, Scope, resolve

ENOUGH_ROWS = 3
"""So many rows without doubt have to agree before they decide one that has two readings."""


class Vote(StrEnum):
    """What a row says of the memory column of its file. `one` is a row of a single GPU."""

    ONE = "one"
    EACH = "each"
    TOTAL = "total"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Custom:
    """How one file writes memory. `names_of_one` are accelerator names of single-GPU rows.

    A size within such a name is that of one GPU, wherever in the file the name stands.
    """

    scope: Scope = Scope.UNKNOWN
    names_of_one: frozenset[str] = frozenset()

    def hint(self, draft: Draft) -> str:
        """What a row told, and what it was told: kept with it, for when it is not read again."""
        return " ".join((vote_of(draft), *self._told(draft.accelerator)))

    def still_says(self, hint: str, accelerator: str) -> bool:
        """Whether the row of that hint would be told the same now."""
        return hint.split(" ")[1:] == list(self._told(accelerator))

    def _told(self, accelerator: str) -> tuple[str, str]:
        return self.scope, "one" if accelerator in self.names_of_one else "any"


@dataclass(slots=True)
class Tally:
    """The votes of all rows of a file.

    The scope is EACH or TOTAL when every decisive row of the file says so, else UNKNOWN. A row is
    decisive when its figure is a published size in one way only: 8 x H100 with 81920 MiB can only
    be each, with 655360 only a total.
    """

    votes: Counter[str] = field(default_factory=Counter)
    names_of_one: set[str] = field(default_factory=set)

    def count(self, draft: Draft) -> None:
        self.count_hint(vote_of(draft), draft.accelerator)

    def count_hint(self, hint: str, accelerator: str) -> None:
        vote = hint.split(" ")[0]
        self.votes[vote] += 1
        if vote == Vote.ONE:
            self.names_of_one.add(accelerator)

    def custom(self) -> Custom:
        each, total = self.votes[Vote.EACH], self.votes[Vote.TOTAL]
        agreed = each + total >= ENOUGH_ROWS and not (each and total)
        scope = Scope.EACH if each else Scope.TOTAL
        return Custom(scope if agreed else Scope.UNKNOWN, frozenset(self.names_of_one))


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


def vote_of(draft: Draft) -> Vote:
    if draft.gpu_count == 1:
        return Vote.ONE
    if draft.fraction or not draft.column_figure:
        return Vote.OPEN
    resolved = resolve(draft.model, draft.gpu_count, (draft.column_figure,))
    if resolved.ambiguous or resolved.bytes_per_gpu is None:
        return Vote.OPEN
    codes = {item.code for item in resolved.findings}
    return Vote.TOTAL if Code.VRAM_TOTAL_DIVIDED in codes else Vote.EACH


def _without_doubt(draft: Draft, resolved: Resolved) -> Resolved:
    """A column that means anything has no likelier reading, so the size stays unknown."""
    sizes = " or ".join(str(size // GB) for size in resolved.possible_bytes)
    words = draft.column_figure.words if draft.column_figure else draft.names
    doubt = finding(Code.VRAM_AMBIGUOUS, words=words, sizes=sizes)
    return replace(resolved, bytes_per_gpu=None, reported_bytes=None, findings=(doubt,))
