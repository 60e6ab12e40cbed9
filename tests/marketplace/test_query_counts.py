"""How many queries each page asks: the same however large the catalog, kept in a golden file.

`pytest --snapshot-update` writes the file anew.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from syrupy.assertion import SnapshotAssertion

from marketplace.models import Listing, SavedShortlist
from marketplace.offers import forget_catalog
from tests.pages.large_catalog import fill

pytestmark = pytest.mark.django_db

SHORTLIST = "/?workload=serve-llama-8b"


def addresses() -> dict[str, str]:
    """By name, so that the golden file does not depend on keys."""
    keys = Listing.objects.order_by("pk").values_list("pk", flat=True)[:2]
    one = f"/listings/{keys[0]}/"
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
        "status": "/status",
        "accuracy": "/accuracy",
        "learn": "/learn/",
        "glossary": "/glossary/",
        "saved": "/saved/",
        "saved, one": f"/saved/{SavedShortlist.objects.get().pk}/",
    }


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
    client.force_login(User.objects.create_user("ada"))
    fill(60, 40)
    client.post("/saved/", {"address": "workload=serve-llama-8b&limit=3"})
    small = counted(client)
    fill(240, 60, "more")
    assert counted(client) == small
    assert small == snapshot
