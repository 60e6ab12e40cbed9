"""The local server for the bundled pages: those, on this machine, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from marketplace.catalog.registry import SAMPLES
from marketplace.samples.server import ROUTES, NotLoopback, serve_samples


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_samples() as address:
        yield address


def ask(server: str, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(urlsplit(server).netloc, timeout=5)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=names)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ROUTES)
def test_each_page_is_whole_html_in_utf8(server: str, path: str) -> None:
    answer, body = ask(server, path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.decode().rstrip().endswith("</html>")
    assert int(answer.headers["Content-Length"]) == len(body)


def test_every_bundled_source_is_served(server: str) -> None:
    assert [ask(server, sample.url)[0].status for sample in SAMPLES] == [200] * len(SAMPLES)


def test_a_known_page_is_not_sent_again(server: str) -> None:
    first, _ = ask(server, SAMPLES[0].url)
    again, body = ask(server, SAMPLES[0].url, If_None_Match=first.headers["ETag"])
    assert (again.status, body) == (304, b"")


def test_another_etag_gets_the_page(server: str) -> None:
    answer, body = ask(server, SAMPLES[0].url, If_None_Match='"other"')
    assert answer.status == 200
    assert body


def test_head_has_no_body(server: str) -> None:
    answer, body = ask(server, SAMPLES[0].url, "HEAD")
    assert (answer.status, body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0


def test_robots_allow_reading(server: str) -> None:
    answer, body = ask(server, "/robots.txt")
    assert (answer.status, body) == (200, b"User-agent: *\nAllow: /\n")


@pytest.mark.parametrize(
    "path", ["/", "/pages/brackwater.html", "/../server.py", "/%2e%2e/server.py", "//etc/passwd"]
)
def test_no_address_becomes_a_file_name(server: str, path: str) -> None:
    assert ask(server, path)[0].status == 404


def test_nothing_can_be_posted(server: str) -> None:
    assert ask(server, SAMPLES[0].url, "POST")[0].status == 501


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7"])
def test_other_machines_cannot_reach_it(host: str) -> None:
    with pytest.raises(NotLoopback, match="expected a loopback address"), serve_samples(host):
        pass


def test_it_stops_when_its_block_ends() -> None:
    with serve_samples() as address:
        place = (urlsplit(address).hostname or "", urlsplit(address).port or 0)
        socket.create_connection(place, timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=5)


def test_a_taken_port_is_an_error() -> None:
    with serve_samples() as address:
        taken = serve_samples(port=urlsplit(address).port or 0)
        with pytest.raises(OSError, match="in use"), taken:
            pass
