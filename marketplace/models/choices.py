"""Choices and constraints that rows share, taken from the enums that define them."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import CheckConstraint, Q

from evaluator.facts import Grade


def choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    return [(word.value, word.value.replace("_", " ")) for word in words]


GRADES: list[tuple[int, str]] = [(int(grade), grade.word) for grade in Grade]


def one_of(field: str, words: type[StrEnum], name: str) -> CheckConstraint:
    """The database refuses a word outside the enum, whoever writes the row."""
    return CheckConstraint(condition=Q(**{f"{field}__in": [w.value for w in words]}), name=name)


def positive_or_unknown(field: str, name: str) -> CheckConstraint:
    """Null is unknown; zero would be a guess."""
    unknown, positive = Q(**{f"{field}__isnull": True}), Q(**{f"{field}__gt": 0})
    return CheckConstraint(condition=unknown | positive, name=name)
