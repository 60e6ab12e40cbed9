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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from marketplace.catalog.base import Adapter, Batch, Page, UnreadablePage
from marketplace.catalog.charsets import doubt_about
from marketplace.catalog.failures import Refused
from marketplace.catalog.layouts import Columns, columns_of
from marketplace.catalog.sniffing import check_kind

T = TypeVar("T")

CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Of one child: seconds of processor time, seconds on the clock, and bytes that it may add."""

    cpu_seconds: int = 10
    seconds: float = 60.0
    memory_bytes: int = 384 * 2**20


LEAST = ReadingLimits()
MOST_MEMORY = 2**30
MOST_SECONDS = 100.0
"""Together with the visit before it, less than the time limit of a task."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What pages hold, their columns, and why their text is in doubt, if it is."""

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
    size = sum(len(page.body) for page in pages)
    return apart(lambda: read(adapter, pages), limits or limits_for(size))


def limits_for(body_bytes: int) -> ReadingLimits:
    """A long feed needs longer: a second and 32 MiB more for each half megabyte of it."""
    halves = body_bytes // 500_000
    memory = min(LEAST.memory_bytes + halves * 32 * 2**20, MOST_MEMORY)
    return ReadingLimits(
        LEAST.cpu_seconds + halves, min(LEAST.seconds + 10 * halves, MOST_SECONDS), memory
    )


def read(adapter: Adapter, pages: Sequence[Page]) -> Reading:
    """The same in this process. Raises UnreadablePage or Refused."""
    for page in pages:
        check_kind(page)
    doubts = (doubt_about(page) for page in pages)
    return Reading(adapter.read(pages), columns_of(pages), next(filter(None, doubts), ""))


def apart(work: Callable[[], T], limits: ReadingLimits = LEAST) -> T:
    """What `work` returns, worked out in a child.

    Raises ReaderDied where the child ended first, ReaderBroke for an exception that nobody
    expects, and UnreadablePage or Refused as they were raised.
    """
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _be_the_child(work, limits, sink)
    os.close(sink)
    try:
        answer = _answer(source, time.monotonic() + limits.seconds)
    finally:
        os.close(source)
        status = _end(child)
    if not answer:
        raise ReaderDied(_why(status, limits))
    said, value = pickle.loads(answer)  # noqa: S301  our own child wrote it
    if said == "raised":
        raise value
    found: T = value
    return found


def _be_the_child(work: Callable[[], object], limits: ReadingLimits, sink: int) -> NoReturn:
    """Leaves without any handler: the parent's open files are not ours to close."""
    code = 1
    with suppress(BaseException):
        _limit(limits)
        with os.fdopen(sink, "wb") as out:
            out.write(_attempt(work))
        code = 0
    os._exit(code)


def _attempt(work: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps(("done", work()), pickle.HIGHEST_PROTOCOL)
    except (UnreadablePage, Refused) as known:
        return pickle.dumps(("raised", known))
    except MemoryError:
        raise
    except Exception as error:
        return pickle.dumps(("raised", ReaderBroke(type(error).__name__)))


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


def _answer(source: int, ends: float) -> bytes:
    """All that the child writes, or nothing when the clock runs out first."""
    parts: list[bytes] = []
    with selectors.DefaultSelector() as ready:
        ready.register(source, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0:
            if not ready.select(left):
                break
            part = os.read(source, CHUNK)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return b""


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
