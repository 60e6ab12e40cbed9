"""Chunks that wait on disk until all of them were looked at: memory does not grow with a feed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, Generic, TypeVar

T = TypeVar("T")

IN_MEMORY = 8 * 2**20


class Spool(Generic[T]):
    """Written once from first to last, then read in that order as often as needed."""

    def __init__(self) -> None:
        # Anonymous: the system takes it back whichever way the process ends.
        self._file: Any = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._chunks = 0

    def put(self, chunk: T) -> None:
        pickle.dump(chunk, self._file, pickle.HIGHEST_PROTOCOL)
        self._chunks += 1

    def __iter__(self) -> Iterator[T]:
        self._file.seek(0)
        for _ in range(self._chunks):
            yield pickle.load(self._file)  # noqa: S301  our own process wrote it

    def close(self) -> None:
        self._file.close()
