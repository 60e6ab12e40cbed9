"""A process that starts cold, reads a small catalog from its database and prints one shortlist.

Against a process that starts Django with the same apps and does no more than count the listings;
turns shuffled, ratios within a round. Both find their modules compiled, as after any first start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.turns import rounds, tell

LISTINGS, CONFIGURATIONS = 1_000, 200
WORKLOAD = "serve-llama-8b"
ROUNDS = 5
FILL = (
    f"from tests.pages.large_catalog import fill; fill({LISTINGS}, {CONFIGURATIONS});"
    "from marketplace.evaluations import evaluate, request_presets;"
    "[evaluate(one.pk) for one in request_presets()]"
)
"""As after any sync and evaluation: only changed listings have their machines named anew."""
COUNT = (
    "import django; django.setup();"
    "from marketplace.models import Listing; print(Listing.objects.count())"
)


def bench_cold(times: int = ROUNDS) -> None:
    """On a database of its own, filled and evaluated, in a folder that is gone afterwards."""
    with TemporaryDirectory() as folder:
        _run(folder, "manage.py", "migrate", "--verbosity", "0")
        _run(folder, "manage.py", "shell", "--verbosity", "0", "--command", FILL)
        arms = {
            "ours": lambda: _run(folder, "manage.py", "shortlist", WORKLOAD),
            "bare": lambda: _run(folder, "-c", COUNT),
        }
        arms["ours"]()
        found = rounds(arms, times)
    print(f"a cold process that prints the shortlist of {LISTINGS:,} listings, {WORKLOAD}")
    tell(
        "start, read, judge, print",
        found["ours"],
        found["bare"],
        "the same Django that only counts them",
    )


def _run(folder: str, *arguments: str) -> None:
    changes = {
        "DJANGO_SETTINGS_MODULE": "marketplace.settings",
        "LINKPROOF_DATA_DIR": folder,
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"),
    }
    subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | changes,
        stdout=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    bench_cold()
