"""One screen for newcomers, and a glossary that every page can lead to."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from evaluator.plans import plans_of
from evaluator.workload import workload_presets
from marketplace.glossary import TERMS, named, spellings, terms_in
from marketplace.templatetags.explain import explained
from tests.evaluator.machines import serve, train
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_one_screen_teaches_and_leads_to_every_preset(client: Client) -> None:
    page = words(client.get("/learn"))
    assert "Memory of two cards is not pooled" in page
    for slug in workload_presets():
        assert f'href="/?workload={slug}"' in page
        assert f'href="/workloads/memory/?workload={slug}"' in page


def test_the_picture_can_be_kept_as_a_file(client: Client) -> None:
    response = client.get("/learn?picture=pool")
    assert response["Content-Type"].startswith("image/svg+xml")
    assert b"Two cards with 24 GiB each" in response.content


def test_the_first_page_leads_to_it(client: Client) -> None:
    page = words(client.get("/"))
    assert 'href="/learn"' in page
    assert 'href="/glossary#vram"' in page


def test_every_link_into_the_glossary_leads_to_a_term(client: Client) -> None:
    row = make_listing(make_source())
    known = {term.slug for term in TERMS}
    pages = ["/", "/learn", "/workloads/memory/", f"/evidence/listings/{row.pk}/"]
    pages += ["/workloads/memory/?workload=train-llama-70b"]
    pages += [f"/plans?listing={row.pk}&workload={slug}" for slug in workload_presets()]
    for address in pages:
        found = set(re.findall(r'href="/glossary#([\w-]+)"', words(client.get(address))))
        assert found, address
        assert found <= known, address


def test_every_word_of_a_plans_name_has_a_meaning() -> None:
    """A newcomer meets "TP 8 × PP 2 interleaved 2 × FSDP 4" before any explanation."""
    experts = "qwen3-30b-a3b"
    jobs = [serve(), serve(experts), train(global_batch=64), train(experts, global_batch=64)]
    jobs += [train(seq_len=131_072, global_batch=16)]
    labels = {plan.label for job in jobs for plan in plans_of(job, 8, [1, 2]).plans}
    names = {word for label in labels for word in re.findall(r"[A-Za-z]{2,}", label)}
    plain = {"one", "over", "on", "of", "GPU", "GPUs", "machines"}
    assert {"TP", "PP", "CP", "DP", "EP", "FSDP", "interleaved", "replicas"} <= names
    assert {word for word in names - plain if word.lower() not in spellings()} == set()


def test_a_shortlist_leads_from_the_names_of_its_plans_to_their_meaning(client: Client) -> None:
    make_listing(make_source())
    page = words(client.get("/?workload=train-llama-70b"))
    told = page.partition("Words in these plans: ")[2].partition("</p>")[0]
    assert 'TP is <a class="term" href="/glossary#tensor-parallel">tensor parallel</a>' in told


def test_every_term_has_a_place_of_its_own_and_knows_its_relatives(client: Client) -> None:
    page = words(client.get("/glossary"))
    assert len({term.slug for term in TERMS}) == len(TERMS)
    for term in TERMS:
        assert f'id="{term.slug}"' in page
        assert all(named(other) for other in term.see)
        assert term.name not in term.see


def test_no_spelling_means_two_things() -> None:
    every = [word.lower() for term in TERMS for word in (term.name, *term.also)]
    assert len(spellings()) == len(every)


def test_only_the_first_occurrence_of_a_term_is_linked() -> None:
    assert str(explained("An all-reduce, 64 all-reduces.")) == (
        'An <a class="term" href="/glossary#all-reduce">all-reduce</a>, 64 all-reduces.'
    )


def test_the_longer_term_wins_and_parts_of_words_are_no_terms() -> None:
    assert "#tensor-parallel-degree" in explained("Use a tensor parallel degree of 2.")
    assert str(explained("A planet, unplanned, plan-b.")) == "A planet, unplanned, plan-b."


@given(st.text(max_size=80))
def test_no_letter_of_a_text_is_lost_or_becomes_markup(text: str) -> None:
    assert "".join(piece for piece, _ in terms_in(text)) == text
    marked = explained(text)
    assert marked.count("<") == 2 * sum(term is not None for _, term in terms_in(text))


def test_they_ask_nothing_of_the_catalog(client: Client) -> None:
    source = make_source()
    for address in ("/learn", "/glossary"):
        with CaptureQueriesContext(connection) as before:
            client.get(address)
        make_listing(source, address)
        with CaptureQueriesContext(connection) as after:
            client.get(address)
        assert len(after) == len(before) <= 3
