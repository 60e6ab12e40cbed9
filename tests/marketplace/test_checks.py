from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from marketplace.checks import check_environment, refuse_unsafe_start
from tests.marketplace.installation import Installation


@pytest.fixture
def whole(settings: Settings) -> Settings:
    """Services mode with nothing amiss."""
    settings.EMBEDDED = False
    settings.DATABASE_URL, settings.REDIS_URL = "postgres://db/x", "redis://redis/0"
    settings.SECRET_KEY = "a key"
    settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["linkproof.example"]
    return settings


def ids() -> list[str]:
    return [message.id or "" for message in check_environment()]


def test_a_whole_environment_has_no_mistakes(whole: Settings) -> None:
    assert ids() == []
    refuse_unsafe_start()


@pytest.mark.parametrize(
    ("name", "value", "mistake"),
    [
        ("SECRET_KEY", "no secret key is set", "linkproof.E001"),
        ("DEBUG", True, "linkproof.E002"),
        ("ALLOWED_HOSTS", [], "linkproof.E003"),
        ("REDIS_URL", "", "linkproof.E004"),
        ("DATABASE_URL", "", "linkproof.E005"),
        ("DATA_DIR", Path("/proc/nowhere"), "linkproof.E006"),
        ("ALLOWED_HOSTS", ["*"], "linkproof.W001"),
    ],
)
def test_each_mistake_has_an_id_and_a_hint(
    whole: Settings, name: str, value: object, mistake: str
) -> None:
    setattr(whole, name, value)
    found = check_environment()
    assert [message.id for message in found] == [mistake]
    assert found[0].hint
    if mistake.startswith("linkproof.E"):
        with pytest.raises(ImproperlyConfigured, match=mistake):
            refuse_unsafe_start()


def test_embedded_mode_needs_none_of_what_others_would_reach(whole: Settings) -> None:
    whole.EMBEDDED = True
    whole.DATABASE_URL = whole.REDIS_URL = ""
    whole.DEBUG, whole.ALLOWED_HOSTS = True, []
    assert ids() == []


@pytest.mark.parametrize(
    "door", [("manage.py", "check"), ("-c", "import marketplace.wsgi")], ids=["manage", "wsgi"]
)
def test_no_door_opens_on_a_default_secret(tmp_path: Path, door: tuple[str, ...]) -> None:
    services = Installation(
        {
            "LINKPROOF_DATA_DIR": str(tmp_path),
            "DATABASE_URL": "postgres://db.example/x",
            "REDIS_URL": "redis://redis.example/0",
            "ALLOWED_HOSTS": "linkproof.example",
        }
    )
    done = services.run(*door, check=False)
    assert done.returncode != 0
    assert "linkproof.E001" in done.stderr


def test_a_list_in_a_terminal_reads_no_admin_no_addresses_and_no_adapter(tmp_path: Path) -> None:
    """They are half of what a cold process would import."""
    code = """
import sys
from marketplace.management.commands import shortlist
unused = ("marketplace.admin", "marketplace.urls", "marketplace.catalog.registry", "httpx", "lxml")
show(read=[name for name in unused if name in sys.modules])
"""
    assert Installation({"LINKPROOF_DATA_DIR": str(tmp_path)}).python(code) == {"read": []}


def test_the_checks_read_the_admin_themselves(tmp_path: Path) -> None:
    code = """
import sys
from marketplace.checks import check_admin
name = "marketplace.admin"
before = name in sys.modules
found = [str(one) for one in check_admin()]
show(before=before, found=found, after=name in sys.modules)
"""
    said = Installation({"LINKPROOF_DATA_DIR": str(tmp_path)}).python(code)
    assert said == {"before": False, "found": [], "after": True}
