"""Pages over 100,000 listings of 2,000 configurations, each against a bare Django page.

The floor is one view with one query and one template without any tag but a loop: the same 50 rows
as a plain table. It passes the same middleware, on the same database, in the same run. Visits to
it and to the page take turns, so that what else the machine does weighs on both.

Each page is told four times: on the first visit to a process, when nothing of the catalog is in
memory; on the first visit after a sync that changed one listing of fifty; made anew for every
visit; and as a second stranger meets it within a minute. Made anew means that
no page is kept for any time. What stays from one visit to the next are columns of the catalog and
judgements of a workload, by the catalog's version, and rows, findings and bars of the table, by the
very values that they show: a row whose content differs in anything is written again. "Others in
turn" are visits to a listing that was not looked at before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

import django

django.setup()

from django.contrib.auth.decorators import login_not_required  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.template import Context, Engine  # noqa: E402
from django.test import Client, override_settings  # noqa: E402
from django.urls import include, path  # noqa: E402

from evaluator.facts import RanBy  # noqa: E402
from evaluator.workload import workload_presets  # noqa: E402
from marketplace.evaluations import evaluate, keep_workload, request_evaluation  # noqa: E402
from marketplace.evidence import Origin, keep, preview  # noqa: E402
from marketplace.models import Listing  # noqa: E402
from marketplace.offers import forget_catalog  # noqa: E402
from marketplace.templatetags.pieces import forget_pieces  # noqa: E402
from marketplace.views import kept  # noqa: E402
from tests.pages.large_catalog import fill, visit_again  # noqa: E402
from tests.scratch import scratch_database  # noqa: E402
from tests.services import POSTGRES_URL, REDIS_URL, postgres_answers  # noqa: E402

LISTINGS = int(os.environ.get("LINKPROOF_BENCH_LISTINGS", "100000"))
CONFIGURATIONS = LISTINGS // 50
VISITS, BARE_ROWS = 20, 50
SAMPLES = Path(__file__).parent / "samples" / "evidence"
Work: TypeAlias = Callable[[], object]

BARE = Engine().from_string(
    "<!doctype html><title>bare</title><table>{% for row in rows %}<tr><td>{{ row.title }}<td>"
    "{{ row.provider.name }}<td>{{ row.region }}<td>{{ row.gpu_count }}<td>{{ row.gpu_model }}<td>"
    "{{ row.vram_bytes_per_gpu }}<td>{{ row.link }}<td>{{ row.machine_hour_amount }}<td>"
    "{{ row.availability }}<td>{{ row.last_seen }}{% endfor %}</table>"
)


@login_not_required
def bare(request: HttpRequest) -> HttpResponse:
    rows = Listing.objects.select_related("provider").order_by("pk")[:BARE_ROWS]
    return HttpResponse(BARE.render(Context({"rows": rows})))


urlpatterns = [path("bare/", bare), path("", include("marketplace.urls"))]

SHORTLIST, PLANS = "/?workload=serve-llama-8b", "/plans/?workload=serve-llama-8b"
ADDED = ("place=eu+and+not+west", "machine=h100+or+a100", "machine=nothing", "gpu=H100&limit=20")
OF_VERDICTS = ("hourly=2..4", "evidence=declared", "plan=not+tp4", "warnings=0..3", "group=yes")
ORDERS = ("time", "-cost", "machine", "hourly", "seen", "evidence", "warnings")
FILTERS = ("gpu=H100", "region=west", "region=nowhere", "title=h100+and+not+7&vram=%3E%3D80")
SORTS = ("gpus", "memory", "machine", "seen")


def pages(first: int, last: int) -> dict[str, list[str]]:
    """A first page of each kind, then the filters and later pages that are held against it."""
    one = first + 500
    return {
        SHORTLIST: [
            *(f"{SHORTLIST}&after={rank}:1:one" for rank in (20, 400, LISTINGS // 100)),
            *(f"{SHORTLIST}&{words}" for words in (*ADDED, *OF_VERDICTS)),
            *(f"{SHORTLIST}&sort={name}" for name in ORDERS),
        ],
        "/listings/": [
            *(f"/listings/?after={key}" for key in (first + LISTINGS // 2, last - 10)),
            *(f"/listings/?{words}" for words in FILTERS),
            *(f"/listings/?sort={name}&after={first + LISTINGS // 3}" for name in SORTS),
        ],
        f"/listings/{one}/": [f"/listings/{one}/?workload=train-llama-70b"],
        "/workloads/memory/": ["/workloads/memory/?workload=train-llama-70b"],
        PLANS: [],
        f"{PLANS}&listing={one}": [f"{PLANS}&listing={one}&plan=tp2"],
        f"/evidence/listings/{one}/": [f"/evidence/listings/{one}/?workload=train-llama-70b"],
        "/evidence/": [],
    }


def own_pages(user: User) -> dict[str, list[str]]:
    """Those of one who has evidence of a machine of two GPUs, and an evaluation that ended."""
    listing = Listing.objects.filter(gpu_count=2).order_by("pk")[0]
    shown = preview(listing, (SAMPLES / "2-gpus-nvlink.txt").read_text("utf-8"))
    keep(listing, shown, Origin(user, RanBy.RENTER))
    workload = keep_workload(workload_presets()["serve-llama-8b"], user)
    asked = request_evaluation(workload)
    evaluate(asked.pk)
    return {
        SHORTLIST: [f"{SHORTLIST}&hourly=2..4", f"{SHORTLIST}&place=eu"],
        f"/listings/{listing.pk}/": [],
        "/workloads/memory/": [],
        f"{PLANS}&listing={listing.pk}": [],
        f"/evidence/listings/{listing.pk}/": [],
        "/evidence/": [],
        f"/evaluations/{asked.pk}/": [],
    }


def taken_in_turn(*works: Work, visits: int = VISITS) -> list[float]:
    """Of each, the seconds that 19 visits of 20 do not exceed."""
    times = [[_seconds(work) for work in works] for _ in range(visits)]
    return [sorted(column)[int(visits * 0.95) - 1] for column in zip(*times, strict=True)]


def _seconds(work: Work) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def tell(name: str, seconds: float, floor: float, against: str) -> None:
    print(f"{name:<72} {seconds * 1000:>9.1f} ms {seconds / floor:>7.2f} x {against}", flush=True)


def bench_pages() -> None:
    """On this database, then on PostgreSQL in a process of its own where it answers."""
    here = override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"])
    with scratch_database(), here:
        _bench()
    if connection.vendor == "sqlite" and postgres_answers():
        changes = {
            "DATABASE_URL": POSTGRES_URL,
            "REDIS_URL": REDIS_URL,
            "SECRET_KEY": "only for a bench",
            "ALLOWED_HOSTS": "127.0.0.1",
            "HTTPS": "0",
        }
        subprocess.run(
            [sys.executable, "-m", "tests.bench_pages"], env=os.environ | changes, check=True
        )


def _bench() -> None:
    print(f"{LISTINGS} listings of {CONFIGURATIONS} configurations on {connection.vendor}")
    fill(LISTINGS, CONFIGURATIONS)
    keys = list(Listing.objects.order_by("pk").values_list("pk", flat=True))
    visitor = Visitor(Client(HTTP_HOST="127.0.0.1"))
    visitor.tell_pages(pages(keys[0], keys[-1]))
    visitor.tell_others_in_turn([f"/listings/{key}/" for key in keys[1::97]])
    user = User.objects.create_user("bench")
    signed_in = Client(HTTP_HOST="127.0.0.1")
    signed_in.force_login(user)
    print("signed in, with evidence of one machine")
    Visitor(signed_in, "signed in ").tell_pages(own_pages(user))


@dataclass(frozen=True, slots=True)
class Visitor:
    client: Client
    who: str = ""

    def visit(self, address: str) -> None:
        assert self.client.get(address).status_code == 200, address

    def tell_pages(self, found: Mapping[str, list[str]]) -> None:
        self.visit("/bare/")
        for address, others in found.items():
            self._tell_first(address)
            with not_kept():
                self._tell(f"{self.who}made anew {address}", address, "/bare/", "a bare page")
                for other in others:
                    self.visit(other)
                    self._tell(f"  {other}", other, address, "its first page")
            if not self.who:
                self.visit(address)
                self._tell(f"within a minute {address}", address, "/bare/", "a bare page")

    def _tell_first(self, address: str) -> None:
        for name, happens in (("in a process", forget_all), ("after a change", visit_again)):
            happens()
            with not_kept():
                first = _seconds(lambda: self.visit(address))
                (floor,) = taken_in_turn(lambda: self.visit("/bare/"))
            tell(f"{self.who}first {name} {address}", first, floor, "a bare page")

    def _tell(self, name: str, address: str, peer: str, against: str) -> None:
        seconds, floor = taken_in_turn(lambda: self.visit(address), lambda: self.visit(peer))
        tell(f"p95 {name}", seconds, floor, against)

    def tell_others_in_turn(self, addresses: Sequence[str]) -> None:
        """Each is visited once, as they come: pages whose rows nobody has seen."""
        rest, bare = iter(addresses), lambda: self.visit("/bare/")
        with not_kept():
            seconds, floor = taken_in_turn(
                lambda: self.visit(next(rest)), bare, visits=min(len(addresses), 5 * VISITS)
            )
        tell("p95 of listings, others in turn", seconds, floor, "a bare page")


def forget_all() -> None:
    forget_catalog()
    forget_pieces()


@contextmanager
def not_kept() -> Iterator[None]:
    """Every page is made for the one who asks."""
    most, kept.MOST_PAGES = kept.MOST_PAGES, 0
    kept.forget_pages()
    try:
        yield
    finally:
        kept.MOST_PAGES = most


if __name__ == "__main__":
    bench_pages()
