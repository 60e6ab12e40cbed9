"""Runs the tests that carry a fault's number, in a process of their own, and collects them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from marketplace.faults.board import Trial

ROOT = Path(__file__).parents[2]
LOG = "LINKPROOF_TRIALS"
"""Names the file to which the tests write one line of JSON each."""


NOTHING_COLLECTED = 5
"""How pytest ends when no test carries the number."""


class NoTrials(RuntimeError):
    """The tests could not be run: they are not part of an installed package."""


def run_trials(
    only: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> list[Trial]:
    """Every trial of the faults, or of those of `only`. Takes minutes.

    `environment` chooses database and broker as everywhere else.
    """
    with TemporaryDirectory() as folder:
        log = Path(folder) / "trials.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "fault", "tests/marketplace"]
        variables = {**os.environ, **(environment or {}), LOG: str(log)}
        variables["LINKPROOF_TRIALS_ONLY"] = ",".join(only)
        done = subprocess.run(  # noqa: S603  our own tests
            command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode == NOTHING_COLLECTED:
            return []
        if not log.exists():
            raise NoTrials(done.stdout[-500:] + done.stderr[-500:])
        return [_trial(line) for line in log.read_text("utf-8").splitlines()]


def _trial(line: str) -> Trial:
    written = json.loads(line)
    return Trial(written["name"], written["outcome"], tuple(written["faults"]))
