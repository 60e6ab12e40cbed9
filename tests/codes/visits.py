"""How a price that changed oddly is set aside: lists brought one after another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from django.core.management import call_command

from evaluator.findings import Code, recall
from marketplace.models import QuarantinedRow
from tests.codes.pages import Made, Maker

PROFILE = (
    '{"fields": {"sku": "ref", "gpu": "Card", "gpu_count": "Count", "vram": "Memory",'
    ' "price": "Price"}, "currency": "USD", "basis": "machine", "unit": "hour"}'
)
FIRST = "ref;Card;Count;Memory;Price\nk-1;NVIDIA H100;8;80 GB;{price}\nk-2;NVIDIA L4;1;24 GB;0.70\n"


def bring(folder: Path, source: str, price: str, profile: str = PROFILE) -> None:
    """A list of one provider, as `import_listings` takes it."""
    (folder / "list.csv").write_text(FIRST.format(price=price), "utf-8")
    (folder / "map.json").write_text(profile, "utf-8")
    call_command(
        "import_listings",
        source,
        folder / "list.csv",
        provider=source,
        mapping=folder / "map.json",
        as_json=True,
        stdout=StringIO(),
    )


def _set_aside(*lists: tuple[str, str, str]) -> Made:
    with TemporaryDirectory() as folder:
        for source, price, profile in lists:
            bring(Path(folder), source, price, profile)
    return tuple(recall(row.finding) for row in QuarantinedRow.objects.all())


PER_GPU = PROFILE.replace("machine", "gpu")
OTHERS = [(f"provider-{number}", "18.00", PROFILE) for number in range(5)]

VISITS: Mapping[Code, Maker] = {
    Code.PRICE_JUMPED: partial(
        _set_aside, ("acme-list", "18.40", PROFILE), ("acme-list", "184.0", PROFILE)
    ),
    Code.PRICE_TERMS_CHANGED: partial(
        _set_aside, ("acme-list", "18.40", PROFILE), ("acme-list", "18.50", PER_GPU)
    ),
    Code.PRICE_OUTLYING: partial(_set_aside, *OTHERS, ("acme-list", "1840", PROFILE)),
}
