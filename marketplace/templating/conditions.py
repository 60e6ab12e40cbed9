"""The tests of `{% if %}` as functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from django.template import Context
from django.template.defaulttags import TemplateLiteral

from marketplace.templating.values import Getter, tested_value

COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda one, many: one in many,
    "not in": lambda one, many: one not in many,
}


def test_of(condition: Any) -> Getter:
    """What cannot be compared is false, as Django has it."""
    kind = type(condition)
    if kind is TemplateLiteral:
        return tested_value(condition.value)
    first = test_of(condition.first)
    if condition.id == "not":
        return _or_false(lambda context: not first(context))
    second = test_of(condition.second)
    if condition.id == "and":
        return _or_false(lambda context: first(context) and second(context))
    if condition.id == "or":
        return _or_false(lambda context: first(context) or second(context))
    compare = COMPARED[condition.id]
    return _or_false(lambda context: compare(first(context), second(context)))


def _or_false(test: Getter) -> Getter:
    def tested(context: Context) -> Any:
        try:
            return test(context)
        except Exception:
            return False

    return tested
