"""A walk over every page that a link leads to: hostile names stay text, and nothing is broken."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from html import escape
from io import StringIO
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db.models import Model
from django.test import Client

from marketplace import sync
from marketplace.models import Evaluation, Evidence, Listing
from tests.pages.catalog import make_listing, make_source
from tests.pages.everything import SAMPLES
from tests.pages.hostile import LONG, MARKUP, TURNED, complaints, make_hostile_catalog
from tests.pages.routes import names_of, own_pages

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
    "/?show=provider&show=place",
    "/listings/?gone=shown&show=vcpus",
    "/nowhere",
]


@pytest.fixture
def curator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("cora"))
    return client


def walked(client: Client, *more: str) -> dict[str, str]:
    """Each page and picture that a link leads to, by its address: its markup."""
    waiting, seen, shapes = deque([*STARTS, *more]), dict[str, str](), Counter[str]()
    while waiting and len(seen) < MOST:
        address = waiting.popleft()
        if address in seen:
            continue
        response = client.get(address)
        assert response.status_code in (200, 302, 404, 422), (address, response.status_code)
        if not response.get("Content-Type", "").startswith(("text/html", "image/svg+xml")):
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
    evil = make_hostile_catalog(User.objects.get())
    pages = walked(
        curator,
        *(f"/status/runs/{run.pk}/" for run in evil.source.runs.all()),
        *(f"/evaluations/{job.pk}/" for job in Evaluation.objects.all()),
        *(one.get_absolute_url() for one in Evidence.objects.all()),
        f"/compare/?pick={evil.pk}:one&pick={evil.pk}:tp8",
        f"/plans?listing={evil.pk}&plan=tp8&picture=diagram",
        f"{evil.get_absolute_url()}?picture=history",
    )
    found = {address: said for address, page in pages.items() if (said := complaints(page))}
    assert found == {}
    assert own_pages() - names_of(pages) == set()
    tables = {f"admin:marketplace_{one._meta.model_name}_changelist" for one in admin_tables()}
    assert tables - names_of(pages) == set()
    told = {address for address, page in pages.items() if "onerror" in page}
    silent = {name for name in tables if name not in names_of(told)}
    assert silent == {f"admin:marketplace_{name}_changelist" for name in SAYS_NO_NAME}
    assert {page.startswith("<svg") for page in pages.values()} == {True, False}


AS_CODE = " " * 4
"""Markdown shows lines that stand in this far letter by letter."""
SAYS_NO_NAME = {"verdict"}
"""Its rows are fingerprints."""


def admin_tables() -> list[type[Model]]:
    return [model for model in admin.site._registry if model._meta.app_label == "marketplace"]


@pytest.mark.parametrize("address", ["/login/?next=", "/nowhere/", "/evaluations/?"])
def test_who_is_not_let_in_repeats_nothing(client: Client, address: str) -> None:
    page = client.get(address + quote(MARKUP), follow=True).content.decode()
    assert complaints(page) == []


def test_a_door_that_is_refused_says_the_name_as_text(client: Client) -> None:
    page = client.post("/login/", {"username": MARKUP, "password": "x", "next": MARKUP})
    assert "planted" in page.content.decode()
    assert complaints(page.content.decode()) == []


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


PAGE = """<html><body>
<div class="plan" id="{name}"><h2>8x {name} H100 80GB</h2><p>$12 per machine per hour</p></div>
<div class="plan" id="twice {name}"><h2>2x H100 80GB</h2><p>$4.00 per machine per hour</p></div>
<div class="plan" id="twice {name}"><h2>2x H100 80GB</h2><p>$5.00 per machine per hour</p></div>
</body></html>"""


def test_a_hostile_page_at_the_desk_is_text(curator: Client, tmp_path: Path) -> None:
    """A profile's preview, and what an import would change."""
    source, file = make_source("evil", adapter="page"), tmp_path / "list.html"
    file.write_text(PAGE.format(name=escape(MARKUP[:150])), "utf-8")
    sync.sync_file(source.pk, file)
    desk = f"/admin/marketplace/source/{source.pk}"
    shown = curator.get(f"{desk}/profile/").content.decode()
    Listing.objects.all().delete()
    uploaded = SimpleUploadedFile("list.html", file.read_bytes())
    changes = curator.post(f"{desk}/import/", {"file": uploaded}).content.decode()
    for page in (shown, changes):
        assert "&lt;img src=x" in page
        assert complaints(page) == []


def test_a_hostile_paste_is_text(curator: Client) -> None:
    row = make_hostile_catalog(User.objects.get())
    text = (SAMPLES / "8-gpus-nvlink-pairs.txt").read_text("utf-8") + f"\n{LONG}\n"
    page = curator.post(f"{row.get_absolute_url()}evidence/", {"text": text, "ran_by": "renter"})
    assert "&lt;img src=x" in page.content.decode()
    assert complaints(page.content.decode()) == []


@pytest.mark.parametrize("key", ["machine", "place", "hourly", "gpu", "workload", "sort", "after"])
def test_a_hostile_address_is_text(client: Client, key: str) -> None:
    make_listing(make_source())
    for path in ("/", "/listings/", "/compare/", "/plans/", "/workloads/memory/"):
        response = client.get(path, {key: LONG[:4000], LONG[:200]: "1"})
        assert response.status_code in (200, 400, 404, 422)
        assert complaints(response.content.decode()) == []


@pytest.mark.parametrize(("number", "kind"), [("0", "text/csv"), ("1", "application/json")])
def test_an_export_opened_in_a_browser_is_no_page(curator: Client, number: str, kind: str) -> None:
    make_hostile_catalog(User.objects.get())
    fields = {
        "format": number,
        "listingresource_id": "on",
        "listingresource_title": "on",
        "resource": "0",
    }
    response = curator.post("/admin/marketplace/listing/export/", fields)
    exported = response.content.decode()
    assert "planted" in exported
    assert TURNED not in exported
    assert response["Content-Type"].startswith(kind)
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("shape", ["table", "json", "csv", "md"])
def test_a_hostile_catalog_is_printed_as_text(shape: str) -> None:
    make_hostile_catalog(User.objects.create_user("ada"))
    out = StringIO()
    call_command("shortlist", "serve-llama-8b", "--format", shape, stdout=out, stderr=StringIO())
    printed = out.getvalue()
    assert "planted" in printed
    assert TURNED not in printed
    if shape == "md":
        lines = [line for line in printed.splitlines() if not line.startswith(AS_CODE)]
        assert [line for line in lines if re.search(r"(?<!\\)[<\[`]", line)] == []
    if shape == "csv":
        cells = [cell for row in csv.reader(StringIO(printed)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    if shape == "json":
        assert json.loads(printed)["rows"]
