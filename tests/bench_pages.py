"""Pages over 100,000 listings of 2,000 configurations, each against a bare Django page.

The floor is one view with one query and one template without any tag but a loop: the same 50 rows
as a plain table. It passes the same middleware, on the same database, in the same run. Each page is
told twice: made anew for every visit, and as a second stranger meets it within a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

import django

django.setup()

from django.contrib.auth.decorators import login_not_required  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.template import Context, Engine  # noqa: E402
from django.test import Client, override_settings  # noqa: E402
from django.urls import include, path  # noqa: E402

from marketplace.models import Listing  # noqa: E402
from marketplace.views import kept  # noqa: E402
from tests.pages.large_catalog import fill  # noqa: E402
from tests.services import POSTGRES_URL, REDIS_URL, postgres_answers  # noqa: E402

LISTINGS = int(os.environ.get("LINKPROOF_BENCH_LISTINGS", "100000"))
CONFIGURATIONS = LISTINGS // 50
VISITS, BARE_ROWS = 20, 50

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


def pages(first: int) -> dict[str, list[str]]:
    """A first page of each kind, then the filters and later pages that are held against it."""
    return {
        SHORTLIST: [
            f"{SHORTLIST}&after=20:1:one",
            f"{SHORTLIST}&after=400:1:one",
            f"{SHORTLIST}&place=eu+and+not+west",
            f"{SHORTLIST}&machine=h100+or+a100",
            f"{SHORTLIST}&gpu=H100&limit=20",
            f"{SHORTLIST}&hourly=2..4",
            f"{SHORTLIST}&sort=time&limit=20",
        ],
        "/listings/": [
            f"/listings/?after={first + LISTINGS // 2}",
            "/listings/?gpu=H100",
            "/listings/?region=west",
            "/listings/?region=nowhere",
            "/listings/?title=h100+and+not+7&vram=%3E%3D80",
            f"/listings/?sort=seen&after={first + LISTINGS // 3}",
        ],
        f"/listings/{first + 500}/": [],
        "/workloads/memory/": [],
        PLANS: [f"{PLANS}&listing={first + 500}"],
    }


def p95(work: Callable[[], object]) -> float:
    """Seconds that 19 visits of 20 do not exceed."""
    return sorted(_seconds(work) for _ in range(VISITS))[int(VISITS * 0.95) - 1]


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def tell(name: str, seconds: float, floor: float, against: str) -> None:
    print(f"{name:<62} {seconds * 1000:>9.1f} ms {seconds / floor:>7.2f} x {against}", flush=True)


def bench_pages() -> None:
    """On this database, then on PostgreSQL in a process of its own where it answers."""
    name = connection.creation.create_test_db(verbosity=0)
    try:
        with override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"]):
            _bench()
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)
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
    first = Listing.objects.order_by("pk").values_list("pk", flat=True)[0]
    client, most = Client(HTTP_HOST="127.0.0.1"), kept.MOST_PAGES
    client.get("/bare/")
    floor = p95(lambda: client.get("/bare/"))
    tell("p95 of a bare page", floor, floor, "itself")
    for address, others in pages(first).items():
        kept.MOST_PAGES = 0
        tell(
            f"p95 first visit after a change {address}",
            _seconds(lambda a=address: client.get(a)),
            floor,
            "a bare page",
        )
        made = p95(lambda a=address: client.get(a))
        tell(f"p95 made anew {address}", made, floor, "a bare page")
        for other in others:
            client.get(other)
            tell(f"  {other}", p95(lambda a=other: client.get(a)), made, "its first page")
        kept.MOST_PAGES = most
        client.get(address)
        tell(
            f"p95 within a minute {address}",
            p95(lambda a=address: client.get(a)),
            floor,
            "a bare page",
        )


if __name__ == "__main__":
    bench_pages()
