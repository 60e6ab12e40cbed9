"""A piece of a page is written once for each content, and never for another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.template import Context, Engine, TemplateSyntaxError

from marketplace.models import Provider
from marketplace.templatetags import pieces

FILES = {
    "piece": "<{{ text }}|{{ hidden }}>",
    "page": '{% load pieces %}{% piece "piece" text=text %}',
}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    pieces.forget_pieces()
    yield
    pieces.forget_pieces()


@pytest.fixture(params=["marketplace.templating.loader.Loader", None])
def engine(request: pytest.FixtureRequest) -> Engine:
    found = ("django.template.loaders.locmem.Loader", FILES)
    loaders: list[Any] = [(request.param, [found])] if request.param else [found]
    return Engine(loaders=loaders, libraries={"pieces": "marketplace.templatetags.pieces"})


def written(engine: Engine, **values: object) -> str:
    return str(engine.get_template("page").render(Context({"hidden": "seen", **values})))


def test_it_sees_its_own_values_alone(engine: Engine) -> None:
    assert written(engine, text="a") == "<a|>"


def test_equal_values_are_written_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(engine, text="a")
    monkeypatch.setattr(pieces.PieceNode, "_made", lambda *_: pytest.fail("written again"))
    assert written(engine, text="a") == first


@pytest.mark.parametrize(
    ("one", "other"), [("a", "b"), (1, True), (1, 1.0), ("<b>", None), ((1,), (2,))]
)
def test_values_that_read_differently_are_kept_apart(
    engine: Engine, one: object, other: object
) -> None:
    first, second = written(engine, text=one), written(engine, text=other)
    assert first != second
    assert written(engine, text=one) == first


def test_text_is_escaped_in_it(engine: Engine) -> None:
    assert written(engine, text="<script>") == "<&lt;script&gt;|>"


def test_what_cannot_be_a_key_is_written_each_time(engine: Engine) -> None:
    assert written(engine, text=[1]) == written(engine, text=[1]) == "<[1]|>"
    assert not list(pieces._pieces)


def test_a_row_of_the_database_is_refused(engine: Engine) -> None:
    with pytest.raises(TemplateSyntaxError, match="can change and stay equal"):
        written(engine, text=Provider(pk=1))


def test_the_oldest_of_too_many_goes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_CHARACTERS", 2 * len("<a|>"))
    for text in "abac":
        written(engine, text=text)
    assert [key.parts[1][1] for key in pieces._pieces] == ["a", "c"]
    written(engine, text="large")
    assert [key.parts[1][1] for key in pieces._pieces] == ["large"]


class Named:
    """A value that is large to compare, and says which one it is."""

    def __init__(self, kept_as: str, text: str) -> None:
        self.kept_as, self.text = kept_as, text

    def __str__(self) -> str:
        return self.text


def test_a_value_may_say_what_it_is_kept_as(engine: Engine) -> None:
    assert written(engine, text=Named("a", "first")) == "<first|>"
    assert written(engine, text=Named("a", "never asked")) == "<first|>"
    assert written(engine, text=Named("b", "other")) == "<other|>"


@pytest.mark.parametrize("text", ["{% piece name text=text %}", '{% piece "piece" text %}'])
def test_it_is_written_in_one_way(text: str) -> None:
    engine = Engine(libraries={"pieces": "marketplace.templatetags.pieces"})
    with pytest.raises(TemplateSyntaxError, match="write"):
        engine.from_string(f"{{% load pieces %}}{text}")
