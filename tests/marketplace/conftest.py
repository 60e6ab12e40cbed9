from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from pytest_django import Settings

from marketplace.catalog import registry, retries
from marketplace.models import Provider, Source
from marketplace.offers import forget_catalog
from marketplace.views import kept
from tests.marketplace.installation import Installation
from tests.marketplace.lines import LinesAdapter
from tests.marketplace.site import Site, page, serving
from tests.services import POSTGRES_URL, REDIS_URL

THREE = """a-8|eu|H100|8|80|20.00
b-8|eu|H100|8|80|21.00
c-1|us|L40S|1|48|1.10
"""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once; a test of the waiting itself passes its own pause."""
    monkeypatch.setattr(retries, "PAUSES", (0.0, 0.0))


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a database of its own, with keys that other tests had too."""
    monkeypatch.setattr(kept, "MOST_PAGES", 0)
    forget_catalog()


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


@pytest.fixture
def embedded(tmp_path: Path) -> Installation:
    """A fresh embedded installation with a migrated SQLite database."""
    installation = Installation({"LINKPROOF_DATA_DIR": str(tmp_path / "data")})
    installation.manage("migrate", "-v0")
    return installation


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Installation]:
    """A fresh services installation: a database and a queue of its own on the real servers."""
    name = f"linkproof_services_{os.getpid()}"
    with _own_database(name) as database, _own_queue(name):
        installation = Installation(
            {
                "DJANGO_SETTINGS_MODULE": "tests.marketplace.worker_settings",
                "DATABASE_URL": database,
                "REDIS_URL": REDIS_URL,
                "SECRET_KEY": "only for tests",
                "ALLOWED_HOSTS": "localhost",
                "LINKPROOF_QUEUE": name,
                "LINKPROOF_DATA_DIR": str(tmp_path / "data"),
            }
        )
        installation.manage("migrate", "-v0")
        yield installation


@contextmanager
def _own_database(name: str) -> Iterator[str]:
    with psycopg.connect(POSTGRES_URL, autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(POSTGRES_URL)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _own_queue(name: str) -> Iterator[None]:
    try:
        yield
    finally:
        with redis.Redis.from_url(REDIS_URL) as broker:
            for key in broker.scan_iter(f"*{name}*"):
                broker.delete(key)
