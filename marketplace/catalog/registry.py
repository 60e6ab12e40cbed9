"""The one list of adapters and of the sources that Linkproof knows from the start."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.adapters.skypilot import SkyPilotAdapter, has_listings
from marketplace.catalog.base import Adapter

Kind = Literal["page", "feed"]

ADAPTERS: Mapping[str, Callable[[Mapping[str, Any]], Adapter]] = {
    "page": lambda _profile: PageAdapter(),
    "skypilot": lambda _profile: SkyPilotAdapter(),
}

FEED_ROOT = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs"
FEED_MINUTES = 7 * 60
"""The feed's own README names a refresh every seven hours."""

SAMPLE_MINUTES = 60
LONGEST_HEADER = 64 * 1024


class UnknownAdapter(ValueError):
    """A source names an adapter that does not exist."""


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A source to be made. `url` of a bundled one is a path on the sample server.

    `enabled` says whether the scheduler visits it from the first start: nothing that needs the
    internet does. `file` is set for one that is read from a folder.
    """

    key: str
    provider: str
    provider_name: str
    kind: Kind
    adapter: str
    url: str
    interval_minutes: int
    bundled: bool = False
    enabled: bool = False
    file: Path | None = None

    def address(self, sample_server: str) -> str:
        """The full address; `sample_server` such as "http://127.0.0.1:8811" serves the bundled."""
        return f"{sample_server.rstrip('/')}{self.url}" if self.bundled else self.url


def adapter_for(name: str, profile: Mapping[str, Any] | None = None) -> Adapter:
    """The adapter of that name. `profile` is what a curator set for its source."""
    make = ADAPTERS.get(name)
    if make is None:
        known = ", ".join(sorted(ADAPTERS))
        raise UnknownAdapter(f"adapter: read {name!r}, expected one of {known}")
    return make(profile or {})


def _sample(slug: str, name: str, path: str) -> SourceDefinition:
    return SourceDefinition(
        key=f"sample-{slug}",
        provider=slug,
        provider_name=name,
        kind="page",
        adapter="page",
        url=path,
        interval_minutes=SAMPLE_MINUTES,
        bundled=True,
        enabled=True,
    )


def _feed(provider: str, name: str, version: str = "v8") -> SourceDefinition:
    return SourceDefinition(
        key=f"skypilot-{provider}",
        provider=provider,
        provider_name=name,
        kind="feed",
        adapter="skypilot",
        url=feed_url(provider, version),
        interval_minutes=FEED_MINUTES,
    )


def feed_url(provider: str, version: str = "v8") -> str:
    return f"{FEED_ROOT}/{version}/{provider}/vms.csv"


SAMPLES = (
    _sample("brackwater", "Brackwater Compute", "/brackwater/gpu-servers"),
    _sample("ostrava-forge", "Ostrava Forge", "/ostrava-forge/pricing"),
    _sample("tern-and-vale", "Tern & Vale", "/tern-and-vale/machines"),
    _sample("quarrylight", "Quarrylight", "/quarrylight/catalog"),
)
"""Our own pages with invented providers, so that a first run needs no internet."""

FEEDS = (
    _feed("cudo", "Cudo Compute"),
    _feed("hyperbolic", "Hyperbolic"),
    _feed("hyperstack", "Hyperstack"),
    _feed("jarvislabs", "Jarvislabs"),
    _feed("lambda", "Lambda"),
    _feed("lium", "Lium"),
    _feed("mithril", "Mithril"),
    _feed("nebius", "Nebius"),
    _feed("oci", "Oracle Cloud"),
    _feed("primeintellect", "Prime Intellect"),
    _feed("runpod", "RunPod"),
    _feed("seeweb", "Seeweb"),
    _feed("shadeform", "Shadeform"),
    _feed("simplepod", "SimplePod", "v7"),
    _feed("spheron", "Spheron"),
    _feed("vast", "Vast.ai"),
    _feed("verda", "Verda"),
    _feed("yotta", "Yotta"),
)
"""The public catalog of the SkyPilot project, off until a curator switches a file on."""

DEFINITIONS = (*SAMPLES, *FEEDS)


def definitions_for_folder(adapter: str, path: Path) -> tuple[SourceDefinition, ...]:
    """One source for each *.csv with listings in a folder, or for one such file, by name.

    "verda.538675a.csv" becomes `skypilot-verda-538675a` of the provider verda. Raises
    UnknownAdapter for one that reads no files, FileNotFoundError for a missing path.
    """
    if adapter != "skypilot":
        raise UnknownAdapter(f"adapter: read {adapter!r}, expected 'skypilot' for a folder")
    return tuple(_from_file(file) for file in _csv_files(path) if _holds_listings(file))


def files_without_listings(path: Path) -> tuple[Path, ...]:
    """The *.csv files that `definitions_for_folder` leaves out."""
    return tuple(file for file in _csv_files(path) if not _holds_listings(file))


def _csv_files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise FileNotFoundError(f"from: read {path}, expected a folder or a file")
    yield from [path] if path.is_file() else sorted(path.glob("*.csv"))


def _holds_listings(file: Path) -> bool:
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        return has_listings(next(csv.reader([text.readline(LONGEST_HEADER)]), ()))


def _from_file(file: Path) -> SourceDefinition:
    provider = _slug(file.name.split(".")[0])
    known = {feed.provider: feed for feed in FEEDS}.get(provider)
    return SourceDefinition(
        key=f"skypilot-{_slug(file.name.removesuffix('.csv'))}"[:80],
        provider=provider,
        provider_name=known.provider_name if known else provider,
        kind="feed",
        adapter="skypilot",
        url=known.url if known else feed_url(provider),
        interval_minutes=FEED_MINUTES,
        file=file,
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
