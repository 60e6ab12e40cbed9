"""Typed readers of the environment. An odd value is refused with its name and what was expected.

`NAME_FILE` names a file that holds the value of `NAME`, for secrets that an orchestrator mounts.
No message repeats the value: it may be the secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

FLAGS = {"1": True, "true": True, "yes": True, "on": True}
FLAGS |= {"0": False, "false": False, "no": False, "off": False}


class OddValue(ImproperlyConfigured):
    """A variable that cannot be what it says."""

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name} is set to something else than {expected}.")


def text(name: str, default: str = "") -> str:
    """The value without surrounding blanks; an empty one counts as not set."""
    path = os.environ.get(f"{name}_FILE", "")
    value = _contents(f"{name}_FILE", path) if path else os.environ.get(name, "")
    return value.strip() or default


def _contents(name: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OddValue(name, "the path of a readable text file") from error


def flag(name: str, *, default: bool) -> bool:
    value = text(name).lower()
    if value and value not in FLAGS:
        raise OddValue(name, "one of " + ", ".join(FLAGS))
    return FLAGS.get(value, default)


def words(name: str, default: list[str]) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text(name).split(",") if word.strip()] or default


def whole(name: str, default: int, *, least: int, most: int) -> int:
    value = text(name) or str(default)
    if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
        raise OddValue(name, f"a whole number from {least} to {most}")
    return int(value)


def choice(name: str, default: str, known: tuple[str, ...]) -> str:
    value = text(name, default)
    if value not in known:
        raise OddValue(name, "one of " + ", ".join(known))
    return value


def address(name: str, default: str, schemes: tuple[str, ...]) -> str:
    """A URL with one of the schemes and a host; "" where the default is "" and nothing is set."""
    value = text(name, default)
    if value and not _is_address(value, schemes):
        raise OddValue(name, "a URL that begins with " + " or ".join(f"{s}://" for s in schemes))
    return value


def _is_address(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
