"""Mistakes in the environment, reported with an id and a hint before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.checks import CheckMessage, Error, Tags, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured

TAG = "environment"


@register(TAG)
def check_environment(
    app_configs: Sequence[Any] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Everything that would make a start unsafe or half-made."""
    found = [*_services(), *_data_dir(), *_secret()]
    return found if settings.EMBEDDED else [*found, *_exposed()]


@register(Tags.admin)
def check_admin(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Pages of the admin are looked for with the addresses; Django checks those it has found."""
    admin.autodiscover()
    return admin.site.check(app_configs)


def refuse_unsafe_start() -> None:
    """Raises ImproperlyConfigured. For doors that Django opens without its checks: WSGI, Celery."""
    errors = [message for message in run_checks(tags=[TAG]) if message.is_serious()]
    if errors:
        raise ImproperlyConfigured("\n".join(map(str, errors)))


def _services() -> Iterator[CheckMessage]:
    if settings.DATABASE_URL and not settings.REDIS_URL:
        yield Error(
            "DATABASE_URL is set and REDIS_URL is not.",
            hint="Set both for services mode, or neither for embedded mode.",
            id="linkproof.E004",
        )
    if settings.REDIS_URL and not settings.DATABASE_URL:
        yield Error(
            "REDIS_URL is set and DATABASE_URL is not.",
            hint="Set both for services mode, or neither for embedded mode.",
            id="linkproof.E005",
        )


def _data_dir() -> Iterator[CheckMessage]:
    folder = settings.DATA_DIR
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return
    except OSError:
        yield Error(
            f"The data folder {folder} cannot be written to.",
            hint="Name another one in LINKPROOF_DATA_DIR, or give this user the right to write.",
            id="linkproof.E006",
        )


def _secret() -> Iterator[CheckMessage]:
    if settings.SECRET_KEY == settings.NO_SECRET_KEY:
        yield Error(
            "SECRET_KEY is not set.",
            hint="Set SECRET_KEY, or SECRET_KEY_FILE with the path of a file that holds it.",
            id="linkproof.E001",
        )


def _exposed() -> Iterator[CheckMessage]:
    """What only matters once others can reach the site."""
    if settings.DEBUG:
        yield Error(
            "DEBUG is on in services mode.",
            hint="Unset DEBUG: its error pages show settings and source to anyone.",
            id="linkproof.E002",
        )
    if not settings.ALLOWED_HOSTS:
        yield Error(
            "ALLOWED_HOSTS is empty, so every request would be refused.",
            hint="Set ALLOWED_HOSTS to the names of the site, separated by commas.",
            id="linkproof.E003",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield Warning(
            "ALLOWED_HOSTS admits any name.",
            hint="Name the hosts, or a forged Host header ends up in links.",
            id="linkproof.W001",
        )
