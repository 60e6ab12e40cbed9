"""The house stays small: short functions, short modules, imports in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("evaluator", "marketplace")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> list[Path]:
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, FUNCTION):
                yield path, node


def lengths() -> list[int]:
    return [(node.end_lineno or 0) - node.lineno + 1 for _, node in functions()]


def test_half_of_all_functions_have_at_most_ten_lines() -> None:
    assert median(lengths()) <= 10


def test_nine_functions_in_ten_have_at_most_thirty_lines() -> None:
    assert quantiles(lengths(), n=10)[-1] <= 30


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES)
    circles = [
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.chain_exists(importer=imported, imported=module)
    ]
    assert circles == []


def test_no_function_hides_an_import_of_our_own() -> None:
    hidden = [
        f"{path.relative_to(ROOT)}:{inner.lineno}"
        for path, node in functions()
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith(PACKAGES)
    ]
    # Django calls `ready` once the apps are loaded; an import at the top would be too early.
    assert [place for place in hidden if not place.startswith("marketplace/apps.py")] == []


def test_every_public_function_of_the_evaluator_says_what_it_returns() -> None:
    bare = [
        f"{path.name}:{node.name}"
        for path, node in functions()
        if path.is_relative_to(ROOT / "evaluator") and node.returns is None
    ]
    assert bare == []
