"""Templates that were read into functions say to the letter what Django makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django import forms
from django.contrib.auth.models import User
from django.forms.renderers import TemplatesSetting
from django.template import Context, Engine, NodeList
from django.template.defaultfilters import floatformat
from django.test import Client
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from marketplace.offers import forget_catalog
from marketplace.templating.controls import Controls
from marketplace.templating.nodes import Written
from marketplace.templating.numbers import fixed
from tests.marketplace.test_query_counts import addresses, make_small
from tests.pages.hostile import make_hostile_catalog

TOKEN = re.compile('(csrfmiddlewaretoken" value=)"[^"]*"')


class Colour:
    """With all that a template may meet in an object."""

    name = "<red>"
    do = {"x": 1}

    @property
    def broken(self) -> str:
        raise AttributeError("of its own")

    @property
    def unheard(self) -> str:
        raise Silent

    def shade(self) -> str:
        return "dark & deep"

    def mixed(self, other: str) -> str:
        return other

    def drop(self) -> str:
        raise AssertionError("a template may not call this")

    drop.alters_data = True  # type: ignore[attr-defined]


class Silent(Exception):
    silent_variable_failure = True


def values() -> dict[str, Any]:
    return {
        "colour": Colour(),
        "text": "<b>",
        "safe": mark_safe("<b>"),
        "none": None,
        "zero": 0,
        "one": 1,
        "half": 0.5,
        "price": Decimal("1.50"),
        "rows": [Colour(), {"name": "blue", "items": "own"}, ("a", "b")],
        "pairs": [("a", 1), ("b", 2)],
        "words": {"first": 1, "b": [1, 2]},
        "empty": [],
        "stream": iter("ab"),
    }


TEMPLATES = [
    "{{ text }} {{ safe }} {{ none }} {{ zero }} {{ half }} {{ price }} {{ missing }}",
    "{{ colour.name }} {{ colour.shade }} {{ colour.mixed }}",
    "{{ colour.drop }} {{ colour.nothing }}",
    "{{ colour.do.x }} {{ colour.unheard }} {{ none.name }} {{ text.upper }} {{ words.items }}",
    "{{ rows.1.name }} {{ rows.1.items }} {{ rows.2.1 }}",
    "{{ rows.9 }} {{ words.first }} {{ words.9 }}",
    "{{ text|upper }} {{ safe|upper }} {{ safe|lower }}",
    "{{ text|default:'<i>' }} {{ missing|default:text }}",
    "{{ rows|length }} {{ pairs|join:', ' }} {{ half|floatformat:'1u' }}",
    "{{ _('yes') }} {{ 'a<b' }} {{ 1.5 }}",
    "{% for x in rows %}{{ forloop.counter }}/{{ forloop.revcounter0 }} {{ x.name }};{% endfor %}",
    "{% for a, b in pairs reversed %}{{ forloop.last }}{{ a }}{{ b }}{% empty %}-{% endfor %}",
    "{% for a in pairs %}{% for b in a %}{{ forloop.parentloop.last }}{% endfor %}{% endfor %}",
    "{% for one in stream %}{{ one }}{% endfor %}{% for x in empty %}x{% empty %}none{% endfor %}",
    "{% for x in missing %}x{% endfor %}{% for x in words.items %}{{ x.0 }}{% endfor %}",
    "{% if text == '<b>' and not none %}a{% elif one %}b{% else %}c{% endif %}",
    "{% if one > text %}a{% else %}b{% endif %}",
    "{% if missing %}a{% elif one in words.b %}in{% endif %}",
    "{% if missing == none %}same{% endif %}{% if one is not none or colour.nothing %}x{% endif %}",
    "{% if half < one and half <= one and one >= half and one != half %}y{% endif %}",
    "{% if text not in words %}n{% endif %}{% if text|length > 2 %}long{% endif %}",
    "{% if missing|add:also_missing %}a{% else %}b{% endif %}",
    "{% with a=text b=colour.name %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% autoescape off %}{{ text }}{% if one %}{{ text }}{% endif %}{% endautoescape %}{{ text }}",
    "{% filter upper %}{{ text }}{% for x in pairs %}{{ x.0 }}{% endfor %}{% endfilter %}",
    "{% for x in pairs %}{% cycle 'odd' 'even' as c %}{{ c }}{% endfor %}",
    "{% for x in pairs %}{% ifchanged %}{{ one }}{% endifchanged %}{% endfor %}",
    "{% include 'part' %}{% include 'part' with text='<x>' only %}{% include name %}",
    "{% for text in pairs %}{% include 'part' with one=forloop.counter %}{% endfor %}",
    "{% extends 'base' %}{% block a %}{{ block.super }}{{ text }}{% endblock %}",
    "{% include 'base' %}{{ template_name }}{{ push }}{{ forloop.counter }}",
    "{% comment %}{{ text }}{% endcomment %}{% now 'Y' as year %}{{ year|length }}",
]
FAILING = [
    "{{ colour.broken }}",
    "{{ text|add:missing }}",
    "{% for a, b, c in pairs %}{% endfor %}",
    "{% for a in one %}{% endfor %}",
    "{% include 'absent' %}",
]
PARTS = {
    "part": "[{{ text }}{{ one }}{{ forloop.counter }}]",
    "base": "<{% block a %}base {{ text }}{% block b %}{{ one }}{% endblock %}{% endblock %}>",
    "name": "{{ name }}",
}


def rendered(loader: str, text: str) -> str:
    parts = {**PARTS, "page": text}
    own = [(loader, [("django.template.loaders.locmem.Loader", parts)])]
    context = Context({**values(), "name": "part"})
    return str(Engine(loaders=own).get_template("page").render(context))


DJANGO = "django.template.loaders.cached.Loader"
OURS = "marketplace.templating.loader.Loader"


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_template_says_what_django_makes_of_it(text: str) -> None:
    assert rendered(OURS, text) == rendered(DJANGO, text)


@pytest.mark.parametrize("text", FAILING)
def test_a_template_that_fails_fails_alike(text: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011  any, and then the same
        rendered(DJANGO, text)
    with pytest.raises(expected.type):
        rendered(OURS, text)


def test_escaping_is_never_skipped() -> None:
    assert rendered(OURS, "{{ text }}{{ colour.name }}") == "&lt;b&gt;&lt;red&gt;"


@given(
    st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=4)),
    st.sampled_from(["0u", "1u", "2", -1]),
)
def test_coordinates_are_rounded_as_django_does(value: object, places: object) -> None:
    assert fixed(value, places) == floatformat(value, places)


@given(st.integers(-(10**7), 10**7), st.sampled_from(["0u", "1u"]))
def test_so_are_those_in_the_middle(number: int, places: str) -> None:
    for value in (number / 20, number / 200, number * 1.05):
        assert fixed(value, places) == floatformat(value, places)


class Every(forms.Form):
    text = forms.CharField(widget=forms.TextInput(attrs={"placeholder": '<"', "spellcheck": False}))
    number = forms.IntegerField(min_value=1, required=False, widget=forms.NumberInput({"x": True}))
    hidden = forms.CharField(widget=forms.HiddenInput)
    email = forms.EmailField()


@pytest.mark.parametrize("data", [None, {}, {"text": '<"&', "number": "7", "hidden": "h"}])
def test_controls_are_written_as_django_does(data: dict[str, str] | None) -> None:
    ours, django = (Every(data, renderer=one()) for one in (Controls, TemplatesSetting))
    for name in Every.base_fields:
        assert str(ours[name]) == str(django[name])


# --- the pages


@pytest.fixture
def pages(client: Client) -> Iterator[list[str]]:
    user = User.objects.create_superuser("ada")
    client.force_login(user)
    evil = make_hostile_catalog(user)
    make_small(user)
    with time_machine.travel("2030-01-01 12:00Z", tick=False):
        own = [f"/listings/{evil.pk}/", "/", "/workloads/", "/workloads/memory/?paste", "/absent"]
        tasks = [f"/?workload={one}" for one in ("train-llama-70b", "finetune-llama-8b")]
        admin = ["/admin/", "/admin/marketplace/listing/", f"/admin/marketplace/listing/{evil.pk}/"]
        yield [*addresses().values(), *own, *tasks, *admin]


@pytest.mark.django_db
def test_every_page_says_what_django_makes_of_it(
    client: Client, pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = [said(client, one) for one in pages]
    monkeypatch.setattr(Written, "render", NodeList.render)
    for address, text in zip(pages, ours, strict=True):
        assert said(client, address) == text, address


def said(client: Client, address: str) -> str:
    forget_catalog()
    return TOKEN.sub(r"\1", client.get(address).content.decode())
