"""`df` of /dev/shm: the room in which ranks without peer access meet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluator.evidence.lines import Paste
from evaluator.evidence.readings import Format, Reading

ROW = re.compile(
    r"\s{0,8}(?:shm|tmpfs|none|devshm)\s{1,40}(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)i?B?\s.{1,80}\s/dev/shm\s{0,8}"
)
UNIT = {"": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""A figure without a letter counts blocks of 1 KiB."""


def read_shared_memory(paste: Paste) -> Iterator[Reading]:
    for line in paste.lines:
        found = ROW.fullmatch(line.text)
        if found and not paste.cut_at(line):
            size = int(float(found[1]) * UNIT[found[2]])
            yield Reading(Format.SHARED_MEMORY, line.number, shared_memory_bytes=size)
            return
