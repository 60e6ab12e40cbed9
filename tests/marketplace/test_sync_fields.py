"""Cards and answers in JSON whose fields took other names are held, as moved columns are."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from marketplace import sync
from marketplace.models import Listing, Source
from tests.marketplace.site import Site, page
from tests.marketplace.visiting import LATER, published, synced


def cards(*labels: str, extra: str = "") -> str:
    gpus = (("A-8", "8x H100 80GB", "20.00"), ("B-1", "1x L40S 48GB", "1.10"))
    return "".join(
        [
            "<html><body><h1>Servers</h1>",
            *(_card(sku, gpu, price, labels, extra) for sku, gpu, price in gpus),
            "</body></html>",
        ]
    )


def _card(sku: str, gpu: str, price: str, labels: tuple[str, ...], extra: str) -> str:
    values = (f"${price}", "Oslo", "64")
    pairs = "".join(
        f"<dt>{label}</dt><dd>{value}</dd>" for label, value in zip(labels, values, strict=True)
    )
    return f'<div class="card" data-sku="{sku}"><h3>{gpu}</h3><dl>{pairs}{extra}</dl></div>'


def of_cards(source: Source, site: Site) -> None:
    source.adapter = "page"
    source.save()
    site.answers["/list"] = page(cards("Price per hour", "Region", "vCPU"))
    assert synced(source).outcome == "published"


@pytest.mark.fault("F22")
def test_a_card_whose_price_took_another_name_is_held(source: Source, site: Site) -> None:
    of_cards(source, site)
    before = published()
    site.answers["/list"] = page(cards("Price per month", "Region", "vCPU"))
    run = synced(source, LATER)
    assert (run.outcome, run.reason[:19]) == ("held", "The fields changed:")
    assert "price per month" in run.reason
    assert published() == before
    accepted = sync.reparse(source.pk, accept=True, now=LATER + timedelta(minutes=1))
    assert accepted is not None
    assert accepted.outcome == "published"
    assert synced(source, LATER + timedelta(hours=1)).outcome == "unchanged"


def test_a_card_that_says_more_is_published(source: Source, site: Site) -> None:
    of_cards(source, site)
    more = "<dt>Storage</dt><dd>2 TB NVMe</dd>"
    site.answers["/list"] = page(cards("Price per hour", "Region", "vCPU", extra=more))
    assert synced(source, LATER).outcome == "published"


def offers(price: str) -> str:
    def offer(number: int) -> dict[str, object]:
        gpu = {"gpu_name": "H100 SXM", "num_gpus": 8, "gpu_ram": 81559, "gpu_frac": 1.0}
        return {"machine_id": number, **gpu, price: 16.0 + number, "rentable": True}

    return json.dumps({"offers": [offer(number) for number in range(4)]})


@pytest.mark.fault("F22")
def test_an_answer_whose_key_took_another_name_is_held(source: Source, site: Site) -> None:
    source.adapter = "vast"
    source.save()
    site.answers["/list"] = page(offers("dph_base"), "application/json")
    assert synced(source).outcome == "published"
    before = published()
    site.answers["/list"] = page(offers("dph_month"), "application/json")
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == (
        "held",
        "The fields changed: dph_base gone, dph_month new.",
    )
    assert published() == before
    assert Listing.objects.filter(gone_at=None).count() == 4
