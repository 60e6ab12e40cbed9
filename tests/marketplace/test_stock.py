"""After a change a process reads what differs, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from evaluator.facts import RanBy
from marketplace import in_force, stock
from marketplace.evidence import Origin, keep, preview, review
from marketplace.in_force import InForce
from marketplace.models import Listing, Price, Provider
from marketplace.models.evidence import EvidenceState
from marketplace.rankings import offered_to
from marketplace.stock import Stock
from tests.marketplace.test_evidence import PAIRS, sample
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> list[Listing]:
    source = make_source()
    return [make_listing(source, f"m-{at}") for at in range(9)]


def test_what_stays_as_it_is_is_the_very_same(rows: list[Listing]) -> None:
    held, prices = Stock.whole(), InForce.whole()
    assert held.renewed() is held
    assert prices.renewed() is prices


def test_only_a_row_that_differs_is_read(
    rows: list[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, prices = Stock.whole(), InForce.whole()
    Listing.objects.filter(pk=rows[4].pk).update(vcpus=7)
    Price.objects.filter(listing=rows[5]).update(amount=Decimal(3))
    monkeypatch.setattr(Stock, "whole", lambda: pytest.fail("read whole"))
    monkeypatch.setattr(InForce, "whole", lambda: pytest.fail("read whole"))
    assert held.renewed().joined == 1
    assert held.renewed().numbers["vcpus"].tolist() == [192.0] * 4 + [7.0] + [192.0] * 4
    amounts = [quote.amount for quote in prices.renewed().quotes.each()]
    assert amounts == [Decimal("19.92")] * 5 + [3] + [Decimal("19.92")] * 3


def test_a_row_that_was_seen_again_is_not_read(
    rows: list[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    held, now = Stock.whole(), timezone.now() + timedelta(hours=1)
    Listing.objects.update(last_seen=now)
    monkeypatch.setattr(stock, "_read", lambda _: pytest.fail("read again"))
    assert held.renewed().numbers["seen"].tolist() == [now.timestamp()] * 9
    assert held.renewed().words is held.words


def test_a_row_that_goes_is_let_go(rows: list[Listing]) -> None:
    held, prices = Stock.whole(), InForce.whole()
    rows[0].delete()
    assert held.renewed().keys.tolist() == [row.pk for row in rows[1:]]
    assert len(prices.renewed().keys) == 8


def test_another_name_of_a_provider_is_seen(rows: list[Listing]) -> None:
    held = Stock.whole()
    Provider.objects.update(name="Another")
    assert held.renewed().words["provider_name"].names == ("Another",)


def test_names_that_nobody_has_any_more_do_not_pile_up(
    rows: list[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock, "FEW", 1)
    held = Stock.whole()
    for turn in range(40):
        Listing.objects.filter(pk=rows[turn % 9].pk).update(title=f"name {turn}")
        held = held.renewed()
        assert len(held.words["title"].names) <= 18


def test_prices_that_nobody_asks_any_more_do_not_pile_up(
    rows: list[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_force, "FEW", 1)
    held = InForce.whole()
    for turn in range(40):
        Price.objects.filter(listing=rows[turn % 9]).update(amount=Decimal(turn + 1))
        held = held.renewed()
        assert len(held.quotes.values) <= 18


def test_a_moment_just_before_a_second_is_read_as_it_is(rows: list[Listing]) -> None:
    moment = timezone.now().replace(microsecond=999_999)
    Listing.objects.filter(pk=rows[0].pk).update(last_seen=moment, gone_at=moment)
    held = Stock.whole()
    seen, gone_at = (held.numbers[name][0] for name in ("seen", "gone_at"))
    assert (seen, gone_at) == pytest.approx((moment.timestamp(),) * 2, abs=1e-5)


def test_a_catalog_without_rows_can_be_filled() -> None:
    held, prices = Stock.whole(), InForce.whole()
    make_listing(make_source())
    assert len(held.renewed().keys) == len(prices.renewed().keys) == 1
    assert in_force.in_force().listings.tolist() == held.renewed().keys.tolist()


def test_what_is_judged_stays_when_something_else_happens(rows: list[Listing]) -> None:
    before = offered_to(None)
    ada = User.objects.create_user("ada")
    row = keep(rows[0], preview(rows[0], sample(PAIRS)), Origin(ada, RanBy.RENTER))
    review(row.pk, EvidenceState.ACCEPTED, None)
    assert offered_to(None) is before
    Listing.objects.filter(pk=rows[0].pk).update(availability="sold_out")
    rows[1].save()
    assert offered_to(None) is not before
