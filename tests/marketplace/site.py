"""A real site on loopback that behaves as badly as a test asks."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site(ThreadingHTTPServer):
    """Answers by path; anything else is 404. `asked` lists what was requested, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.headers_seen: list[dict[str, str]] = []
        self.bodies_seen: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def loopback(self) -> tuple[str, int]:
        return ("127.0.0.1", self.server_port)

    def pages_asked(self) -> list[str]:
        return [path for path in self.asked if path != "/robots.txt"]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on a misbehaving server is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.headers_seen.append({k.lower(): v for k, v in self.headers.items()})
        self.server.answers.get(self.path, status(404))(self)
        self.close_connection = True

    def do_POST(self) -> None:
        self.server.bodies_seen.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(
        target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        site.server_close()


def page(body: bytes | str, kind: str = "text/html", code: int = 200, **headers: str) -> Answer:
    content = body.encode() if isinstance(body, str) else body

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, code, {"Content-Type": kind, "Content-Length": str(len(content)), **headers})
        handler.wfile.write(content)

    return answer


def status(code: int, **headers: str) -> Answer:
    return page(b"<h1>a secret of the page</h1>", code=code, **headers)


def redirect(target: str) -> Answer:
    return status(302, Location=target)


def unless_known(etag: str, body: str) -> Answer:
    """304 to whoever names the tag, the page with its tag to all others."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("If-None-Match") == etag:
            _head(handler, 304, {"ETag": etag})
        else:
            page(body, ETag=etag)(handler)

    return answer


def trickle(seconds: float = 0.05) -> Answer:
    """A byte at a time, for ever: no single read is slow."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, 200, {"Content-Length": "1000000"})
        for _ in range(200):
            handler.wfile.write(b"x")
            time.sleep(seconds)

    return answer


def slow_headers(seconds: float = 0.05) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(200):
            handler.wfile.write(f"X-Line-{number}: x\r\n".encode())
            time.sleep(seconds)

    return answer


def truncated(body: bytes) -> Answer:
    """Half of what Content-Length promises."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, 200, {"Content-Length": str(len(body))})
        handler.wfile.write(body[: len(body) // 2])

    return answer


def undelimited(body: bytes, **headers: str) -> Answer:
    """No length and no chunks: the end of the connection is the end of the body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, 200, {"Connection": "close", **headers})
        handler.wfile.write(body)

    return answer


def packed(body: bytes, layers: int = 1) -> Answer:
    for _ in range(layers):
        body = gzip.compress(body)
    return page(body, **{"Content-Encoding": ", ".join(["gzip"] * layers)})


def _head(handler: BaseHTTPRequestHandler, code: int, headers: dict[str, str]) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
