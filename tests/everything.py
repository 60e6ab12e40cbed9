"""`make test` after the linters: the suite on PostgreSQL where a server answers, then on SQLite.

The SQLite run comes last, since it holds everything else too and its summary closes the output.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.services import POSTGRES_URL, REDIS_URL, postgres_answers

ON_BOTH_DATABASES = ("tests/marketplace", "--ignore=tests/marketplace/catalog")
"""Reading pages touches no database; the browser tests ask the same pages on SQLite."""


def run(name: str, *arguments: str, **environment: str) -> int:
    print(f"\n== {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
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
