"""What a machine must offer for a test: skipped with a word, or failed when REQUIRE_ALL=1."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.services import SHARED, missing_parts

# A busy machine is no defect: examples are counted, not timed.
settings.register_profile("linkproof", deadline=None)
settings.load_profile("linkproof")

REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"


@cache
def absent() -> dict[str, str]:
    return missing_parts()


def pytest_runtest_setup(item: pytest.Item) -> None:
    lacking = [f"needs {word}" for mark, word in absent().items() if item.get_closest_marker(mark)]
    if lacking and REQUIRE_ALL:
        pytest.fail("; ".join(lacking), pytrace=False)
    if lacking:
        pytest.skip("; ".join(lacking))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only the trials of some faults, when `manage.py fault_board --only` asks for them."""
    only = set(os.environ.get("LINKPROOF_TRIALS_ONLY", "").split(",")) - {""}
    if only:
        items[:] = [item for item in items if only & set(faults_of(item))]


def faults_of(item: pytest.Item) -> list[str]:
    return [number for mark in item.iter_markers("fault") for number in mark.args]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """One line for each trial of a fault, in the file that `manage.py fault_board` names."""
    report = yield
    log = os.environ.get("LINKPROOF_TRIALS")
    ended = report.when == "call" or report.outcome != "passed"
    if log and ended and (faults := faults_of(item)):
        trial = {"name": item.nodeid, "outcome": report.outcome, "faults": faults}
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(trial) + "\n")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Right above the closing line: what did not run here, and what would enable it."""
    skipped = terminalreporter.stats.get("skipped", [])
    for mark, remedy in absent().items():
        count = sum(mark in report.keywords for report in skipped)
        if count:
            terminalreporter.write_line(f"not run here: {count} {mark} tests. They need {remedy}.")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The case files outside the repository. A test that asks for it is marked `shared`."""
    return SHARED.resolve()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file or a name of its own per run: threads meet a real database, and runs do not meet."""
    from django.db import connections

    for connection in connections.all():
        test = connection.settings_dict["TEST"]
        if connection.vendor == "sqlite":
            # The name that the settings give, so that a process with this folder as its data
            # folder meets the same database.
            test["NAME"] = str(tmp_path_factory.mktemp("data") / "linkproof.sqlite3")
        else:
            test["NAME"] = f"test_linkproof_{os.getpid()}"
