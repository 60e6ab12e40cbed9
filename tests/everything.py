"""`make test` after the linters: the suite on PostgreSQL where a server answers, then on SQLite.

The SQLite run comes last, since it holds everything else too and its summary closes the output.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.services import POSTGRES_URL, REDIS_URL, postgres_answers

OWN_DATABASE = ("test_faults_broker", "test_faults_worker", "test_tasks", "test_fault_board")
"""They start processes with databases of their own, both kinds, whichever runs them."""

NO_DATABASE = (
    "catalog", "test_accuracy_catalog", "test_accuracy_evidence", "test_accuracy_memory",
    "test_accuracy_throughput", "test_cost_scatter", "test_drawing", "test_expressions",
    "test_fetch", "test_frozen", "test_link_matrix", "test_pictures", "test_planner_comparison",
    "test_present", "test_sample_server", "test_settings", "test_svg_snapshots",
)  # fmt: skip
"""Reading, drawing and printing touch none; the browser tests ask the same pages on SQLite."""

ON_BOTH_DATABASES = (
    "tests/marketplace",
    *(f"--ignore-glob=tests/marketplace/{name}*" for name in (*OWN_DATABASE, *NO_DATABASE)),
)

SIDE_BY_SIDE = (
    "--numprocesses=auto", "--maxprocesses=8", "--dist=loadfile", "--no-loadscope-reorder",
    "-pno:faulthandler",
)  # fmt: skip
"""A file stays in one process, so what its tests share is made once. Files keep their order: by
their number of tests the few that wait for workers would come last, with nothing beside them.
Readers that crash on purpose would print their stacks between the dots."""


def run(name: str, *arguments: str, **environment: str) -> int:
    print(f"\n== {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *SIDE_BY_SIDE, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def main() -> int:
    codes = []
    if postgres_answers():
        codes.append(
            run(
                "PostgreSQL",
                *ON_BOTH_DATABASES,
                DATABASE_URL=POSTGRES_URL,
                REDIS_URL=REDIS_URL,
                SECRET_KEY="only for tests",
                ALLOWED_HOSTS="testserver,127.0.0.1,localhost",
            )
        )
    codes.append(run("SQLite", *sys.argv[1:]))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
