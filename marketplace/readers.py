"""The reader of a source, with what curators added to it, and the key that asking it needs."""

from __future__ import annotations

from collections.abc import Mapping

from marketplace import environment
from marketplace.catalog.base import Adapter
from marketplace.catalog.failures import Refused
from marketplace.catalog.fetch import Asking
from marketplace.catalog.registry import access_of, adapter_for
from marketplace.models import GpuAlias, Source


def reader_of(source: Source) -> Adapter:
    """The adapter with the profile of the source and the aliases of all. One query."""
    return adapter_for(source.adapter, source.profile, aliases())


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
