"""A database of its own for one bench, which leaves the connection as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection


@contextmanager
def scratch_database(file: Path | None = None) -> Iterator[None]:
    """With tables and without rows, as the tests have it. On SQLite in memory, or in `file` where
    several processes must meet it.

    The earlier name is given back: Django never closes a connection whose name is that of a
    database in memory, so the next bench would go on writing to this one.
    """
    test, before = connection.settings_dict["TEST"], connection.settings_dict["NAME"]
    named = test["NAME"]
    if file and connection.vendor == "sqlite":
        test["NAME"] = str(file)
    connection.creation.create_test_db(verbosity=0)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)
        connection.close()
        test["NAME"] = named
