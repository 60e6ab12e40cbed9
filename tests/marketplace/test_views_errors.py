"""Requests that no page can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django_htmx.middleware import HtmxDetails

from marketplace import standings
from marketplace.views import errors
from tests.pages.catalog import make_source

pytestmark = pytest.mark.django_db


def test_fifty_megabytes_of_json_are_told_their_size(client: Client) -> None:
    config = json.dumps({"hidden_size": 64, "padding": "x" * 50_000_000})
    answer = client.post("/workloads/", {"workload": config})
    assert answer.status_code == 413
    page = answer.content.decode()
    assert "read 50,000," in page
    assert "expected at most 2,621,440" in page


def test_a_text_beyond_its_field_is_refused_there(client: Client) -> None:
    page = client.post("/workloads/", {"workload": "x" * 300_000}).content.decode()
    assert "at most 200000 characters (it has 300000)" in page


def test_a_strange_host_is_told_nothing_more(client: Client) -> None:
    answer = client.get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "no page of this site takes" in answer.content.decode()


@pytest.mark.parametrize("address", ["/nowhere", "/listings/999999/"])
def test_a_page_that_is_not_there_says_how_the_catalog_stands(client: Client, address: str) -> None:
    make_source()
    answer = client.get(address)
    assert answer.status_code == 404
    assert "State of the catalog" in answer.content.decode()


def test_a_form_without_its_secret_says_how_the_catalog_stands() -> None:
    make_source()
    answer = Client(enforce_csrf_checks=True).post("/workloads/", {"workload": "{}"})
    assert answer.status_code == 403
    assert "too old" in answer.content.decode()
    assert "State of the catalog" in answer.content.decode()


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [(errors.broken, 500, "on our side"), (partial(errors.not_open, exception=None), 403, "open")],
)
def test_what_fails_says_how_the_catalog_stands(
    rf: RequestFactory, said: Callable[[HttpRequest], HttpResponse], status: int, words: str
) -> None:
    make_source()
    request = rf.get("/")
    request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]  # set by its middleware
    answer = said(request)
    assert answer.status_code == status
    page = answer.content.decode()
    assert words in page
    assert "State of the catalog" in page


def test_a_broken_database_is_an_error_page_without_the_strip(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(now: datetime) -> standings.Strip:
        raise OperationalError("the disk is gone")

    monkeypatch.setattr(standings, "strip", fails)
    client.raise_request_exception = False
    answer = client.get("/status")
    assert answer.status_code == 500
    assert "Something on our side went wrong." in answer.content.decode()
    assert "State of the catalog" not in answer.content.decode()
