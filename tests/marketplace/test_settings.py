from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
import structlog

from marketplace import environment, logs
from tests.marketplace.installation import ROOT, Installation

SHOW = """
from django.conf import settings as s
show(key=s.SECRET_KEY, embedded=s.EMBEDDED, debug=s.DEBUG, hosts=s.ALLOWED_HOSTS,
     engine=s.DATABASES["default"]["ENGINE"], options=s.DATABASES["default"].get("OPTIONS"),
     eager=s.CELERY_TASK_ALWAYS_EAGER, secure=s.SESSION_COOKIE_SECURE,
     health=s.DATABASES["default"].get("CONN_HEALTH_CHECKS"))
"""
WHOLE = {
    "DATABASE_URL": "postgres://someone:canary-pw@db.example/linkproof",
    "REDIS_URL": "redis://:canary-pw@redis.example/0",
    "SECRET_KEY": "x" * 50,
    "ALLOWED_HOSTS": "linkproof.example",
}


@pytest.fixture
def bare(tmp_path: Path) -> Installation:
    return Installation({"LINKPROOF_DATA_DIR": str(tmp_path / "data")})


def test_nothing_set_means_embedded_closed_and_quiet(bare: Installation) -> None:
    said = bare.python(SHOW)
    assert said["embedded"]
    assert said["eager"]
    assert not said["debug"]
    assert "sqlite3" in said["engine"]
    assert set(said["hosts"]) == {"127.0.0.1", "localhost", "[::1]"}


def test_embedded_mode_keeps_its_own_key_to_itself(bare: Installation, tmp_path: Path) -> None:
    first, second = bare.python(SHOW)["key"], bare.python(SHOW)["key"]
    kept = tmp_path / "data" / "secret_key"
    assert first == second == kept.read_text()
    assert len(first) >= 50
    assert kept.stat().st_mode & 0o077 == 0


def test_both_addresses_mean_services_mode(bare: Installation) -> None:
    said = bare.having(**WHOLE).python(SHOW)
    assert (said["embedded"], said["eager"], said["secure"]) == (False, False, True)
    assert "postgresql" in said["engine"]
    assert said["health"]
    assert "statement_timeout=30s" in said["options"]["options"]
    assert "lock_timeout=5s" in said["options"]["options"]


@pytest.mark.postgres
@pytest.mark.redis
def test_no_statement_and_no_lock_lasts_for_ever(services: Installation) -> None:
    said = services.python(
        """
from django.db import connection
with connection.cursor() as cursor:
    values = [cursor.execute(f"SHOW {name}") and cursor.fetchone()[0]
              for name in ("statement_timeout", "lock_timeout")]
show(values=values)
"""
    )
    assert said["values"] == ["30s", "5s"]


def test_a_secret_may_come_from_a_file(bare: Installation, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    said = bare.having(**{**WHOLE, "SECRET_KEY": "", "SECRET_KEY_FILE": str(tmp_path / "key")})
    assert said.python(SHOW)["key"] == "from a file"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("DEBUG", "ture", "one of 1, true"),
        ("DATABASE_URL", "mysql://canary/db", "begins with postgres:// or postgresql://"),
        ("DATABASE_URL", "canary", "begins with postgres://"),
        ("REDIS_URL", "http://canary/", "begins with redis:// or rediss://"),
        ("REDIS_URL", "redis://canary:port/", "begins with redis://"),
        ("DATABASE_STATEMENT_SECONDS", "canary", "a whole number from 1 to 3600"),
        ("DATABASE_STATEMENT_SECONDS", "-3", "a whole number from 1 to 3600"),
        ("LOG_LEVEL", "canary", "one of DEBUG, INFO"),
        ("SECRET_KEY_FILE", "/canary", "the path of a readable text file"),
        ("LINKPROOF_SAMPLE_URL", "file:///canary", "begins with http://"),
    ],
)
def test_an_odd_value_stops_the_start_and_is_not_repeated(
    bare: Installation, name: str, value: str, expected: str
) -> None:
    done = bare.having(**{name: value}).run("manage.py", "check", check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0
    assert f"{name} is set to something else than" in last
    assert expected in last
    assert "canary" not in last


@pytest.mark.parametrize(("value", "meant"), [("on", True), ("NO", False), ("", True)])
def test_a_flag_reads_its_usual_words(
    monkeypatch: pytest.MonkeyPatch, value: str, meant: bool
) -> None:
    monkeypatch.setenv("A_FLAG", value)
    assert environment.flag("A_FLAG", default=True) is meant


def test_the_example_names_every_variable_that_is_read() -> None:
    read = re.findall(
        r'environment\.\w+\(\s*"([A-Z_]+)"', (ROOT / "marketplace/settings.py").read_text()
    )
    keys = (ROOT / "marketplace/catalog/registry.py").read_text()
    read += re.findall(r'Access\(\s*"([A-Z_]+)"', keys)
    told = re.findall(r"^# ([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert {name.removesuffix("_FILE") for name in told} == set(read)


def test_one_event_is_one_line_whatever_its_text() -> None:
    formatter = structlog.stdlib.ProcessorFormatter(
        **{
            "foreign_pre_chain": logs.SHARED_PROCESSORS,
            "processors": logs.logging_config("INFO")["formatters"]["json"]["processors"],
        }
    )
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "a\n{forged}\r\u2028", (), None)
    line = formatter.format(record)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["event"] == "a\n{forged}\r\u2028"
