"""The one list of adapters and of the sources that Linkproof knows from the start."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from marketplace.catalog.adapters.hyperstack import hyperstack
from marketplace.catalog.adapters.imports import ImportAdapter
from marketplace.catalog.adapters.lambda_cloud import lambda_cloud
from marketplace.catalog.adapters.page import PageAdapter
from marketplace.catalog.adapters.prime_intellect import prime_intellect
from marketplace.catalog.adapters.runpod import QUERY as RUNPOD_QUERY
from marketplace.catalog.adapters.runpod import runpod
from marketplace.catalog.adapters.shadeform import shadeform
from marketplace.catalog.adapters.skypilot import SkyPilotAdapter, has_listings
from marketplace.catalog.adapters.vast import vast
from marketplace.catalog.base import Adapter
from marketplace.catalog.profile import NO_PROFILE, Profile, read_profile
from marketplace.catalog.reading.names import Aliases

Kind = Literal["page", "feed"]


@dataclass(frozen=True, slots=True)
class Curated:
    """What a curator gives a reader: the profile of its source, and spellings of GPU names."""

    profile: Profile = NO_PROFILE
    aliases: Aliases = field(default_factory=dict)


ADAPTERS: Mapping[str, Callable[[Curated], Adapter]] = {
    "page": lambda given: PageAdapter(given.profile, given.aliases),
    "import": lambda given: ImportAdapter(given.profile, given.aliases),
    "skypilot": lambda given: SkyPilotAdapter(given.aliases),
    "vast": lambda given: vast(given.aliases),
    "runpod": lambda given: runpod(given.aliases),
    "lambda": lambda given: lambda_cloud(given.aliases),
    "shadeform": lambda given: shadeform(given.aliases),
    "prime-intellect": lambda given: prime_intellect(given.aliases),
    "hyperstack": lambda given: hyperstack(given.aliases),
}

PROFILED = frozenset({"page", "import"})
"""Adapters that read a profile; the fields of the others are documented."""


@dataclass(frozen=True, slots=True)
class Access:
    """How an interface is asked. `variable` names the environment variable with its key, which
    goes into `header` after `prefix`; without the key the source stays off."""

    variable: str = ""
    header: str = "Authorization"
    prefix: str = "Bearer "
    method: str = "GET"
    body: bytes = b""

    def headers(self, key: str) -> dict[str, str]:
        kind = {"Content-Type": "application/json"} if self.body else {}
        return {**kind, self.header: f"{self.prefix}{key}"} if key else kind


ACCESS: Mapping[str, Access] = {
    "vast": Access(method="POST", body=b"{}"),
    "runpod": Access("LINKPROOF_RUNPOD_KEY", method="POST", body=RUNPOD_QUERY),
    "lambda": Access("LINKPROOF_LAMBDA_KEY"),
    "shadeform": Access("LINKPROOF_SHADEFORM_KEY", "X-API-KEY", ""),
    "prime-intellect": Access("LINKPROOF_PRIME_INTELLECT_KEY"),
    "hyperstack": Access("LINKPROOF_HYPERSTACK_KEY", "api_key", ""),
}
PLAIN_ACCESS = Access()

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
    profile: Mapping[str, Any] = field(default_factory=dict)

    def address(self, sample_server: str) -> str:
        """The full address; `sample_server` such as "http://127.0.0.1:8811" serves the bundled."""
        return f"{sample_server.rstrip('/')}{self.url}" if self.bundled else self.url


def adapter_for(
    name: str, profile: Mapping[str, Any] | None = None, aliases: Aliases | None = None
) -> Adapter:
    """The adapter of that name. `profile` is what a curator set for its source, as stored.

    Raises UnknownAdapter, or InvalidProfile for an adapter that reads one.
    """
    make = ADAPTERS.get(name)
    if make is None:
        known = ", ".join(sorted(ADAPTERS))
        raise UnknownAdapter(f"adapter: read {name!r}, expected one of {known}")
    meant = read_profile(profile or {}) if name in PROFILED else NO_PROFILE
    return make(Curated(meant, aliases or {}))


def access_of(adapter: str) -> Access:
    """How sources of an adapter are asked; a page is simply got."""
    return ACCESS.get(adapter, PLAIN_ACCESS)


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


def _api(provider: str, name: str, adapter: str, url: str, minutes: int = 60) -> SourceDefinition:
    return SourceDefinition(
        key=f"{adapter}-api",
        provider=provider,
        provider_name=name,
        kind="feed",
        adapter=adapter,
        url=url,
        interval_minutes=minutes,
    )


INTERFACES = (
    _api("vast", "Vast.ai", "vast", "https://console.vast.ai/api/v0/bundles/"),
    _api("runpod", "RunPod", "runpod", "https://api.runpod.io/graphql"),
    _api("lambda", "Lambda", "lambda", "https://cloud.lambda.ai/api/v1/instance-types"),
    _api("shadeform", "Shadeform", "shadeform", "https://api.shadeform.ai/v1/instances/types"),
    _api("primeintellect", "Prime Intellect", "prime-intellect",
         "https://api.primeintellect.ai/api/v1/availability/gpus"),
    _api("hyperstack", "Hyperstack", "hyperstack",
         "https://infrahub-api.nexgencloud.com/v1/core/flavors"),
)  # fmt: skip
"""The providers' own interfaces by their documented fields, off until a curator switches one on."""

HOSTNOT_PROFILE = {
    "labels": {
        "gpu count": "gpu_count", "number of gpus": "gpu_count", "vram": "vram", "cpu": "vcpu",
        "ram": "ram", "storage": "disk", "region": "region", "environment": "other",
        "capacity": "quantity",
    },
    "required": ["gpu_model", "gpu_count", "vram_bytes_per_gpu"],
}  # fmt: skip
"""The fields that the directory's articles name. Its markup was never seen, so no selector is set:
the general reader looks for rows, and pages that do not give these fields are not published."""

DIRECTORIES = (
    SourceDefinition(
        key="hostnot-gpus",
        provider="hostnot",
        provider_name="Hostnot GPU",
        kind="page",
        adapter="page",
        url="https://hostnotgpu.ae/gpus",
        interval_minutes=12 * 60,
        profile=HOSTNOT_PROFILE,
    ),
)
"""Marketplace pages of others, off until a curator has looked at the preview."""

DEFINITIONS = (*SAMPLES, *FEEDS, *INTERFACES, *DIRECTORIES)


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
