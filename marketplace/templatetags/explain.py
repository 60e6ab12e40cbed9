"""Words of the field as links to what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from django import template
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evaluator.candidates import Candidate
from evaluator.facts import Grade
from marketplace.glossary import Term, named, terms_in
from marketplace.templatetags.present import MOST_TEXTS, grade, status

register = template.Library()


@register.filter
def explained(sentence: str) -> SafeString:
    """A sentence in which the first occurrence of each term leads to the glossary."""
    return mark_safe("".join(_piece(text, term) for text, term in terms_in(str(sentence))))  # noqa: S308  # each piece is escaped


def _piece(text: str, term: Term | None) -> str:
    return _link(text, term) if term else escape(text)


@lru_cache(MOST_TEXTS, typed=True)
def _link(text: str, term: Term) -> SafeString:
    address = f"{reverse('glossary')}#{term.slug}"
    return format_html('<a class="term" href="{}">{}</a>', address, text)


@register.filter
def plan_terms(rows: Iterable[Candidate]) -> SafeString:
    """What the names of these rows' plans are made of, each word with its meaning a link away."""
    labels = ". ".join(dict.fromkeys(row.plan.plan.label for row in rows))
    found = [(text, term) for text, term in terms_in(labels) if term]
    short = {text: f"{text} is " for text, term in found if text.isupper() and text != term.name}
    told = ((short.get(text, ""), _link(term.name, term)) for text, term in found)
    return format_html_join(", ", "{}{}", told)


@register.filter
def verdict(word: str) -> SafeString:
    """A word of the tables of truth, in its tone and shape, as a link to what it means."""
    return _link(status(word), named(word))


@register.filter
def graded(level: str) -> SafeString:
    """A grade by its number, likewise."""
    return _link(grade(int(level)), named(Grade(int(level)).word))


@register.simple_tag
def term(name: str, words: str = "") -> SafeString:
    """A link to one term, under its own name or under other words."""
    return _link(words or name, named(name))
