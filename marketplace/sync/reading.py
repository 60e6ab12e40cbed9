"""Reading stored pages in a child process with limits on time and memory.

A page is a stranger's text: one that makes its reader spin, swell or crash ends that child, and
the worker goes on. The child is forked, so nothing has to be loaded or sent to it; it touches
neither database nor network and leaves without running any exit handler.
"""

from __future__ import annotations

import os
import pickle
import resource
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from marketplace.catalog.base import NOTHING_READ, Adapter, Batch, Known, Page, UnreadablePage
from marketplace.catalog.charsets import doubt_about
from marketplace.catalog.failures import Refused
from marketplace.catalog.layouts import Columns, columns_of
from marketplace.catalog.parts import joined, read_parts
from marketplace.catalog.sniffing import check_kind

T = TypeVar("T")

CHUNK = 2**20
LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Of one child: seconds of processor time, seconds on the clock, and bytes that it may add."""

    cpu_seconds: int = 10
    seconds: float = 60.0
    memory_bytes: int = 384 * 2**20


LEAST = ReadingLimits()
MOST_MEMORY = 2**30
MOST_SECONDS = 180.0
"""Together with the visit before it, less than the time limit of a task. Twice the processor time
that the longest usual feed may take, so that busy neighbours do not end its reading."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What pages hold, or a part of it, their columns, and why their text is in doubt, if it is."""

    batch: Batch
    columns: tuple[Columns, ...] = ()
    doubt: str = ""


class ReaderDied(Exception):
    """The child ended without an answer: too slow, too large, or it crashed."""


class ReaderBroke(Exception):
    """The reader raised what it should not; its text may be page text, so only its kind is said."""


def read_apart(
    adapter: Adapter, pages: Sequence[Page], limits: ReadingLimits | None = None
) -> Reading:
    """Everything on the pages, read in a child. Raises as `apart` and the reader do."""
    return apart(lambda: read(adapter, pages), limits or _limits_of(pages))


def parts_apart(
    adapter: Adapter,
    pages: Sequence[Page],
    known: Known = NOTHING_READ,
    limits: ReadingLimits | None = None,
) -> Iterator[Reading]:
    """The same in parts, as the child reads on; the first one tells of the pages as a whole."""
    return stream_apart(lambda: _parts(adapter, pages, known), limits or _limits_of(pages))


def _limits_of(pages: Sequence[Page]) -> ReadingLimits:
    return limits_for(sum(len(page.body) for page in pages))


def limits_for(body_bytes: int) -> ReadingLimits:
    """A long feed needs longer: two seconds and 32 MiB more for each half megabyte of it."""
    halves = body_bytes // 500_000
    memory = min(LEAST.memory_bytes + halves * 32 * 2**20, MOST_MEMORY)
    return ReadingLimits(
        LEAST.cpu_seconds + 2 * halves, min(LEAST.seconds + 10 * halves, MOST_SECONDS), memory
    )


def read(adapter: Adapter, pages: Sequence[Page]) -> Reading:
    """The same in this process. Raises UnreadablePage or Refused."""
    first, *others = _parts(adapter, pages, NOTHING_READ)
    return replace(first, batch=joined(part.batch for part in others))


def _parts(adapter: Adapter, pages: Sequence[Page], known: Known) -> Iterator[Reading]:
    for page in pages:
        check_kind(page)
    doubts = (doubt_about(page) for page in pages)
    yield Reading(Batch(), columns_of(pages), next(filter(None, doubts), ""))
    yield from map(Reading, read_parts(adapter, pages, known))


def apart(work: Callable[[], T], limits: ReadingLimits = LEAST) -> T:
    """What `work` returns, worked out in a child. Raises as `stream_apart` does."""
    (answer,) = stream_apart(lambda: iter((work(),)), limits)
    return answer


def stream_apart(work: Callable[[], Iterator[T]], limits: ReadingLimits = LEAST) -> Iterator[T]:
    """What `work` gives, one after the other, worked out in a child that waits for its listener.

    Raises ReaderDied where the child ended first, ReaderBroke for an exception that nobody
    expects, and UnreadablePage or Refused as they were raised.
    """
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _be_the_child(work, limits, sink)
    os.close(sink)
    status = None
    try:
        yield from _answers(_Listener(source, limits.seconds))
    except EOFError:
        status = _end(child)
        raise ReaderDied(_why(status, limits)) from None
    finally:
        os.close(source)
        if status is None:
            _end(child)


def _answers(listener: _Listener) -> Iterator[Any]:
    """Raises EOFError where the child says no more and had not said that this is the end."""
    while True:
        said, value = pickle.loads(listener.message())  # noqa: S301  our own child wrote it
        if said == "end":
            return
        if said == "raised":
            raise value
        yield value


def _be_the_child(
    work: Callable[[], Iterator[object]], limits: ReadingLimits, sink: int
) -> NoReturn:
    """Leaves without any handler: the parent's open files are not ours to close."""
    code = 1
    with suppress(BaseException):
        _limit(limits)
        with os.fdopen(sink, "wb") as out:
            for message in _attempt(work):
                out.write(len(message).to_bytes(LENGTH_BYTES) + message)
        code = 0
    os._exit(code)


def _attempt(work: Callable[[], Iterator[object]]) -> Iterator[bytes]:
    try:
        for value in work():
            yield pickle.dumps(("part", value), pickle.HIGHEST_PROTOCOL)
        yield pickle.dumps(("end", None))
    except (UnreadablePage, Refused) as known:
        yield pickle.dumps(("raised", known))
    except MemoryError:
        raise
    except Exception as error:
        yield pickle.dumps(("raised", ReaderBroke(type(error).__name__)))


def _limit(limits: ReadingLimits) -> None:
    """The processor's clock of a fork starts at zero; its memory starts at the parent's."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    _lower(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (wanted if hard < 0 else min(wanted, hard), hard))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as sizes:
        return int(sizes.read().split()[0]) * resource.getpagesize()


class _Listener:
    """Whole messages from a pipe. `seconds` are those that it may wait in all: what its listener
    does between two messages is not the child's time."""

    def __init__(self, source: int, seconds: float) -> None:
        self._source, self._left = source, seconds
        self._heard = bytearray()

    def message(self) -> bytes:
        """Raises EOFError at the end, or when the clock ran out first."""
        length = int.from_bytes(self._take(LENGTH_BYTES))
        return self._take(length)

    def _take(self, count: int) -> bytes:
        while len(self._heard) < count:
            self._heard += self._hear()
        taken = bytes(self._heard[:count])
        del self._heard[:count]
        return taken

    def _hear(self) -> bytes:
        began = time.monotonic()
        with selectors.DefaultSelector() as ready:
            ready.register(self._source, selectors.EVENT_READ)
            part = os.read(self._source, CHUNK) if ready.select(self._left) else b""
        self._left -= time.monotonic() - began
        if not part:
            raise EOFError
        return part


def _end(child: int) -> int:
    """Its exit status. One that still runs has no answer that anyone waits for."""
    with suppress(ProcessLookupError):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _why(status: int, limits: ReadingLimits) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return f"Reading the pages took more than {limits.cpu_seconds} s of processor time."
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return f"Reading the pages took more than {limits.seconds:g} s, or was ended from outside."
    return f"The reader of the pages ended early, within {limits.memory_bytes // 2**20} MiB."
