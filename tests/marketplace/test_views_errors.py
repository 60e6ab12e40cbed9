"""Requests that no page can read."""

from __future__ import annotations

import json

import pytest
from django.test import Client

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
