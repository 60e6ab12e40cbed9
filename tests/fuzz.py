"""Damaged pastes: `make fuzz` for many, the suite for 20,000.

Whatever the damage, a reader answers or says what is wrong; it never fails otherwise, and a text
that was cut never shows a link that the whole text does not show.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from evaluator.evidence import Reading, UnreadableEvidence, read_evidence, scrub
from tests.services import SHARED

ODD = (
    "\x1b[4m", "\x00", "\u00a0", "\t", "|", "NV18", "XGMI", "X", "GPU0", "N/A", "-1", "1e999",
    "99999999999999999999", "<", "&#1;", '"', "{", "[", "\u202e", "=", "é", "NaN",
)  # fmt: skip


def cut(text: str, dice: random.Random) -> str:
    """The text up to some place, as a paste that lost its end."""
    return text[: dice.randrange(len(text) + 1)]


def lose_lines(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    return "\n".join(lines[:at] + lines[at + dice.randrange(1, 4) :])


def repeat_lines(text: str, dice: random.Random) -> str:
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    return "\n".join(lines[: at + 1] + lines[max(0, at - 2) :])


def lose_word(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    at = dice.randrange(len(words))
    return " ".join(words[:at] + words[at + 1 :])


def change_character(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return (
        text[:at]
        + chr(dice.choice((dice.randrange(32, 127), dice.randrange(1, 3000))))
        + text[at + 1 :]
    )


def put_in(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(ODD) * dice.choice((1, 1, 1, 50)) + text[at:]


def swap(text: str, dice: random.Random) -> str:
    one, other = sorted(dice.randrange(len(text) + 1) for _ in range(2))
    return text[other:] + text[one:other] + text[:one]


def lose_token(text: str, dice: random.Random) -> str:
    """Without one of its words, the blanks around it kept."""
    words = re.split(r"(\s+)", text)
    at = dice.randrange(len(words))
    return "".join(words[:at] + words[at + 1 :])


def join_lines(text: str, dice: random.Random) -> str:
    """Two neighbouring lines as one, as a terminal of another width makes them."""
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    return "\n".join([*lines[:at], "".join(lines[at : at + 2]), *lines[at + 2 :]])


LOSSES: tuple[Callable[[str, random.Random], str], ...] = (
    cut, lose_lines, lose_word, lose_token, join_lines, repeat_lines,
)  # fmt: skip
"""Damage that only takes away or repeats. What puts something in may write any class."""


DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    *LOSSES, change_character, put_in, swap,
)  # fmt: skip


LONG_TEXT = 5_000


def cases(folder: Path | None = None) -> list[str]:
    """The texts of the topology cases."""
    found = sorted(((folder or SHARED) / "cases" / "topology").glob("*.txt"))
    return [file.read_bytes().decode("utf-8", errors="replace") for file in found]


def mutations(texts: list[str], count: int, seed: int) -> Iterator[str]:
    """Texts damaged once or more. The few long ones come seldom: they take most of the time."""
    dice = random.Random(seed)
    weights = [1.0 if len(text) < LONG_TEXT else 0.1 for text in texts]
    for text in dice.choices(texts, weights, k=count):
        for _ in range(dice.choice((1, 1, 2, 4))):
            text = dice.choice(DAMAGES)(text, dice)
        yield text


def answer(text: str) -> str:
    """What came of one text. Any other exception than the readers' own goes through."""
    try:
        readings = read_evidence(text)
    except UnreadableEvidence as problem:
        return "refused" if problem.problems else "refused without a reason"
    assert readings
    for reading in readings:
        assert reading.problems or reading.whole
        check_shape(reading)
    return "read" if all(reading.whole for reading in readings) else "partial"


def check_shape(reading: Reading) -> None:
    """A matrix is square and as wide as the count of GPUs, and agrees with itself."""
    matrix = reading.matrix or reading.p2p_matrix
    if matrix is not None:
        assert len(matrix) == reading.gpu_count
        assert all(len(row) == len(matrix) for row in matrix)
    for one, row in enumerate(reading.matrix or ()):
        assert row[one] == "X"
        assert all((reading.matrix or ())[other][one] == cell for other, cell in enumerate(row))


def main(count: int) -> None:
    seed = int(time.time())
    begun, found = time.monotonic(), Counter[str]()
    for text in mutations(cases(), count, seed):
        try:
            found[answer(text)] += 1
            scrub(text)
        except Exception:
            print(f"seed {seed}: {text!r}", file=sys.stderr)
            raise
    seconds = time.monotonic() - begun
    print(f"{count:,} damaged texts in {seconds:.0f} s, seed {seed}: {dict(found)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
