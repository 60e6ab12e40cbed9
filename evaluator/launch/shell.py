"""Words of a POSIX shell command: every word that comes from outside is quoted and inert."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence


class Raw(str):
    """Shell text of our own that must not be quoted, such as a variable in double quotes."""

    __slots__ = ()


HEAD = Raw('"$HEAD_ADDR"')
"""The address of machine 0, which only the renter knows."""
ROUTER = Raw('"$ROUTER_URL"')
NODE = Raw('"$NODE_RANK"')
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that end a line, or turn the direction of what is read."""


def safe_name(name: str) -> str:
    """A name from outside that no program takes for an option and no terminal for a command."""
    clean = CONTROL.sub("", name).strip() or "MODEL"
    return f"./{clean}" if clean.startswith("-") else clean


def quoted(word: str) -> str:
    return word if isinstance(word, Raw) else shlex.quote(word)


Value = str | int | float | None | bool


def command(*words: str, options: Mapping[str, Value] | None = None) -> str:
    """One command line, an option a line. False and None leave an option out, True has no value."""
    parts = [" ".join(quoted(word) for word in words)]
    parts += [_option(name, value) for name, value in (options or {}).items() if _given(value)]
    return " \\\n  ".join(parts)


def _given(value: Value) -> bool:
    return value is not None and value is not False


def _option(name: str, value: Value) -> str:
    return name if value is True else f"{name} {quoted(_text(value))}"


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else str(value)


def pinned(gpus: Sequence[int], text: str) -> str:
    """The command on these GPUs in this order; as it is where the order says nothing."""
    if not gpus or list(gpus) == list(range(len(gpus))):
        return text
    return f"CUDA_VISIBLE_DEVICES={','.join(map(str, gpus))} {text}"


def file_with(name: str, lines: Iterable[str]) -> str:
    """Shell text that writes a file; the quoted mark keeps the shell from reading the lines."""
    return "\n".join((f"cat > {quoted(name)} <<'END_OF_FILE'", *lines, "END_OF_FILE"))
