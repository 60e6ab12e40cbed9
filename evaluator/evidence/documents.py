"""JSON and XML out of a paste, without entities, endless depth or odd numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat  # entities are refused below

from evaluator.evidence.lines import Paste
from evaluator.evidence.readings import Problem, Trouble

DEEPEST = 64
MOST_TRIES = 8
"""Places where a JSON document may begin. Each failed try costs one pass over the text."""


class Malformed(ValueError):
    """A document that cannot be read. The first argument is a Problem."""

    @property
    def problem(self) -> Problem:
        found: Problem = self.args[0]
        return found


@dataclass(slots=True, eq=False)
class Element:
    """One XML element. `line` is that in the paste, `column` where on it the element begins."""

    name: str
    values: dict[str, str]
    line: int
    column: int = 0
    inside: list[Element] = field(default_factory=list)
    parent: Element | None = None

    def every(self, name: str) -> Iterator[Element]:
        """All elements of that name below this one, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            if element.name == name and element is not self:
                yield element
            waiting.extend(reversed(element.inside))

    @property
    def above(self) -> Iterator[Element]:
        """The elements around this one, nearest first."""
        element = self.parent
        while element:
            yield element
            element = element.parent


def read_xml(text: str, first_line: int) -> Element:
    """The root element. Raises Malformed, with the line in the paste."""
    root = Element("", {}, 0)
    stack = [root]
    parser = expat.ParserCreate()

    def opened(name: str, values: dict[str, str]) -> None:
        if len(stack) > DEEPEST:
            raise Malformed(Problem(Trouble.INVALID_XML, 0, "", f"at most {DEEPEST} levels"))
        line = parser.CurrentLineNumber + first_line - 1
        parent = stack[-1] if len(stack) > 1 else None
        element = Element(name, values, line, parser.CurrentColumnNumber, parent=parent)
        stack[-1].inside.append(element)
        stack.append(element)

    def closed(name: str) -> None:
        stack.pop()

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as problem:
        line = problem.lineno + first_line - 1
        reason = expat.ErrorString(problem.code)
        raise Malformed(Problem(Trouble.INVALID_XML, line, reason, "a whole XML file")) from problem
    return root.inside[0]


def _refuse_entity(*told: Any) -> None:
    raise Malformed(Problem(Trouble.INVALID_XML, 0, "<!ENTITY", "a file that declares no entity"))


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value and the line that it begins on."""

    value: Any
    line: int


def find_json(paste: Paste, mark: str) -> Document | None:
    """The first JSON document that holds the text `mark`. None where nothing looks like one.

    Raises Malformed where it is broken off, nested too deep or not JSON.
    """
    text = paste.text
    if mark not in text:
        return None
    failure: Problem | None = None
    for start in _starts(text, mark):
        line = text.count("\n", 0, start) + 1
        try:
            value, end = DECODER.raw_decode(text, start)
        except RecursionError:
            failure = failure or Problem(Trouble.INVALID_JSON, line, "", "less nesting")
        except ValueError as problem:
            failure = failure or _broken(problem, line, text)
        else:
            if mark in text[start:end]:
                return Document(value, line)
    if failure:
        raise Malformed(failure)
    return None


def _starts(text: str, mark: str) -> Iterator[int]:
    """Line beginnings with a bracket, before the mark."""
    end, tries, at = text.find(mark), 0, 0
    while at <= end and tries < MOST_TRIES:
        stop = text.find("\n", at)
        line_end = len(text) if stop < 0 else stop
        lead = at + len(text[at : at + 200]) - len(text[at : at + 200].lstrip(" \t"))
        if text[lead : lead + 1] in ("[", "{"):
            tries += 1
            yield lead
        at = line_end + 1


def _broken(problem: ValueError, line: int, text: str) -> Problem:
    if isinstance(problem, json.JSONDecodeError):
        read = text[problem.pos : problem.pos + 20].split("\n")[0]
        return Problem(Trouble.INVALID_JSON, problem.lineno, read, problem.msg.lower())
    return Problem(Trouble.INVALID_JSON, line, str(problem)[:80], "JSON")


def _plain_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


DECODER = json.JSONDecoder(object_pairs_hook=_plain_pairs, parse_constant=_refuse_constant)
