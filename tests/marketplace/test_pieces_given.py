"""Every file that is written as a piece names nothing that it is not given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template import NodeList, engines
from django.template.base import FilterExpression, Node, Variable
from django.template.defaulttags import ForNode, IfNode, TemplateLiteral, WithNode
from django.template.loader_tags import IncludeNode

from marketplace.templatetags.pieces import PieceNode

FOLDER = Path(settings.BASE_DIR) / "templates"
ALWAYS = frozenset({"True", "False", "None", "forloop"})


def nodes_of(name: str) -> NodeList:
    return engines["django"].engine.get_template(name).nodelist  # type: ignore[attr-defined]


def pieces() -> list[tuple[str, PieceNode]]:
    names = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("_*.html"))
    return [(name, one) for name in names for one in nodes_of(name).get_nodes_by_type(PieceNode)]


@pytest.mark.parametrize(
    ("place", "node"), [pytest.param(*one, id=f"{one[0]}:{one[1].name}") for one in pieces()]
)
def test_a_piece_is_given_all_that_it_names(place: str, node: PieceNode) -> None:
    given = {name for name, _ in node.values}
    assert free_in(nodes_of(node.name), frozenset(ALWAYS)) - given == set()


@pytest.mark.parametrize("name", sorted({node.name for _, node in pieces()}))
def test_a_piece_reads_no_clock(name: str) -> None:
    assert "age" not in set(filters_in(nodes_of(name)))


def filters_in(nodes: NodeList) -> Iterator[str]:
    for node in nodes.get_nodes_by_type(Node):
        for part in expressions(node):
            yield from (function.__name__ for function, _ in part.filters)
        if isinstance(node, IncludeNode):
            yield from filters_in(nodes_of(node.template.var))


def test_there_are_pieces() -> None:
    assert len(pieces()) >= 5


def free_in(nodes: NodeList, bound: frozenset[str]) -> set[str]:
    return {name for node in nodes for name in free_of(node, bound)}


def free_of(node: Node, bound: frozenset[str]) -> set[str]:
    """Names that a node looks up in the context and that nothing around it has set."""
    named = {name for part in expressions(node) for name in names_in(part)} - bound
    if isinstance(node, IncludeNode):
        inner = bound | node.extra_context.keys()
        return named | free_in(nodes_of(node.template.var), frozenset(inner))
    if isinstance(node, IfNode):
        return named.union(*(free_in(one, bound) for _, one in node.conditions_nodelists))
    inner = bound | binds(node)
    lists = [getattr(node, name, None) for name in node.child_nodelists]
    return named.union(*(free_in(one, frozenset(inner)) for one in lists if one))


def binds(node: Node) -> set[str]:
    if isinstance(node, ForNode):
        return set(node.loopvars)
    return set(node.extra_context) if isinstance(node, WithNode) else set()


def expressions(node: Any) -> Iterator[Any]:
    if isinstance(node, IfNode):
        for test, _ in node.conditions_nodelists:
            yield from literals(test)
        return
    for value in vars(node).values():
        yield from of_value(value)


def of_value(value: Any) -> Iterator[Any]:
    if isinstance(value, FilterExpression):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from of_value(one)
    elif type(value) in (list, tuple):
        for one in value:
            yield from of_value(one)


def literals(test: Any) -> Iterator[Any]:
    if isinstance(test, TemplateLiteral):
        yield test.value
    elif test is not None:
        yield from literals(test.first)
        yield from literals(test.second)


def names_in(expression: FilterExpression) -> Iterator[str]:
    arguments = [one for _, given in expression.filters for variable, one in given if variable]
    for variable in (expression.var, *arguments):
        if isinstance(variable, Variable) and variable.lookups:
            yield variable.lookups[0]
