"""A query whose text is kept gives what Django gives that puts it together each time."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import Http404
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluator.facts import RanBy
from marketplace.evidence import Origin, keep, preview, visible_to
from marketplace.listings import detailed, detailed_or_404
from marketplace.models import Fact, Listing, Source
from marketplace.prepared import Prepared
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db

MATRIX = """\
        GPU0    GPU1
GPU0     X      NV18
GPU1    NV18     X
"""


def held(row: Model) -> dict[str, Any]:
    """All that was read of a row, deferred columns left out, and of the rows joined to it."""
    joined = {name: held(one) for name, one in row._state.fields_cache.items()}
    columns = {name: value for name, value in vars(row).items() if not name.startswith("_")}
    return columns | joined


@pytest.fixture
def rows() -> list[Listing]:
    sources = [make_source("ridge"), make_source("vale")]
    made = [make_listing(one, sku, words={"gpu": "H100"}) for one in sources for sku in "abc"]
    return made


def two(one: int, other: int) -> QuerySet[Listing]:
    found = Listing.objects.select_related("provider", "seen_in").defer("words", "seen_in__body")
    return found.filter(pk__in=[one, other], gpu_count__gt=1).order_by("-pk")


def test_rows_come_with_their_columns_and_what_is_joined(rows: list[Listing]) -> None:
    prepared, other = Prepared(two), rows[4].pk
    for one in (rows[0].pk, rows[2].pk):
        assert [held(row) for row in prepared.rows(one, other)] == [
            held(row) for row in two(one, other)
        ]


def test_columns_left_out_are_read_when_they_are_asked_for(rows: list[Listing]) -> None:
    first = Prepared(two).rows(rows[0].pk, rows[1].pk)[0]
    assert "words" in first.get_deferred_fields()
    assert first.words == {"gpu": "H100"}


def test_values_come_as_tuples(rows: list[Listing]) -> None:
    def values(key: int) -> QuerySet[Listing, tuple[Any, ...]]:
        found = Listing.objects.filter(pk=key).order_by()
        return found.values_list("last_seen", "machine_hour_amount", "words", "provider__name")

    prepared = Prepared(values)
    for row in rows[:2]:
        assert prepared.rows(row.pk) == list(values(row.pk))


def test_its_text_is_put_together_once(rows: list[Listing]) -> None:
    asked: list[int] = []

    def one(key: int) -> QuerySet[Listing]:
        asked.append(key)
        return Listing.objects.filter(pk=key)

    prepared = Prepared(one)
    assert [prepared.rows(row.pk) for row in rows] == [[row] for row in rows]
    assert len(asked) == 1


# --- the rows of a listing's page


def test_a_listing_is_read_as_django_reads_it(rows: list[Listing]) -> None:
    key = rows[1].pk
    fact = {"grade": 2, "source": "a call", "ran_by": "curator", "as_of": timezone.now()}
    Fact.objects.create(listing=rows[1], name="vcpus", value=64, **fact)
    ours, django = detailed_or_404(key), detailed().get(pk=key)
    vars(django).update(has_own_facts=True, has_evidence=False)
    assert held(ours) == held(django)
    for name in ("prices", "facts"):
        found, expected = getattr(ours, name).all(), getattr(django, name).all()
        assert [held(one) for one in found] == [held(one) for one in expected] != []


def test_most_listings_take_two_queries(rows: list[Listing]) -> None:
    detailed_or_404(rows[0].pk)
    with CaptureQueriesContext(connection) as found:
        row = detailed_or_404(rows[0].pk)
        assert [*row.facts.all(), *visible_to(AnonymousUser(), row)] == []
        assert row.prices.all()
    assert len(found) == 2


@pytest.mark.parametrize("key", [0, 10**9, 2**63, 10**30])
def test_a_key_without_a_row_is_not_found(rows: list[Listing], key: int) -> None:
    with pytest.raises(Http404):
        detailed_or_404(key)


def test_evidence_is_seen_from_the_next_page_on(rows: list[Listing], ada: User) -> None:
    row = make_listing(rows[0].source, "two", gpu_count=2)
    assert visible_to(ada, detailed_or_404(row.pk)) == []
    kept = keep(row, preview(row, MATRIX), Origin(ada, RanBy.RENTER))
    assert visible_to(ada, detailed_or_404(row.pk)) == [kept]


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


def test_evidence_of_another_listing_is_none_of_this(rows: list[Listing], ada: User) -> None:
    other = make_listing(Source.objects.get(key="vale"), "two", gpu_count=2)
    keep(other, preview(other, MATRIX), Origin(ada, RanBy.RENTER))
    assert visible_to(ada, detailed_or_404(rows[0].pk)) == []
