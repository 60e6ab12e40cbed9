"""Servers that some tests need, where they are looked for, and what would bring them."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

POSTGRES_URL = os.environ.get("POSTGRES_TEST_URL", "postgres://postgres@127.0.0.1:5432/postgres")
REDIS_URL = os.environ.get("REDIS_TEST_URL", "redis://127.0.0.1:6379/9")
SHARED = Path(os.environ.get("LINKPROOF_SHARED", "../shared"))


def place(url: str) -> str:
    """Host and port of a URL, without the password that it may hold."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}"


def answers(url: str) -> bool:
    """Whether something listens at the host and port of a URL."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=2):
            return True
    except OSError:
        return False


def postgres_answers() -> bool:
    return answers(POSTGRES_URL)


def chromium() -> str | None:
    """Path of Debian's Chromium, or None."""
    return shutil.which("chromium")


def missing_parts() -> dict[str, str]:
    """Marker to what would enable its tests, for each part that this machine lacks."""
    remedies = {
        "postgres": (postgres_answers(), f"a PostgreSQL server at {place(POSTGRES_URL)}"),
        "redis": (answers(REDIS_URL), f"a Redis server at {place(REDIS_URL)}"),
        "browser": (chromium() is not None, "Chromium (`apt-get install -y chromium`)"),
        "shared": (
            (SHARED / "cases").is_dir(),
            "the case files; name their folder in LINKPROOF_SHARED",
        ),
    }
    return {marker: remedy for marker, (there, remedy) in remedies.items() if not there}
