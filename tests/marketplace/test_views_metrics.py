from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace import outbox
from tests.pages.catalog import make_listing, make_run, make_source, set_aside

pytestmark = pytest.mark.django_db

LINE = re.compile(r"(# (HELP|TYPE) .+|[a-z_]+(\{([a-z_]+=\"[^\"\n]*\",?)+\})? [0-9.]+)")


def test_the_state_of_each_source_is_there_for_machines(client: Client) -> None:
    source = make_source()
    make_listing(source)
    make_run(source, outcome="held", reason="9 of 10 listings are missing.")
    outbox.enqueue("sync_source", source.pk)
    said = client.get("/api/v1/status").json()
    (one,) = said["sources"]
    assert (one["source"], one["state"], one["listings"]) == ("ridge", "held", 1)
    assert one["run"]["reason"] == "9 of 10 listings are missing."
    assert 3500 < one["age_seconds"] < 3700
    assert said["outbox_waiting"] == 1


def test_a_source_that_was_never_read_has_no_age(client: Client) -> None:
    make_source(last_success_at=None)
    assert client.get("/api/v1/status").json()["sources"][0]["age_seconds"] is None
    assert "linkproof_source_age_seconds{" not in client.get("/metrics").content.decode()


def test_every_line_for_prometheus_has_its_form(client: Client) -> None:
    set_aside(make_run(make_source()), "one")
    response = client.get("/metrics")
    assert response["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = response.content.decode().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    assert 'linkproof_source_state{source="ridge",state="fresh"} 1' in lines
    assert 'linkproof_source_set_aside{source="ridge",reason="duplicate_key"} 1' in lines
    assert "linkproof_outbox_waiting 0" in lines


@pytest.mark.parametrize("address", ["/metrics", "/api/v1/status"])
def test_machines_cost_as_many_queries_however_many_sources(client: Client, address: str) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(address)
        return len(found)

    make_source("first")
    few = count()
    for number in range(9):
        set_aside(make_run(make_source(f"s{number}")))
    assert count() == few <= 6
