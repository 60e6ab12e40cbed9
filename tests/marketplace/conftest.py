from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from marketplace.catalog import registry
from marketplace.models import Provider, Source
from tests.marketplace.lines import LinesAdapter
from tests.marketplace.site import Site, page, serving

THREE = """a-8|eu|H100|8|80|20.00
b-8|eu|H100|8|80|21.00
c-1|us|L40S|1|48|1.10
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as running:
        yield running


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> LinesAdapter:
    """The adapter named "lines" while a test runs."""
    adapter = LinesAdapter()
    monkeypatch.setitem(registry.ADAPTERS, "lines", lambda _profile: adapter)  # type: ignore[arg-type]
    return adapter


@pytest.fixture
def source(db: None, site: Site, adapter: LinesAdapter, settings: Settings) -> Source:
    """A source of three machines on a real site that may be reached on loopback."""
    settings.EMBEDDED = True
    settings.SAMPLE_SERVER_ADDRESS = site.loopback
    site.answers["/list"] = page(THREE, "text/plain")
    return Source.objects.create(
        provider=Provider.objects.create(slug="acme", name="Acme"),
        key="acme-list",
        kind="page",
        adapter="lines",
        url=f"{site.url}/list",
        bundled=True,
    )
