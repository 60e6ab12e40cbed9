"""What a template asks of its context: names, attributes, filters. As Django gives it, sooner.

Whatever is not of the everyday kind is asked of Django's own objects, so that its rules hold:
missing names, callables, exceptions that mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeAlias

from django.template import Context, VariableDoesNotExist
from django.template.base import FilterExpression, Variable, render_value_in_context
from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.safestring import SafeData, SafeString, mark_safe

from marketplace.templating.numbers import fixed

Getter: TypeAlias = Callable[[Context], Any]

SWIFTER = {floatformat: fixed}
"""Filters with an equal that takes less time."""

ABSENT = object()

OPAQUE: set[type] = set()
"""Types met so far for whose values a word in brackets can only fail."""
KEYED: set[type] = set()
"""All others."""


def printed_value(expression: FilterExpression) -> Getter:
    """What `{{ expression }}` prints; a name that is missing is an empty text."""
    return _filtered(expression, _source(expression, ""))


def tested_value(expression: FilterExpression) -> Getter:
    """What `{% if expression %}` tests; a name that is missing is None."""
    return _filtered(expression, _source(expression, None))


def text_of(value: Any, context: Context) -> str:
    """A value as it stands in the page, escaped where it is not markup already."""
    kind = type(value)
    if kind is SafeString:
        return value  # type: ignore[no-any-return]
    if kind is str:
        return escape(value)
    if kind is int:
        return str(value)
    return str(render_value_in_context(value, context))


def _source(expression: FilterExpression, missing: object) -> Getter:
    if not expression.is_var:
        return _constant(expression.var)
    return lookup(expression.var, missing)


def _constant(value: Any) -> Getter:
    return lambda _: value


# --- names and attributes


def lookup(variable: Variable, missing: object) -> Getter:
    """The value of `a.b.c`, or `missing`."""
    careful = _asked_of_django(variable, missing)
    if variable.translate:
        return careful
    if variable.lookups is None:
        return _constant(variable.literal)
    name, *bits = variable.lookups

    def get(context: Context) -> Any:
        try:
            for names in reversed(context.dicts):
                if name in names:
                    return _followed(names[name], bits, missing)
            return careful(context) if hasattr(context, name) else missing
        except Exception:
            return careful(context)  # which raises it again, unless it means nothing

    return get


def _asked_of_django(variable: Variable, missing: object) -> Getter:
    def get(context: Context) -> Any:
        try:
            return variable.resolve(context)
        except VariableDoesNotExist:
            return missing

    return get


def _followed(current: Any, bits: Sequence[str], missing: object) -> Any:
    """From a named value along its attributes and keys."""
    if callable(current):
        current = _called(current)
    for bit in bits:
        kind = type(current)
        current = getattr(current, bit, ABSENT) if kind in OPAQUE else _item(current, bit)
        if current is ABSENT:
            return _absent(kind, bit, missing)
        if callable(current):
            current = _called(current)
    return current


class Unusual(Exception):
    """Something that Django has a rule for: it is asked itself."""


def _called(value: Any) -> Any:
    if getattr(value, "do_not_call_in_templates", False):
        return value
    if getattr(value, "alters_data", False):
        raise Unusual
    return value()


def _absent(kind: type, bit: str, missing: object) -> Any:
    """A property that fails is no missing name."""
    if bit.isdigit() or hasattr(kind, bit):
        raise Unusual
    return missing


def _item(current: Any, bit: str) -> Any:
    """A step from a value that may hold keys, and the first one from any other."""
    kind = type(current)
    if kind is dict and bit in current:
        return current[bit]
    if isinstance(current, tuple | list) and bit.isdigit():
        return current[int(bit)]
    if kind not in KEYED:
        (OPAQUE if _is_opaque(kind) else KEYED).add(kind)
    if kind in OPAQUE or kind is dict:
        return getattr(current, bit, ABSENT)
    try:
        return current[bit]
    except (TypeError, AttributeError, KeyError, ValueError, IndexError):
        return getattr(current, bit, ABSENT)


def _is_opaque(kind: type) -> bool:
    """Whether `value["word"]` raises for each value of this kind."""
    indexed = issubclass(kind, str | tuple | list)
    return indexed or not any("__getitem__" in vars(base) for base in kind.__mro__)


# --- filters


def _filtered(expression: FilterExpression, get: Getter) -> Getter:
    for function, arguments in expression.filters:
        get = _applied(function, [_argument(*one) for one in arguments], get)
    return get


def _argument(is_variable: bool, given: Any) -> Getter:
    if not is_variable:
        return _constant(mark_safe(given))  # noqa: S308  a word of the template itself
    get = lookup(given, ABSENT)

    def found(context: Context) -> Any:
        value = get(context)
        return given.resolve(context) if value is ABSENT else value

    return found


def _applied(function: Callable[..., Any], arguments: list[Getter], get: Getter) -> Getter:
    function = SWIFTER.get(function, function)
    if getattr(function, "expects_localtime", False):
        get = _local(get)
    marked = [getattr(function, name, False) for name in ("is_safe", "needs_autoescape")]
    if not (arguments or any(marked)):
        return lambda context: function(get(context))
    call = _call(function, arguments)
    if not marked[0]:
        return lambda context: call(context, get(context))

    def keeps_markup(context: Context) -> Any:
        value = get(context)
        made = call(context, value)
        return mark_safe(made) if isinstance(value, SafeData) else made  # noqa: S308  is_safe

    return keeps_markup


def _local(get: Getter) -> Getter:
    return lambda context: timezone.template_localtime(get(context), context.use_tz)  # type: ignore[attr-defined]


def _call(function: Callable[..., Any], arguments: list[Getter]) -> Callable[[Context, Any], Any]:
    if getattr(function, "needs_autoescape", False):
        return lambda context, value: function(
            value, *[one(context) for one in arguments], autoescape=context.autoescape
        )
    if not arguments:
        return lambda _, value: function(value)
    if len(arguments) == 1:
        (only,) = arguments
        return lambda context, value: function(value, only(context))
    return lambda context, value: function(value, *[one(context) for one in arguments])
