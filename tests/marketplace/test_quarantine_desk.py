"""A curator's word on single rows: accept, reject, read again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from marketplace import sync
from marketplace.models import Outbox, QuarantinedRow, Source
from tests.marketplace.conftest import THREE
from tests.marketplace.site import Site
from tests.marketplace.visiting import LATER, listing, serve, synced

QUEUE = "admin:marketplace_quarantinedrow_changelist"


@pytest.fixture
def desk(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("cora"))
    return client


def act(desk: Client, action: str, *rows: QuarantinedRow) -> str:
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    return desk.post(reverse(QUEUE), chosen, follow=True).content.decode()


@pytest.fixture
def two_jumps(source: Source, site: Site) -> Source:
    """Two prices that jumped, set aside one by one."""
    synced(source)
    serve(site, THREE.replace("20.00", "200.00").replace("21.00", "210.00"))
    assert synced(source, LATER).counts["quarantined"] == {"price_jumped": 2}
    return source


def test_a_row_that_is_accepted_is_published_and_its_neighbour_is_not(
    desk: Client, two_jumps: Source
) -> None:
    act(desk, "accept_rows", QuarantinedRow.objects.get(sku="a-8"))
    said = QuarantinedRow.objects.get(sku="a-8")
    assert (said.decision, said.decided_by) == ("accepted", "cora")
    assert said.decided_at is not None
    last = Outbox.objects.order_by("pk").last()
    assert last is not None
    assert (last.task, last.arguments) == ("reparse_source", [two_jumps.pk])
    run = sync.reparse(two_jumps.pk, now=LATER + timedelta(minutes=5))
    assert run is not None
    assert run.counts["quarantined"] == {"price_jumped": 1}
    assert listing("a-8").machine_hour_amount == Decimal(200)
    assert listing("b-8").machine_hour_amount == Decimal(21)


def test_a_row_that_is_rejected_stays_out_and_keeps_its_mark(
    desk: Client, two_jumps: Source, site: Site
) -> None:
    asked = Outbox.objects.count()
    act(desk, "reject_rows", QuarantinedRow.objects.get(sku="a-8"))
    assert Outbox.objects.count() == asked
    run = synced(two_jumps, LATER + timedelta(hours=1))
    marks = dict(run.quarantined.values_list("sku", "decision"))
    assert marks == {"a-8": "rejected", "b-8": ""}
    assert listing("a-8").machine_hour_amount == Decimal(20)


def test_a_word_holds_for_that_price_and_no_other(
    desk: Client, two_jumps: Source, site: Site
) -> None:
    act(desk, "accept_rows", QuarantinedRow.objects.get(sku="a-8"))
    serve(site, THREE.replace("20.00", "2000.00"))
    run = synced(two_jumps, LATER + timedelta(hours=1))
    assert run.quarantined.get().decision == ""
    assert listing("a-8").machine_hour_amount == Decimal(20)


def test_a_row_without_a_value_cannot_be_accepted(desk: Client, source: Source, site: Site) -> None:
    serve(site, THREE + "?d-8|eu\n")
    synced(source)
    said = act(desk, "accept_rows", QuarantinedRow.objects.get(sku="d-8"))
    assert "1 cannot be accepted" in said
    assert QuarantinedRow.objects.get(sku="d-8").decision == ""


def test_only_those_who_may_change_sources_decide(client: Client, two_jumps: Source) -> None:
    client.force_login(User.objects.create_user("vera", is_staff=True))
    row = QuarantinedRow.objects.get(sku="a-8")
    act(client, "accept_rows", row)
    row.refresh_from_db()
    assert row.decision == ""
