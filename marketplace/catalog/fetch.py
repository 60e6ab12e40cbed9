"""The only module that opens sockets.

It drives httpcore, the transport beneath httpx, because only there can an address be checked
after it was resolved and before it is connected to, and a deadline hold for every single read.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore
import httpx

from marketplace.catalog.addresses import is_denied, is_loopback
from marketplace.catalog.failures import (
    NAMED_STATUS,
    BadStatus,
    Damaged,
    Refused,
    TooSlow,
    Unreachable,
)
from marketplace.catalog.unpacking import Gzip, unpacker

KEPT_HEADERS = (
    "etag",
    "last-modified",
    "content-type",
    "content-encoding",
    "content-length",
    "date",
    "age",
    "retry-after",
    "location",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for the whole fetch and for one connection; bytes before and after unpacking."""

    seconds: float = 60.0
    connect_seconds: float = 5.0
    wire_bytes: int = 32 * 2**20
    body_bytes: int = 64 * 2**20
    redirects: int = 5


def resolve_name(host: str, port: int, seconds: float) -> list[str]:
    """Every address of a name, in the resolver's order. Raises OSError.

    The system's resolver knows no deadline, so it runs in a thread that is left behind when late.
    """
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_resolve, args=(host, port, answers), daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _resolve(host: str, port: int, answers: queue.SimpleQueue[list[str] | OSError]) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        answers.put(error)
    except UnicodeError as error:
        answers.put(OSError(str(error)))
    else:
        answers.put([str(address[0]) for *_, address in found])


@dataclass(frozen=True, slots=True)
class Asking:
    """How a request is made. Its headers may hold a key, so they are in no text about it."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""


PLAINLY = Asking()


@dataclass(frozen=True, slots=True)
class Permit:
    """Where a fetch may go, and how it asks there.

    `loopback` is the one local (host, port) that a bundled source has.
    """

    allowed_hosts: frozenset[str] = frozenset()
    loopback: tuple[str, int] | None = None
    limits: Limits = Limits()
    agent: str = "LinkproofBot/0.1"
    resolve: Callable[[str, int, float], list[str]] = resolve_name
    asking: Asking = PLAINLY


@dataclass(frozen=True, slots=True)
class Validators:
    """What an earlier answer gave, to ask whether the page changed since."""

    etag: str = ""
    last_modified: str = ""

    @property
    def headers(self) -> dict[str, str]:
        pairs = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in pairs.items() if value}


NOTHING_KNOWN = Validators()


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer. `status` is 200, or 304 with no body. `url` is the address after redirects.

    `delimited` says whether the server stated where the body ends; without that, a body that was
    cut short looks like a whole one.
    """

    url: str
    status: int
    body: bytes
    headers: Mapping[str, str]
    wire_bytes: int
    delimited: bool


def fetch(url: str, permit: Permit, validators: Validators = NOTHING_KNOWN) -> Fetched:
    """Get one address, following redirects within the permit. Raises a FetchError."""
    deadline = Deadline(permit.limits.seconds)
    asked, here = validators.headers, checked_url(url, permit)
    guard = _Guard(permit, deadline)
    with httpcore.ConnectionPool(ssl_context=_tls(), network_backend=guard) as pool:
        for _ in range(permit.limits.redirects + 1):
            with _answer(pool, here, permit, asked) as response:
                if response.status not in (301, 302, 303, 307, 308):
                    return _received(response, here, permit.limits, conditional=bool(asked))
                here = _next_hop(response, here, permit)
    raise Refused(f"{shown(here)}: more than {permit.limits.redirects} redirects")


def checked_url(url: str, permit: Permit) -> httpx.URL:
    """The address in its one parsed form. Raises Refused where the permit does not hold it."""
    if any(char in "\\" or char.isspace() or not char.isprintable() for char in url):
        raise Refused("the address holds a backslash, a space or a control character")
    try:
        parsed = httpx.URL(url).copy_with(fragment=None)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise Refused("the address cannot be parsed") from error
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise Refused(f"{shown(parsed)}: expected http or https, a host and no user name")
    if not _is_permitted(parsed, permit):
        raise Refused(f"{shown(parsed)} is not on the list of permitted hosts")
    return parsed


def _is_permitted(url: httpx.URL, permit: Permit) -> bool:
    if (url.host, url.port) == permit.loopback:
        return url.scheme == "http"
    # httpx drops the port that belongs to the scheme, so any port left is an odd one.
    return url.port is None and url.host in permit.allowed_hosts


def shown(url: httpx.URL) -> str:
    """An address for messages, without user name, query and fragment."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"[:200]


class Deadline:
    """Seconds left of one fetch, whatever it is doing."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._ends = seconds, time.monotonic() + seconds

    def left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TooSlow(f"not finished after {self._seconds:g} s")
        return left


class _Guard(httpcore.NetworkBackend):
    """Connects only to addresses that were checked after resolving, and within the deadline."""

    def __init__(self, permit: Permit, deadline: Deadline) -> None:
        self._permit, self._deadline = permit, deadline
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        for address in self._addresses(host, port):
            seconds = min(self._permit.limits.connect_seconds, self._deadline.left())
            try:
                stream = self._backend.connect_tcp(address, port, timeout=seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
            return _TimedStream(stream, self._deadline)
        raise Unreachable(f"{host}:{port} did not accept a connection")

    def _addresses(self, host: str, port: int) -> list[str]:
        addresses = self._resolved(host, port)
        if (host, port) == self._permit.loopback:
            refused = [each for each in addresses if not is_loopback(each)]
        else:
            refused = [each for each in addresses if is_denied(each)]
        if refused:
            raise Refused(f"{host} resolves to {refused[0]}, which no source may use")
        return addresses

    def _resolved(self, host: str, port: int) -> list[str]:
        seconds = min(self._permit.limits.connect_seconds, self._deadline.left())
        try:
            return self._permit.resolve(host, port, seconds)
        except OSError as error:
            raise Unreachable(f"the name {host} cannot be resolved") from error


class _TimedStream(httpcore.NetworkStream):
    """A connection on which every read and write has only what is left of the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def _answer(
    pool: httpcore.ConnectionPool, url: httpx.URL, permit: Permit, asked: Mapping[str, str]
) -> Iterator[httpcore.Response]:
    """One request and its answer. Every way in which it can fail leaves as a FetchError."""
    headers = {
        "Host": url.netloc.decode("ascii"),
        "User-Agent": permit.agent,
        "Accept": "text/html, application/json, text/csv;q=0.9, */*;q=0.1",
        "Accept-Encoding": "gzip",
        "Connection": "close",
        **permit.asking.headers,
        **asked,
    }
    asking = permit.asking
    body = asking.body or None
    try:
        with pool.stream(
            asking.method, str(url), headers=list(headers.items()), content=body
        ) as response:
            yield response
    except httpcore.TimeoutException as error:
        raise TooSlow(f"{shown(url)}: not finished after {permit.limits.seconds:g} s") from error
    except httpcore.ProtocolError as error:
        raise Damaged(f"{shown(url)}: the answer is cut short or is not HTTP") from error
    except (httpcore.NetworkError, OSError) as error:
        # The cause is the system's error: a certificate that is wrong says so by its type.
        cause = error.__cause__ or error.__context__ or error
        raise Unreachable(f"{shown(url)}: {type(cause).__name__}") from error


def _next_hop(response: httpcore.Response, here: httpx.URL, permit: Permit) -> httpx.URL:
    target = _headers(response).get("location", "")
    try:
        there = checked_url(str(here.join(target)), permit)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise Refused(f"{shown(here)} redirects to an address that cannot be parsed") from error
    if here.scheme == "https" and there.scheme == "http":
        raise Refused(f"{shown(here)} redirects from https to http")
    return there


def _received(
    response: httpcore.Response, url: httpx.URL, limits: Limits, *, conditional: bool
) -> Fetched:
    headers = _headers(response)
    if response.status != 200 and not (response.status == 304 and conditional):
        kind = NAMED_STATUS.get(response.status, BadStatus)
        raise kind(response.status, shown(url), headers.get("retry-after", ""))
    unpack = unpacker(headers.get("content-encoding", ""), limits.wire_bytes, limits.body_bytes)
    body = b"".join(unpack.feed(chunk) for chunk in response.iter_stream())
    unpack.finish()
    delimited = isinstance(unpack, Gzip) or _is_delimited(response)
    return Fetched(str(url), response.status, body, headers, unpack.wire_bytes, delimited)


def _headers(response: httpcore.Response) -> dict[str, str]:
    pairs = ((name.decode("latin-1").lower(), value) for name, value in response.headers)
    return {name: value.decode("latin-1")[:1000] for name, value in pairs if name in KEPT_HEADERS}


def _is_delimited(response: httpcore.Response) -> bool:
    names = {name.lower() for name, _ in response.headers}
    return bool(names & {b"content-length", b"transfer-encoding"})
