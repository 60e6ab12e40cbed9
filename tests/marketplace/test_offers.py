"""Whatever happens to a catalog, what is held of it in memory is what a plain reading gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from evaluator.facts import Grade, RanBy
from evaluator.offer_table import OfferTable
from evaluator.offers import Offering
from marketplace import in_force, rankings, stock, sync
from marketplace.corrections import read_corrections
from marketplace.evidence import Origin, keep, preview, review
from marketplace.expressions import Check
from marketplace.fleets import Offered
from marketplace.in_force import InForce
from marketplace.models import Evidence, Fact, Listing, Price, Provider, Source
from marketplace.models.evidence import EvidenceState
from marketplace.offers import offers_on
from marketplace.rankings import offered_to
from marketplace.shelf import Shelf, shelf
from marketplace.stock import Stock
from tests.marketplace.site import Site
from tests.marketplace.test_evidence import PAIRS, sample
from tests.marketplace.visiting import serve
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db

MODELS = ("H100|8|80", "H100|4|80", "A100|8|80", "L40S|1|48", "B200|8|180", "Nothing|2|16")
NOON = datetime.fromisoformat("2027-01-10T12:00:00+00:00")


class World:
    """A catalog of a synced page and of rows without one, to which anything may happen."""

    def __init__(self, seed: int, site: Site, source: Source) -> None:
        self.by = random.Random(seed)
        self.site, self.source = site, source
        self.ada = User.objects.create_user("ada")
        self.lines = {f"m-{at}": self.line(at) for at in range(12)}
        other = make_source("other")
        for at in range(4):
            make_listing(other, f"o-{at}", region="", gpu_count=2**at, title="" if at else "Same")
        self.sync()

    def line(self, at: int) -> str:
        region = self.by.choice(["eu", "us", ""])
        return f"m-{at}|{region}|{self.by.choice(MODELS)}|{self.by.randint(10, 20)}.00"

    def any(self, **wanted: Any) -> Listing:
        return self.by.choice(list(Listing.objects.filter(**wanted).order_by("pk")))

    # --- what may happen

    def sync(self) -> None:
        serve(self.site, "\n".join(self.lines.values()))
        sync.sync_source(self.source.pk, now=timezone.now())

    def sync_with_changes(self) -> None:
        for name in self.by.sample(sorted(self.lines), 3):
            self.lines[name] = self.line(int(name[2:]))
        self.sync()

    def sync_with_losses(self) -> None:
        if len(self.lines) > 8:
            del self.lines[self.by.choice(sorted(self.lines))]
        self.sync()

    def sync_with_arrivals(self) -> None:
        at = self.by.randrange(100)
        self.lines[f"m-{at}"] = self.line(at)
        self.sync()

    def sync_with_a_price_that_jumped(self) -> None:
        name = self.by.choice(sorted(self.lines))
        self.lines[name] = f"{self.lines[name].rpartition('|')[0]}|900.00"
        self.sync()

    def lock(self) -> None:
        until = (timezone.now() + timedelta(days=self.by.randint(0, 2))).date().isoformat()
        price = self.by.choice(["18.50 USD", "7.25 EUR", None])
        self.correct({"price_per_hour": {"value": price, "until": until}})

    def correct_a_machine(self) -> None:
        name, value = self.by.choice([("vcpus", 96), ("link", "nvlink"), ("gpu_model", None)])
        self.correct({name: value})

    def correct(self, said: dict[str, Any]) -> None:
        row = self.any()
        row.corrections |= read_corrections(said, who="a curator", now=timezone.now())
        sync.refresh(row, "corrections")

    def know_better(self) -> None:
        row, ends = self.any(), timezone.now() + timedelta(hours=self.by.randint(1, 60))
        said = {"grade": Grade.MEASURED, "source": "a visit", "ran_by": RanBy.THIRD_PARTY.value}
        Fact.objects.create(
            listing=row, name="vcpus", value=77, as_of=timezone.now(), expires_at=ends, **said
        )
        sync.refresh(row)

    def delete(self) -> None:
        row = self.any()
        if not row.evidence.exists():
            row.delete()

    def bring_evidence(self) -> None:
        row = self.any(gone_at=None)
        shown = preview(row, sample(PAIRS))
        keep(row, shown, Origin(self.ada, RanBy.RENTER))

    def decide_on_evidence(self) -> None:
        for row in Evidence.objects.filter(state=EvidenceState.PENDING).order_by("pk")[:1]:
            review(
                row.pk,
                self.by.choice([EvidenceState.ACCEPTED, EvidenceState.REJECTED]),
                None,
                "seen",
            )

    def rename_the_provider(self) -> None:
        row = self.by.choice(list(Provider.objects.order_by("pk")))
        row.name = self.by.choice(["Zeta", "Alpha", "acme"])
        row.save()

    def lose_configurations(self) -> None:
        """As rows stand that no evaluation has seen yet."""
        row = self.any()
        row.configuration = ""
        row.save()

    def offer_more(self) -> None:
        row = self.any()
        row.availability, row.quantity = self.by.choice([("sold_out", None), ("limited", 2)])
        row.save()

    def ask_for_more(self) -> None:
        row = self.any(gone_at=None)
        Price.objects.create(
            listing=row, amount=self.by.randint(1, 9), currency="USD", unit="month", basis="gpu",
            purchase="reserved", term=f"{self.by.randint(1, 99)} months", snapshot=row.seen_in,
            first_seen=timezone.now(),
        )  # fmt: skip

    @property
    def happenings(self) -> list[Callable[[], None]]:
        return [
            self.sync, self.sync_with_changes, self.sync_with_losses, self.sync_with_arrivals,
            self.sync_with_a_price_that_jumped, self.lock, self.correct_a_machine,
            self.know_better, self.delete, self.bring_evidence, self.decide_on_evidence,
            self.rename_the_provider, self.lose_configurations, self.offer_more, self.ask_for_more,
        ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_after_every_change_all_is_as_if_read_from_nothing(
    seed: int, site: Site, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # whole readings are left to the others
        monkeypatch.setattr(stock, "FEW", 1000)
        monkeypatch.setattr(in_force, "FEW", 1000)
    with time_machine.travel(NOON, tick=False) as clock:
        world = World(seed, site, source)
        for _ in range(25):
            world.by.choice(world.happenings)()
            clock.shift(timedelta(minutes=world.by.choice([1, 60, 60 * 30])))
            assert_nothing_is_stale(world.ada)


def assert_nothing_is_stale(ada: User) -> None:
    held, kept, mine = shelf(), offered_to(None), offered_to(ada)
    (prices,) = in_force._held
    assert told_of_stock(held.stock) == told_of_stock(Stock.whole())
    assert told_of_prices(prices) == told_of_prices(InForce.whole())
    named = rankings._named()
    assert told(kept) == told(rankings._read(named, {}))
    assert told(mine) == told(rankings._read(named, rankings._own(named, ada)))


def told_of_stock(held: Stock) -> dict[str, Any]:
    """All columns row by row, however they are numbered."""
    texts = {
        name: [[*words.names, ""][at] for at in words.number.tolist()]
        for name, words in held.words.items()
    }
    numbers = {name: [repr(one) for one in held.numbers[name].tolist()] for name in held.numbers}
    made = Shelf((), held.keys, held.words, held.numbers, held.gone)
    ranks = [repr(one) for one in held.words["title"].ranks().tolist()]
    found = held.words["title"].passing(Check("has", "x h")).tolist()
    told = {"ranks": ranks, "found": found, "departed": made.departed, "gpus": made.offered("gpu")}
    return {
        **texts,
        **numbers,
        **told,
        "keys": held.keys.tolist(),
        "digests": held.digests.tolist(),
    }


def told_of_prices(held: InForce) -> list[Any]:
    return list(zip(held.keys.tolist(), held.listings.tolist(), held.quotes.each(), strict=True))


def told(offered: Offered) -> dict[str, Any]:
    """Offers one by one, and every column of numbers."""
    fleet = offered.fleet
    prices = fleet.prices
    columns = (fleet.machine, fleet.group, fleet.offered, fleet.waits, fleet.members, fleet.ends)
    return {
        "offers": [fleet.table.offer(row) for row in range(len(fleet))],
        "columns": [column.tolist() for column in columns],
        "configurations": fleet.configurations,
        "machines": [machine.fingerprint() for machine in fleet.hardware.machines],
        "places": {name: rows.tolist() for name, rows in fleet.places.items()},
        "prices": [prices.patterns[number] for number in prices.pattern],
        "amounts": (prices.offer.tolist(), prices.amount.tolist()),
        "seen": [repr(one) for one in fleet.table.seen.tolist()],
        "doubt": fleet.doubt.tolist(),
        "keys": fleet.keys.tolist(),
        "words": {name: list(words_of(offered, name)) for name in ("machine", "place", "provider")},
    }


def words_of(offered: Offered, name: str) -> Iterator[str]:
    words = offered.words(name)
    return ([*words.names, ""][at] for at in words.number.tolist())


def test_what_expired_of_a_listing_that_has_gone_is_not_said_of_one_that_is_offered() -> None:
    source, now = make_source(), timezone.now()
    rows = [make_listing(source, "gone"), make_listing(source, "offered")]
    for row in rows:
        Fact.objects.create(
            listing=row, name="link", value="nvswitch", grade=Grade.MEASURED, as_of=now,
            source="x", ran_by=RanBy.CURATOR,
        )  # fmt: skip
    assert rankings.name_configurations(Listing.objects.all()) == 2
    Listing.objects.filter(pk=rows[0].pk).update(gone_at=now)
    Fact.objects.filter(listing=rows[0]).update(expires_at=now - timedelta(hours=1))
    offered, plain = offered_to(None), rankings._read(rankings._named(), {})
    for held in (offered, plain):
        ((configuration, machine),) = held.machines.items()
        assert machine.fingerprint() == configuration
    (representative,) = rankings.one_listing_each(offered.machines)
    assert representative.pk == rows[1].pk
    rows[1].delete()
    (representative,) = rankings.one_listing_each(offered.machines)
    assert representative.pk == rows[0].pk


def test_offers_are_written_out_as_they_were(source: Source, site: Site) -> None:
    world = World(1, site, source)
    world.ask_for_more()
    table, _ = offers_on(shelf().stock)
    offers = [table.offer(row) for row in range(len(table))]
    assert len(offers) == 16
    again = OfferTable.of(random.Random(2).sample(offers, len(offers)))
    assert [again.offer(row) for row in range(len(again))] == offers
    assert all(isinstance(one, Offering) for one in offers)
