"""A walk over every page that a link leads to: hostile names stay text, and nothing is broken."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from urllib.parse import urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import User
from django.test import Client

from tests.pages.catalog import make_listing, make_source
from tests.pages.hostile import LONG, complaints, make_hostile_catalog

pytestmark = pytest.mark.django_db

MOST = 400
LEAVING = ("/logout/", "/admin/logout/", "/static/", "/admin/jsi18n/")
KEYS = re.compile(r"\d+")
OF_EACH_SHAPE = 2
STARTS = [
    "/",
    "/admin/",
    "/workloads/",
    "/saved/",
    f"/shared/{'a' * 32}/",
    "/?workload=train-llama-70b",
    "/?place=eu&show=provider&show=place&show=availability",
    "/listings/?gone=shown&show=vcpus",
    "/nowhere",
]


@pytest.fixture
def curator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("cora"))
    return client


def walked(client: Client) -> dict[str, str]:
    """Each page that a link leads to, by its address: its markup."""
    waiting, seen, shapes = deque(STARTS), dict[str, str](), Counter[str]()
    while waiting and len(seen) < MOST:
        address = waiting.popleft()
        if address in seen:
            continue
        response = client.get(address)
        assert response.status_code in (200, 302, 404, 422), (address, response.status_code)
        if not response.get("Content-Type", "").startswith("text/html"):
            continue
        seen[address] = response.content.decode()
        waiting += [link for link in links(address, seen[address]) if fresh(link, shapes)]
    return seen


def links(address: str, markup: str) -> list[str]:
    found = (tag["href"] for tag in BeautifulSoup(markup, "lxml").select("a[href]"))
    whole = (urlsplit(urljoin(f"http://testserver{address}", str(href))) for href in found)
    return [
        f"{one.path}?{one.query}".removesuffix("?")
        for one in whole
        if one.netloc == "testserver" and not one.path.startswith(LEAVING)
    ]


def fresh(link: str, shapes: Counter[str]) -> bool:
    """A few addresses of each shape: the same path but for keys, the same names in its query."""
    parts = urlsplit(link)
    if parts.path.startswith("/admin/") and parts.query:
        return False
    names = sorted(part.partition("=")[0] for part in parts.query.split("&"))
    shape = f"{KEYS.sub('N', parts.path)}?{'&'.join(names)}"
    shapes[shape] += 1
    return shapes[shape] <= OF_EACH_SHAPE


def test_hostile_names_are_text_on_every_page_and_admin_list(curator: Client) -> None:
    make_hostile_catalog(User.objects.get())
    pages = walked(curator)
    found = {address: said for address, page in pages.items() if (said := complaints(page))}
    assert found == {}
    assert sum("planted" in page for page in pages.values()) > 20
    paths = {urlsplit(address).path for address in pages}
    assert {
        "/",
        "/listings/",
        "/status",
        "/saved/",
        "/plans",
        "/admin/marketplace/listing/",
    } <= paths
    assert len(pages) > 60


def test_a_pasted_workload_with_a_hostile_name_is_text(client: Client) -> None:
    make_listing(make_source())
    name = LONG[:5000]
    model = {"preset": "llama-3.1-8b"}
    text = json.dumps({"task": "serve", "name": name, "model": model})
    for address, more in (
        ("/workloads/", {}),
        ("/compare/", {"pick": ["1:one", "1:tp8"]}),
        ("/workloads/memory/", {}),
        ("/plans/", {}),
    ):
        page = client.post(address, {"workload": text, **more}).content.decode()
        assert complaints(page) == []


@pytest.mark.parametrize("key", ["machine", "place", "hourly", "gpu", "workload", "sort", "after"])
def test_a_hostile_address_is_text(client: Client, key: str) -> None:
    make_listing(make_source())
    for path in ("/", "/listings/", "/compare/", "/plans/", "/workloads/memory/"):
        response = client.get(path, {key: LONG[:4000], LONG[:200]: "1"})
        assert response.status_code in (200, 400, 404, 422)
        assert complaints(response.content.decode()) == []


def test_an_export_opened_in_a_browser_is_no_page(curator: Client) -> None:
    make_hostile_catalog(User.objects.get())
    fields = {
        "format": "0",
        "listingresource_id": "on",
        "listingresource_title": "on",
        "resource": "0",
    }
    response = curator.post("/admin/marketplace/listing/export/", fields)
    assert "planted" in response.content.decode()
    assert response["Content-Type"].startswith("text/csv")
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
