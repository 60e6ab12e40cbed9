"""gpuhunt's own `query` over given offers, read by its own loader from its own file format.

Optional: needs the `bench` extra. One question is asked: so many GPUs, so much memory, on demand.
"""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evaluator.offers import Offering
from evaluator.prices import Purchase
from tests.market import GB, Market

PROVIDERS = ("aws", "azure", "gcp", "lambdalabs", "runpod", "oci", "nebius", "verda", "cloudrift")
"""Names of providers that gpuhunt reads from a file; it knows no others."""
VERSION = "20261130"


def is_installed() -> bool:
    return find_spec("gpuhunt") is not None


def peer_query(market: Market, folder: Path) -> Callable[[], list[Any]]:
    """Loads the market as gpuhunt does, and returns its query: 8 GPUs of 80 GB, on demand."""
    _write(market, folder)
    os.environ["GPUHUNT_CATALOG_URL"] = folder.as_uri()
    gpuhunt = import_module("gpuhunt")
    catalog = gpuhunt.Catalog(balance_resources=False, auto_reload=False)
    catalog.load()
    return lambda: list(
        catalog.query(min_gpu_count=8, max_gpu_count=8, min_gpu_memory=80, spot=False)
    )


def _write(market: Market, folder: Path) -> None:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in PROVIDERS}
    for offer in market.offers:
        rows[PROVIDERS[int(offer.provider.split()[-1])]].append(_row(market, offer))
    for provider, held in rows.items():
        _archive(folder / provider, provider, held)


def _row(market: Market, offer: Offering) -> dict[str, Any]:
    machine, (quote,) = market.machines[offer.configuration], offer.quotes
    (spec,) = machine.specs
    return {
        "instance_name": offer.title,
        "location": offer.region,
        "price": quote.amount,
        "cpu": machine.vcpus.value,
        "memory": (machine.ram_bytes.value or 0) / GB,
        "gpu_count": machine.gpu_count.value,
        "gpu_name": spec.model,
        "gpu_memory": spec.label_gb,
        "spot": quote.purchase is Purchase.SPOT,
        "disk_size": (machine.local_storage_bytes.value or 0) / GB,
        "gpu_vendor": VENDORS.get(spec.vendor.lower(), "nvidia"),
        "flags": "",
        "cpu_arch": "x86",
        "provider_data": "{}",
    }


VENDORS = {"amd": "amd", "intel": "intel"}


def _archive(folder: Path, provider: str, rows: list[dict[str, Any]]) -> None:
    """One provider as gpuhunt publishes it: the version, and a CSV file in a ZIP archive."""
    (folder / VERSION).mkdir(parents=True)
    (folder / "version").write_text(VERSION)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    with zipfile.ZipFile(folder / VERSION / "catalog.zip", "w") as archive:
        archive.writestr(f"{provider}.csv", text.getvalue())


COLUMNS = (
    "instance_name",
    "location",
    "price",
    "cpu",
    "memory",
    "gpu_count",
    "gpu_name",
    "gpu_memory",
    "spot",
    "disk_size",
    "gpu_vendor",
    "flags",
    "cpu_arch",
    "provider_data",
)
"""Columns of gpuhunt's catalog format, version 2."""
