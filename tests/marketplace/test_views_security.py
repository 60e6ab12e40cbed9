"""What anyone may see, what every answer carries, and that reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.pages.catalog import make_listing, make_source, set_aside

pytestmark = pytest.mark.django_db

PUBLIC = [
    *("/", "/workloads/", "/listings/", "/status", "/accuracy", "/healthz", "/readyz"),
    *("/workloads/memory/", "/plans", "/learn", "/glossary"),
]


@pytest.fixture
def pages() -> list[str]:
    """Every public page, with one row behind each kind."""
    source = make_source()
    listing = make_listing(source)
    row = set_aside(source.runs.get())
    compared = f"/compare/?pick={listing.pk}:one&pick={listing.pk}:tp8"
    one = [listing.get_absolute_url(), f"/plans?listing={listing.pk}"]
    runs = [f"/evidence/listings/{listing.pk}/", f"/status/runs/{row.run_id}/"]
    return [*PUBLIC, *one, *runs, compared]


def own_routes() -> Iterator[URLPattern]:
    for entry in get_resolver().url_patterns:
        if isinstance(entry, URLPattern):
            yield entry
        else:
            assert isinstance(entry, URLResolver)
            assert str(entry.pattern) == "admin/"


def test_only_routes_of_this_list_are_public() -> None:
    opened = {
        route.name for route in own_routes() if not getattr(route.callback, "login_required", True)
    }
    assert opened == {
        "accuracy",
        "compare",
        "glossary",
        "learn",
        "plans",
        "saved",  # it sends strangers to the login itself, to lead them back to their answer
        "scaling",
        "shared",
        "shortlist",
        "workload",
        "workloads",
        "listings",
        "listing",
        "login",
        "status",
        "quarantine",
        "evidence_index",
        "healthz",
        "readyz",
        "status_json",
        "metrics",
    }


def test_every_other_route_sends_a_stranger_to_the_login(client: Client) -> None:
    admin = ("/admin/", "/admin/marketplace/listing/", "/admin/auth/user/1/change/")
    for address in (*admin, "/saved/"):
        response = client.get(address)
        assert response.status_code == 302
        assert response["Location"].startswith(("/admin/login/", "/login/"))


def test_public_pages_answer(client: Client, pages: list[str]) -> None:
    assert {address: client.get(address).status_code for address in pages} == dict.fromkeys(
        pages, 200
    )


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_pages_are_only_read(client: Client, pages: list[str], method: str) -> None:
    for address in pages:
        takes_text = address.startswith(("/workloads/", "/compare/", "/plans"))
        allowed = 422 if takes_text and method == "post" else 405
        assert getattr(client, method)(address).status_code == allowed


def dump() -> dict[str, list[tuple[object, ...]]]:
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
            found[table] = cursor.fetchall()
    return found


def test_reading_every_page_leaves_the_database_as_it_was(client: Client, pages: list[str]) -> None:
    before = dump()
    for address in pages:
        client.get(address)
        client.head(address)
    assert dump() == before


def test_every_page_carries_its_guards(client: Client, pages: list[str]) -> None:
    for address in [*pages, "/nowhere"]:
        headers = client.get(address).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


def test_no_page_holds_a_script_or_style_of_its_own(client: Client, pages: list[str]) -> None:
    for address in pages:
        page = client.get(address).content.decode()
        assert " style=" not in page
        assert "<style" not in page
        assert page.count("<script") == page.count('<script src="/static/')


@pytest.mark.parametrize(
    "address",
    [
        "/listings/../admin/x",
        "/listings/%2e%2e/%2e%2e/etc/passwd",
        "/static/../settings.py",
        "/static/%2e%2e/%2e%2e/manage.py",
        "//etc/passwd",
        "/listings/1/extra",
    ],
)
def test_a_path_that_climbs_leads_nowhere(client: Client, address: str) -> None:
    assert client.get(address).status_code in (302, 404)


def test_a_forged_host_is_refused(client: Client) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    forged = client.get("/", headers={"X-Forwarded-Host": "evil.example"})
    assert "evil.example" not in forged.content.decode()


def test_a_fault_on_our_side_shows_a_page_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret in the message")

    monkeypatch.setattr("marketplace.standings.standings", fail)
    monkeypatch.setattr("marketplace.views.status.standings", fail)
    response = Client(raise_request_exception=False).get("/status")
    assert response.status_code == 500
    page = response.content.decode()
    assert "Something on our side went wrong." in page
    assert "secret" not in page
