"""The current listings ranked for a workload: every offer that one viewer may see, or one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from evaluator.findings import Code, Finding, finding
from evaluator.hardware import Column
from evaluator.jobs import Workload
from evaluator.offer_table import OfferTable
from evaluator.ranking import Cut, Ranking
from evaluator.reports import evaluator_version
from evaluator.shortlist import Shortlist, shortlist
from marketplace import models
from marketplace.expressions import Node
from marketplace.fleets import Offered, offered_now
from marketplace.listings import current, offerings, own_facts
from marketplace.machines import configuration_of, machine_of
from marketplace.models import Listing, RentedMachine, Verdict
from marketplace.offers import offers_on
from marketplace.own_offers import Own, looks_of, seen_by, with_own
from marketplace.rented import facts_by_machine, own_machines, pending_among, rented_under
from marketplace.shelf import shelf

UNSEEN = f"their source has not been seen for {settings.HIDDEN_HOURS} hours"
FILTERED_OUT = "a filter excludes them"


def shortlist_for(
    workload: Workload,
    listings: QuerySet[Listing] | None = None,
    limit: int = 20,
    *,
    keep: bool = True,
    viewer: Viewer = None,
    weigh: bool = False,
) -> Shortlist:
    """Ranks the listings (default: all current ones). `weigh` asks for the front of all of them.

    Listings under which the viewer rented a machine are judged by what was seen on that one.

    With `keep` False nothing is written, as for a page that someone reads: listings that are still
    without a configuration wait for the next sync or evaluation.
    """
    wanted = current() if listings is None else listings
    if keep:
        name_configurations(wanted)
    else:
        wanted = wanted.exclude(configuration="")
    now, everything = timezone.now(), _read(wanted, _own(wanted, viewer))
    return ranked_of(workload, everything, Asking(limit=limit, weigh=weigh), now)


@dataclass(frozen=True, slots=True)
class Asking:
    """How much of a ranking is wanted: of which offers, from which rank on, and whether with what
    no other of all ranked ones beats."""

    filters: Mapping[str, Node] = field(default_factory=dict)
    model: str = ""
    limit: int = 20
    skip: int = 0
    weigh: bool = False

    @property
    def whole(self) -> Asking:
        """The same of every row."""
        return replace(self, limit=0, skip=0)


def _unseen_since(now: datetime) -> datetime:
    """A listing that was last seen before this is not ranked."""
    return now - timedelta(hours=settings.HIDDEN_HOURS)


def offered_to(viewer: Viewer) -> Offered:
    """All current offers as one viewer may judge them; the same for all who rented nothing."""
    shared, looks = offered_now(lambda: offers_on(shelf().stock)), looks_of(viewer)
    if not looks:
        return shared
    key = (looks, minute_of(timezone.now()))
    own = shared.known_by(key, lambda: _own(_named().filter(pk__in=rented_under(viewer)), viewer))
    return seen_by(shared, own) if own else shared


def _named() -> QuerySet[Listing]:
    return current().exclude(configuration="")


def ranked_of(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Shortlist:
    """The offers that pass, ranked. All others are counted with the reason."""
    key = question_of(workload, asking, now)
    return offered.answer_to(key, lambda: _ranked(workload, offered, asking, now))


def question_of(workload: Workload, asking: Asking, now: datetime) -> Hashable:
    """What equal answers are kept under, for a minute: rows tell the age of what they show."""
    return (repr(workload), repr(asking), minute_of(now))


def minute_of(now: datetime) -> datetime:
    """How far what is kept may lag behind the clock."""
    return now.replace(second=0, microsecond=0)


def ranking_of(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Ranking:
    """The same with every row in reach, for a page that filters and orders them by columns."""
    key = question_of(workload, asking.whole, now)
    return offered.ranking_of(key, lambda: _whole(workload, offered, asking, now))


def _whole(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Ranking:
    recent, passing = _parted(offered, asking, now)
    judged = offered.judged_for(workload)
    return Ranking.of(workload, offered.fleet, judged, recent & passing, now)


def cut_of(
    ranking: Ranking, cut: Cut, offered: Offered, asking: Asking, now: datetime
) -> Shortlist:
    """Some rows of a ranking. All others are counted with the reason."""
    return _with_hidden(ranking.shortlist(cut), *_parted(offered, asking, ranking.now or now))


def _parted(offered: Offered, asking: Asking, now: datetime) -> tuple[Column, Column]:
    """Which offers were seen lately enough, and which pass what is asked of offers."""
    recent = offered.seen_after(_unseen_since(now))
    passing = offered.where(asking.filters, now)
    if asking.model:
        passing = passing & offered.with_model(asking.model)
    return recent, passing


def _ranked(workload: Workload, offered: Offered, asking: Asking, now: datetime) -> Shortlist:
    recent, passing = _parted(offered, asking, now)
    ranked = shortlist(
        workload,
        offered.fleet,
        asking.limit,
        now,
        among=recent & passing,
        judged=offered.judged_for(workload),
        skip=asking.skip,
        weigh=asking.weigh,
    )
    return _with_hidden(ranked, recent, passing)


def _with_hidden(ranked: Shortlist, recent: Column, passing: Column) -> Shortlist:
    unseen, out = int((passing & ~recent).sum()), int((~passing).sum())
    hidden = Counter(ranked.hidden) + Counter({UNSEEN: unseen, FILTERED_OUT: out})
    return replace(
        ranked,
        total=ranked.total + unseen + out,
        hidden=dict(hidden),
    )


def _read(listings: QuerySet[Listing], own: Own) -> Offered:
    """What some listings offer, and the machine of every configuration among them."""
    offered = [with_own(offering, own) for offering in offerings(listings)]
    private = {machine.fingerprint(): machine for machine, _ in own.values()}
    shared = {offering.configuration for offering in offered} - private.keys()
    machines = {one.configuration: machine_of(one) for one in one_listing_each(shared)}
    return Offered.of(OfferTable.of(offered), machines | private)


Viewer = User | AnonymousUser | None


def _own(listings: QuerySet[Listing], viewer: Viewer) -> Own:
    """By the key of the listing: the viewer's machine, and the note that it is the viewer's."""
    rented = own_machines(viewer, listings.order_by().values("pk"))
    if not rented:
        return {}
    facts, pending = facts_by_machine(rented.values()), pending_among(rented.values())
    rows = Listing.objects.filter(pk__in=rented).prefetch_related(own_facts())
    return {
        str(row.pk): (machine_of(row, seen=facts[one.pk]), notes_of(one, pending))
        for row in rows
        for one in (rented[row.pk],)
    }


def notes_of(rented: RentedMachine, pending: set[int]) -> tuple[Finding, ...]:
    """That evidence which no curator accepted has a part in what is judged, where it has."""
    if rented.pk not in pending:
        return ()
    return (finding(Code.OWN_EVIDENCE, machine=rented),)


def name_configurations(listings: QuerySet[Listing]) -> int:
    """Fingerprints listings whose fingerprint is missing or may no longer hold; counts changes.

    A fact that expires lowers its grade without any write. And another version of the evaluator
    may tell machines apart that the one before took for the same.
    """
    changed = []
    for listing in _doubtful(listings).prefetch_related(own_facts()).iterator(chunk_size=500):
        fresh = configuration_of(listing)
        if fresh != listing.configuration:
            listing.configuration = fresh
            changed.append(listing)
    Listing.objects.bulk_update(changed, ["configuration"], batch_size=500)
    return len(changed)


def _doubtful(listings: QuerySet[Listing]) -> QuerySet[Listing]:
    if not Verdict.objects.filter(evaluator_version=evaluator_version()).exists():
        return listings
    expired = models.Fact.objects.filter(expires_at__lte=timezone.now()).values("listing")
    return listings.filter(Q(configuration="") | Q(pk__in=expired))


def one_listing_each(configurations: Iterable[str]) -> QuerySet[Listing]:
    """Any listing of a configuration stands for all: the evaluator treats them alike. One that has
    gone does so only for others like it: it is not fingerprinted again when a fact of it expires.
    """
    first = Coalesce(Min("pk", filter=Q(gone_at=None)), Min("pk"))
    firsts = (
        Listing.objects.filter(configuration__in=configurations)
        .order_by()
        .values("configuration")
        .annotate(first=first)
        .values_list("first", flat=True)
    )
    return Listing.objects.filter(pk__in=list(firsts)).prefetch_related(own_facts())
