"""Serves the bundled catalog pages on this machine, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from ipaddress import ip_address
from socketserver import TCPServer
from threading import Thread

ROUTES = {
    "/brackwater/gpu-servers": "brackwater.html",
    "/ostrava-forge/pricing": "ostrava-forge.html",
    "/tern-and-vale/machines": "tern-and-vale.html",
    "/tern-and-vale/machines?page=1": "tern-and-vale.html",
    "/tern-and-vale/machines?page=2": "tern-and-vale.p2.html",
    "/tern-and-vale/machines?page=3": "tern-and-vale.p3.html",
    "/quarrylight/catalog": "quarrylight.html",
}
"""Address to file. A path that is not here is 404: no address ever becomes a file name."""

ROBOTS = b"User-agent: *\nAllow: /\n"
CLIENT_SECONDS = 10
"""A client that sends nothing for so long is let go, or it would hold its thread for ever."""


class NotLoopback(ValueError):
    """The sample server was told to listen where other machines could reach it."""


@dataclass(frozen=True, slots=True)
class _Document:
    body: bytes
    content_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


@contextmanager
def serve_samples(host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve in a thread; gives the base address, such as "http://127.0.0.1:8811".

    Port 0 takes a free one. Raises NotLoopback for another host, OSError for a taken port.
    """
    if not ip_address(host).is_loopback:
        raise NotLoopback(f"host: read {host}, expected a loopback address such as 127.0.0.1")
    with _Server((host, port), _Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@cache
def _documents() -> dict[str, _Document]:
    pages = files("marketplace.samples").joinpath("pages")
    html = "text/html; charset=utf-8"
    found = {
        address: _Document(pages.joinpath(name).read_bytes(), html)
        for address, name in ROUTES.items()
    }
    return {**found, "/robots.txt": _Document(ROBOTS, "text/plain; charset=utf-8")}


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        """Without the look-up of the host's name, which waits where no resolver answers."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "linkproof-samples"
    sys_version = ""
    timeout = CLIENT_SECONDS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: a first run prints a shortlist, not its own requests."""

    def _answer(self, *, with_body: bool) -> None:
        document = _documents().get(self.path)
        if document is None:
            self._send(HTTPStatus.NOT_FOUND, _Document(b"", "text/plain; charset=utf-8"), False)
        elif document.etag in self.headers.get("If-None-Match", ""):
            self._send(HTTPStatus.NOT_MODIFIED, document, False)
        else:
            self._send(HTTPStatus.OK, document, with_body)

    def _send(self, status: HTTPStatus, document: _Document, with_body: bool) -> None:
        self.send_response(status)
        if status is not HTTPStatus.NOT_FOUND:
            self.send_header("ETag", document.etag)
        if status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", document.content_type)
            self.send_header("Content-Length", str(len(document.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(document.body)
