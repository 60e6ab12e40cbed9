"""Stored pages read again by what is known now: tried first, then done."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from marketplace import sync
from marketplace.models import GpuAlias, Source, SyncRun
from tests.marketplace.site import Site, page
from tests.marketplace.visiting import published, synced

PAGE = """<html><body><div class="plan" id="z8"><h2>8x Zephyr 9000 80GB GPU</h2>
<p>$12.00 per machine per hour</p></div><div class="plan" id="h8"><h2>8x NVIDIA H100 80GB</h2>
<p>$19.20 per machine per hour</p></div></body></html>"""


@pytest.fixture
def shop(source: Source, site: Site) -> Source:
    site.answers["/list"] = page(PAGE)
    source.adapter = "page"
    source.save()
    synced(source)
    return source


def test_a_rehearsal_of_stored_pages_shows_the_change_and_writes_nothing(
    shop: Source, site: Site
) -> None:
    GpuAlias.objects.create(spelling="Zephyr 9000", model="H100")
    before, asked, runs = published(), len(site.asked), SyncRun.objects.count()
    run = sync.rehearse_stored(shop.pk)
    assert run is not None
    assert run.drift["changed"] == ["z8"]
    assert (published(), len(site.asked), SyncRun.objects.count()) == (before, asked, runs)


def test_the_command_replays_without_the_network(shop: Source, site: Site) -> None:
    GpuAlias.objects.create(spelling="Zephyr 9000", model="H100")
    asked, out = len(site.asked), StringIO()
    call_command("sync_catalog", shop.key, stored=True, stdout=out)
    assert len(site.asked) == asked
    assert " published " in out.getvalue()
    assert shop.listings.get(sku="z8").gpu_model == "H100"


def test_a_file_and_the_store_at_once_are_a_mistake(shop: Source) -> None:
    with pytest.raises(CommandError, match="expected one"):
        call_command("sync_catalog", shop.key, stored=True, path=__file__)


def test_nothing_stored_is_nothing_to_rehearse(source: Source) -> None:
    assert sync.rehearse_stored(source.pk) is None
