"""The reader of a source, with what curators added to it, and the key that asking it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import evaluator
from marketplace import environment
from marketplace.catalog.base import Adapter
from marketplace.catalog.failures import Refused
from marketplace.catalog.fetch import Asking
from marketplace.catalog.registry import access_of, adapter_for
from marketplace.models import GpuAlias, Source


def reader_of(source: Source) -> Adapter:
    """The adapter with the profile of the source and the aliases of all. One query."""
    return adapter_for(source.adapter, source.profile, aliases())


def salt_of(source: Source) -> str:
    """Stands for all that a reading depends on besides the bytes: our own code and its figures,
    what curators said of names, and the profile. One query."""
    given = json.dumps([source.adapter, source.profile, dict(aliases())], sort_keys=True)
    return hashlib.sha256(f"{code_version()} {given}".encode()).hexdigest()


@cache
def code_version() -> str:
    """Digest of the code that makes rows of pages, and of the figures of cards that it knows.

    A version number would have to be remembered at each change of a pattern.
    """
    ours = Path(__file__).parent
    told = hashlib.sha256((ours / "machines.py").read_bytes())
    for folder in (ours / "catalog", ours / "sync", Path(evaluator.__path__[0])):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".toml"):
                told.update(file.read_bytes())
    return told.hexdigest()


def aliases() -> Mapping[str, str]:
    """Spelling to model."""
    return dict(GpuAlias.objects.values_list("spelling", "model"))


def missing_key(adapter: str) -> str:
    """The environment variable that an interface needs and that is not set, "" if none is."""
    variable = access_of(adapter).variable
    return variable if variable and not environment.text(variable) else ""


def asking_of(source: Source) -> Asking:
    """Method, headers and body of a request. Raises Refused where the key is not set."""
    access = access_of(source.adapter)
    if variable := missing_key(source.adapter):
        raise Refused(f"{variable} is not set, and without a key this interface is not asked")
    key = environment.text(access.variable) if access.variable else ""
    return Asking(access.method, access.headers(key), access.body)
