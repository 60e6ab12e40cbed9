"""How many queries each page asks: the same however large the catalog, kept in a golden file.

`pytest --snapshot-update` writes the file anew.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from syrupy.assertion import SnapshotAssertion

from marketplace.evaluations import keep_workload, request_evaluation
from marketplace.models import Evaluation, Evidence, Listing, SavedShortlist
from marketplace.offers import forget_catalog
from tests.pages.catalog import make_listing, make_price, make_source, set_aside
from tests.pages.everything import DOCUMENT, look_at
from tests.pages.large_catalog import fill
from tests.pages.routes import names_of, own_pages

pytestmark = pytest.mark.django_db

SHORTLIST = "/?workload=serve-llama-8b"


def addresses() -> dict[str, str]:
    """By name, so that the golden file does not depend on keys."""
    saved = SavedShortlist.objects.order_by("pk")[0]
    keys = Listing.objects.filter(source__key="bulk-0").order_by("pk").values_list("pk", flat=True)
    one, seen = f"/listings/{keys[0]}/", Listing.objects.get(sku=SEEN)
    return {
        "shortlist": SHORTLIST,
        "shortlist, a later page": f"{SHORTLIST}&limit=5&after=6:1:one",
        "shortlist, offers filtered": f"{SHORTLIST}&place=eu&provider=bulk-1",
        "shortlist, rows filtered and sorted": f"{SHORTLIST}&hourly=%3E2&sort=time",
        "listings": "/listings/?size=10",
        "listings, a later page": f"/listings/?size=10&after={keys[1]}",
        "listings, filtered and sorted": "/listings/?size=10&region=eu&sort=seen",
        "listing": one,
        "listing, a plan": f"{one}?workload=train-llama-70b&plan=tp2",
        "compare": f"/compare/?pick={keys[0]}:one&pick={keys[1]}:one",
        "workload": "/workloads/memory/",
        "plans": "/plans/?workload=serve-llama-8b",
        "plans, of a listing": f"/plans/?workload=serve-llama-8b&listing={keys[0]}",
        "evidence": "/evidence/",
        "evidence, of a listing": f"/evidence/listings/{keys[0]}/",
        "evidence, of a listing looked at": f"/evidence/listings/{seen.pk}/",
        "evidence, one": Evidence.objects.order_by("pk")[0].get_absolute_url(),
        "evidence, to paste": f"/listings/{seen.pk}/evidence/",
        "listing, looked at": f"/listings/{seen.pk}/?plan=tp8",
        "plans, of a listing looked at": f"/plans/?workload=serve-llama-8b&listing={seen.pk}",
        "status": "/status",
        "accuracy": "/accuracy",
        "learn": "/learn/",
        "glossary": "/glossary/",
        "saved": "/saved/",
        "saved, one": f"/saved/{saved.pk}/",
        "saved, shared": f"/shared/{saved.token}/",
        "evaluation": f"/evaluations/{Evaluation.objects.order_by('pk')[0].pk}/",
        "rows set aside": f"/status/runs/{seen.source.runs.get().pk}/",
        "paste a workload": "/workloads/",
    }


SEEN = "looked-at"
OUTPUTS = ("8-gpus-nvswitch", "8-gpus-nvlink-pairs", "8-gpus-all-reduce")


def make_small(owner: User) -> None:
    """One row of each kind that a page may list."""
    fill(60, 40)
    seen = make_listing(make_source("crowd"), SEEN)
    make_listing(seen.source, "alike")
    look_at(seen, owner, OUTPUTS[0])
    set_aside(seen.source.runs.get())
    request_evaluation(keep_workload(DOCUMENT, owner))


def make_large(owner: User) -> None:
    """Several more of each, of other sources, machines and people among them."""
    fill(240, 60, "more")
    seen, bob = Listing.objects.get(sku=SEEN), User.objects.create_user("bob")
    for at, output in enumerate(OUTPUTS):
        look_at(seen, bob, output)
        look_at(make_listing(seen.source, f"another-{at}"), owner, output)
        set_aside(seen.source.runs.get(), f"aside-{at}")
        make_price(seen, Decimal(10 + at), purchase="reserved", term=f"{at} months")
        request_evaluation(keep_workload({**DOCUMENT, "concurrency": at + 2}, owner))
    look_at(seen, owner, OUTPUTS[1])
    look_at(seen, owner, OUTPUTS[2])


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as found:
        assert client.get(address).status_code == 200, address
    return len(found)


def counted(client: Client) -> dict[str, dict[str, int]]:
    """Of a first visit after a change of the catalog, and of one that follows it."""
    found = {}
    for name, address in addresses().items():
        forget_catalog()
        found[name] = {"first": queries(client, address), "later": queries(client, address)}
    return found


def test_no_page_asks_more_of_a_larger_catalog(client: Client, snapshot: SnapshotAssertion) -> None:
    ada = User.objects.create_user("ada")
    client.force_login(ada)
    make_small(ada)
    keep(client)
    SavedShortlist.objects.update(token="a" * 32)
    small = counted(client)
    make_large(ada)
    for _ in range(3):
        keep(client)
    assert counted(client) == small
    assert small == snapshot


def keep(client: Client) -> None:
    client.post("/saved/", {"address": "workload=serve-llama-8b&limit=3"})


def test_no_page_of_ours_is_left_out() -> None:
    make_small(ada := User.objects.create_user("ada"))
    SavedShortlist.objects.create(owner=ada, document={}, rows=[], token="a" * 32)
    assert own_pages() - names_of(addresses().values()) == set()
