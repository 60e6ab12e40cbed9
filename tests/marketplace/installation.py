"""Linkproof as others run it: own processes, own database, chosen by the environment alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

PATIENCE = 600
"""Seconds until a process or a wait has failed: a busy machine takes ten times as long."""
ROOT = Path(__file__).parents[2]
OURS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DEBUG", "LINKPROOF_DATA_DIR")

PRELUDE = """
import json, django
django.setup()
def show(**values): print("SAID " + json.dumps(values, default=str))
"""


@dataclass(frozen=True)
class Installation:
    variables: dict[str, str] = field(default_factory=dict)

    def having(self, **variables: str) -> Installation:
        return replace(self, variables={**self.variables, **variables})

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in OURS}
        return {"DJANGO_SETTINGS_MODULE": "marketplace.settings", **inherited, **self.variables}

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return done

    def manage(self, *arguments: str) -> str:
        return self.run("manage.py", *arguments).stdout

    def python(self, code: str) -> dict[str, Any]:
        """What the code shows with `show(name=value)`."""
        lines = self.run("-c", PRELUDE + code).stdout.splitlines()
        said: dict[str, Any] = json.loads(lines[-1].removeprefix("SAID "))
        return said

    @contextmanager
    def celery(self, *arguments: str, app: str = "marketplace") -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", app, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)

    def wait_for(self, code: str, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask again until the answer will do; fail with the last one after ten minutes."""
        deadline = time.monotonic() + PATIENCE
        while not done(said := self.python(code)):
            assert time.monotonic() < deadline, said
            time.sleep(0.5)
        return said
