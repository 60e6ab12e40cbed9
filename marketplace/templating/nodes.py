"""A template's nodes as functions that put their texts into one list.

Only the everyday tags are known here. Any other renders itself, and so does everything where a
template switches escaping off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from django.conf import settings
from django.template import Context, Node, NodeList, VariableDoesNotExist
from django.template.base import TextNode, VariableNode
from django.template.defaulttags import ForNode, IfNode, LoadNode, URLNode, WithNode
from django.template.loader_tags import IncludeNode
from django.urls import get_script_prefix, get_urlconf, reverse
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

from marketplace.templating.conditions import test_of
from marketplace.templating.values import printed_value, tested_value, text_of

Put: TypeAlias = Callable[[str], None]
Writer: TypeAlias = Callable[[Context, Put], None]

MOST_ADDRESSES = 20_000


class Written(NodeList):
    """A list of nodes that renders itself by functions made once.

    `plain` says that nothing in it asks which template is being rendered.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        super().__init__(nodes)
        self.contains_nontext = getattr(nodes, "contains_nontext", False)
        for node in self:
            _write_parts(node)
        self.plain = all(_is_plain(node) for node in self)
        self.write = _sequence([_writer(node) for node in self])
        self._found: dict[type[Node], list[Any]] = {}

    def render(self, context: Context) -> SafeString:
        if not context.autoescape:
            return super().render(context)
        texts: list[str] = []
        self.write(context, texts.append)
        return SafeString("".join(texts))

    def get_nodes_by_type(self, nodetype: Any) -> list[Any]:
        """A page that extends another looks for its blocks each time."""
        if nodetype not in self._found:
            self._found[nodetype] = super().get_nodes_by_type(nodetype)
        return self._found[nodetype]


def _write_parts(node: Any) -> None:
    """Inner lists first, also those of nodes that render themselves."""
    kind = type(node)
    if kind is IfNode:
        parts = [(test, Written(nodes)) for test, nodes in node.conditions_nodelists]
        node.conditions_nodelists = parts
        return
    for name in node.child_nodelists:
        nodes = getattr(node, name, None)
        if isinstance(nodes, NodeList):
            setattr(node, name, Written(nodes))


def _is_plain(node: Any) -> bool:
    kind = type(node)
    if kind is IfNode:
        return all(nodes.plain for _, nodes in node.conditions_nodelists)
    parts = [getattr(node, name, None) for name in node.child_nodelists]
    known = kind in PLAIN or getattr(kind, "plain", False)
    return known and all(one.plain for one in parts if isinstance(one, Written))


def _writer(node: Any) -> Writer | str:
    kind = type(node)
    if kind is TextNode:
        return str(node.s)
    if kind is LoadNode:
        return ""
    make = WRITERS.get(kind)
    return make(node) if make else _itself(node)


def _itself(node: Node) -> Writer:
    return lambda context, put: put(str(node.render_annotated(context)))


def _sequence(parts: Sequence[Writer | str]) -> Writer:
    """All parts in turn, each with the text that stands before it."""
    text, pairs = "", []
    for part in parts:
        if isinstance(part, str):
            text += part
        else:
            pairs.append((text, part))
            text = ""

    def write(context: Context, put: Put) -> None:
        for before, part in pairs:
            put(before)
            part(context, put)
        put(text)

    return write


def _variable(node: Any) -> Writer:
    get = printed_value(node.filter_expression)
    return lambda context, put: put(text_of(get(context), context))


def _if(node: Any) -> Writer:
    branches = [
        (None if test is None else test_of(test), nodes.write)
        for test, nodes in node.conditions_nodelists
    ]

    def write(context: Context, put: Put) -> None:
        for test, body in branches:
            try:
                holds = test is None or test(context)
            except VariableDoesNotExist:
                continue
            if holds:
                body(context, put)
                return

    return write


def _for(node: Any) -> Writer:
    get, body, empty = tested_value(node.sequence), node.nodelist_loop, node.nodelist_empty
    single = node.loopvars[0] if len(node.loopvars) == 1 else ""
    names, backwards = node.loopvars, node.is_reversed

    def write(context: Context, put: Put) -> None:
        parent = context.get("forloop", {})
        with pushed(context, {}) as names_here:
            values = _listed(get(context))
            if len(values) < 1:
                empty.write(context, put)
                return
            loop = names_here["forloop"] = {"parentloop": parent}
            for place, item in enumerate(reversed(values) if backwards else values):
                _count(loop, place, len(values))
                if single:
                    names_here[single] = item
                    body.write(context, put)
                else:
                    with pushed(context, _unpacked(names, item)):
                        body.write(context, put)

    return write


class pushed:
    """Names that a block adds. As `context.push`, which makes a context manager of its own."""

    __slots__ = ("context", "names")

    def __init__(self, context: Context, names: dict[str, Any]) -> None:
        self.context, self.names = context, names

    def __enter__(self) -> dict[str, Any]:
        self.context.dicts.append(self.names)
        return self.names

    def __exit__(self, *_: object) -> None:
        self.context.dicts.pop()


def _listed(values: Any) -> Any:
    if values is None:
        return ()
    return values if hasattr(values, "__len__") else list(values)


def _count(loop: dict[str, Any], place: int, length: int) -> None:
    loop["counter0"] = place
    loop["counter"] = place + 1
    loop["revcounter"] = length - place
    loop["revcounter0"] = length - place - 1
    loop["first"] = place == 0
    loop["last"] = place == length - 1


def _unpacked(names: Sequence[str], item: Any) -> dict[str, Any]:
    length = len(item) if hasattr(item, "__len__") else 1
    if length != len(names):
        raise ValueError(f"Need {len(names)} values to unpack in for loop; got {length}. ")
    return dict(zip(names, item, strict=True))


def _with(node: Any) -> Writer:
    values = {name: printed_value(one) for name, one in node.extra_context.items()}
    body = node.nodelist

    def write(context: Context, put: Put) -> None:
        with pushed(context, _resolved(values, context)):
            body.write(context, put)

    return write


def _resolved(values: Mapping[str, Callable[[Context], Any]], context: Context) -> dict[str, Any]:
    return {name: get(context) for name, get in values.items()}


def _include(node: Any) -> Writer:
    if node.isolated_context or node.template.is_var or node.template.filters:
        return _itself(node)
    name = str(node.template.var)
    if name.startswith("."):
        return _itself(node)
    values = {key: printed_value(one) for key, one in node.extra_context.items()}
    held: list[Any] = []

    def write(context: Context, put: Put) -> None:
        template = held[0] if held else _held(held, context, name)
        with pushed(context, _resolved(values, context)):
            if getattr(template.nodelist, "plain", False):
                template.nodelist.write(context, put)
            else:
                put(template.render(context))

    return write


def _held(held: list[Any], context: Any, name: str) -> Any:
    """Looked up at the first use: a template may include itself."""
    held.append(context.template.engine.get_template(name))
    return held[0]


def _url(node: Any) -> Writer:
    """An address is looked up once for all pages that name it."""
    view = node.view_name.var
    if node.asvar or node.kwargs or node.view_name.is_var or ":" in view:
        return _itself(node)
    arguments = [printed_value(one) for one in node.args]

    def write(context: Context, put: Put) -> None:
        given = tuple(get(context) for get in arguments)
        put(_address(str(view), given, get_urlconf() or settings.ROOT_URLCONF, get_script_prefix()))

    return write


@lru_cache(MOST_ADDRESSES)
def _address(view: str, arguments: tuple[Any, ...], urls: str, prefix: str) -> str:
    return conditional_escape(reverse(view, urls, arguments))


WRITERS: Mapping[type[Node], Callable[[Any], Writer]] = {
    VariableNode: _variable,
    IfNode: _if,
    ForNode: _for,
    WithNode: _with,
    IncludeNode: _include,
    URLNode: _url,
}
PLAIN = frozenset({*WRITERS, TextNode, LoadNode})
