from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.catalog.addresses import is_denied
from marketplace.catalog.failures import (
    BadStatus,
    Blocked,
    Busy,
    Damaged,
    FetchError,
    Missing,
    Refused,
    RobotsDisallow,
    RobotsUnreachable,
    TooLarge,
    TooSlow,
    Unreachable,
)
from marketplace.catalog.fetch import Limits, Permit, Validators, checked_url, fetch, resolve_name
from marketplace.catalog.robots import heed_robots
from tests.marketplace.site import (
    Answer,
    Site,
    packed,
    page,
    redirect,
    slow_headers,
    status,
    trickle,
    truncated,
    undelimited,
    unless_known,
)

DENIED = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.1.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


def permit(site: Site, **limits: float) -> Permit:
    return Permit(loopback=site.loopback, limits=Limits(**{"seconds": 5, **limits}))  # type: ignore[arg-type]


@pytest.mark.fault("F80")
@pytest.mark.parametrize("address", DENIED)
def test_no_source_may_use_an_address_that_is_not_public(address: str) -> None:
    assert is_denied(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_a_public_address_is_permitted_in_any_spelling(address: str) -> None:
    assert not is_denied(address)


@pytest.mark.fault("F80")
@given(st.ip_addresses(v=4))
def test_wrapping_an_address_never_makes_it_permitted(address: object) -> None:
    number = int(address)  # type: ignore[call-overload]
    wrapped = (f"::ffff:{address}", f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}")
    wrapped += (f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",)
    if is_denied(str(address)):
        assert all(map(is_denied, wrapped))


def test_a_page_comes_with_its_headers_and_its_bytes(site: Site) -> None:
    site.answers["/"] = page("<html>é</html>", ETag='"a"')
    fetched = fetch(site.url + "/", permit(site))
    assert (fetched.status, fetched.body) == (200, "<html>é</html>".encode())
    assert fetched.headers["etag"] == '"a"'
    assert fetched.delimited


def test_packed_bytes_are_unpacked(site: Site) -> None:
    site.answers["/"] = packed(b"x" * 10_000)
    fetched = fetch(site.url + "/", permit(site))
    assert fetched.body == b"x" * 10_000
    assert fetched.wire_bytes < 1000


def test_a_known_page_is_not_sent_again(site: Site) -> None:
    site.answers["/"] = unless_known('"v1"', "<html></html>")
    fetched = fetch(site.url + "/", permit(site), Validators(etag='"v1"'))
    assert (fetched.status, fetched.body) == (304, b"")


@pytest.mark.fault("F02")
def test_a_304_that_nobody_asked_for_is_no_page(site: Site) -> None:
    site.answers["/"] = lambda handler: handler.send_response(304) or handler.end_headers()
    with pytest.raises(BadStatus, match="answered 304"):
        fetch(site.url + "/", permit(site))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (500, BadStatus),
        (503, BadStatus),
        (401, Blocked),
        (403, Blocked),
        (404, Missing),
        (410, Missing),
    ],
)
def test_each_bad_answer_has_its_name(site: Site, code: int, kind: type[BadStatus]) -> None:
    site.answers["/"] = status(code)
    with pytest.raises(kind) as caught:
        fetch(site.url + "/", permit(site))
    assert type(caught.value) is kind


def test_a_busy_site_says_when_to_come_back(site: Site) -> None:
    site.answers["/"] = status(429, **{"Retry-After": "120"})
    with pytest.raises(Busy) as caught:
        fetch(site.url + "/", permit(site))
    assert caught.value.retry_after == "120"


def test_no_message_repeats_a_query_or_the_text_of_a_page(site: Site) -> None:
    site.answers["/list?token=canary"] = status(500)
    with pytest.raises(BadStatus) as caught:
        fetch(site.url + "/list?token=canary", permit(site))
    assert "canary" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.fault("F07", "F08")
@pytest.mark.parametrize("answer", [trickle(), slow_headers()], ids=["body", "headers"])
def test_the_deadline_holds_for_the_whole_fetch(site: Site, answer: Answer) -> None:
    site.answers["/"] = answer
    started = time.monotonic()
    with pytest.raises(TooSlow, match=r"0\.4 s"):
        fetch(site.url + "/", permit(site, seconds=0.4))
    assert time.monotonic() - started < 8, "to its end it would take ten seconds"


@pytest.mark.fault("F10")
def test_a_resolver_that_never_answers_ends_within_the_deadline() -> None:
    slow = Permit(
        frozenset({"slow.example"}), limits=Limits(seconds=0.3), resolve=_resolver_that_waits
    )
    with pytest.raises(Unreachable, match="cannot be resolved"):
        fetch("http://slow.example/", slow)


def _resolver_that_waits(host: str, port: int, seconds: float) -> list[str]:
    time.sleep(seconds)
    raise TimeoutError


@pytest.mark.fault("F10")
def test_a_name_that_does_not_exist_is_an_os_error() -> None:
    with pytest.raises(OSError, match=r"Errno|no answer"):
        resolve_name("does-not-exist.invalid", 80, 5)


@pytest.mark.fault("F08", "F11", "F12")
@pytest.mark.parametrize(
    "answer",
    [
        truncated(b"x" * 1000),
        undelimited(gzip.compress(b"x" * 100_000)[:-20], **{"Content-Encoding": "gzip"}),
        page(b"not packed", **{"Content-Encoding": "gzip"}),
        page(gzip.compress(b"x") + b"more", **{"Content-Encoding": "gzip"}),
        page(b"x", **{"X-Long": "y" * 300_000}),
    ],
    ids=["length", "cut gzip", "no gzip", "gzip and more", "huge header"],
)
def test_a_damaged_answer_is_no_page(site: Site, answer: Answer) -> None:
    site.answers["/"] = answer
    with pytest.raises(Damaged):
        fetch(site.url + "/", permit(site))


def test_a_body_without_a_stated_end_is_marked(site: Site) -> None:
    site.answers["/"] = undelimited(b"a,b\n1,2\n")
    assert not fetch(site.url + "/", permit(site)).delimited


@pytest.mark.fault("F86")
def test_more_bytes_than_the_cap_are_refused_on_the_wire_and_unpacked(site: Site) -> None:
    site.answers["/wire"] = page(b"x" * 2000)
    site.answers["/bomb"] = packed(b"\0" * 5_000_000)
    with pytest.raises(TooLarge, match="1000 bytes"):
        fetch(site.url + "/wire", permit(site, wire_bytes=1000))
    with pytest.raises(TooLarge, match="unpacked"):
        fetch(site.url + "/bomb", permit(site, body_bytes=1_000_000))


def test_the_cap_itself_is_permitted(site: Site) -> None:
    site.answers["/plain"] = page(b"x" * 1000)
    site.answers["/packed"] = packed(b"x" * 1000)
    for path in ("/plain", "/packed"):
        fetched = fetch(site.url + path, permit(site, wire_bytes=1000, body_bytes=1000))
        assert len(fetched.body) == 1000


@pytest.mark.fault("F86")
@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate"])
def test_only_one_layer_of_gzip_is_unpacked(site: Site, encoding: str) -> None:
    site.answers["/"] = page(b"x", **{"Content-Encoding": encoding})
    with pytest.raises(Refused):
        fetch(site.url + "/", permit(site))


@pytest.mark.fault("F14")
def test_five_redirects_are_followed_and_six_are_not(site: Site) -> None:
    for hop in range(6):
        site.answers[f"/{hop}"] = redirect(f"/{hop + 1}")
    site.answers["/6"] = page("<html></html>")
    assert fetch(site.url + "/1", permit(site)).url == site.url + "/6"
    with pytest.raises(Refused, match="more than 5 redirects"):
        fetch(site.url + "/0", permit(site))


@pytest.mark.fault("F15", "F82", "F85")
@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "//[::1]/",
        "http://[broken/",
    ],
)
def test_a_redirect_to_where_the_permit_does_not_reach_is_refused(site: Site, target: str) -> None:
    site.answers["/"] = redirect(target)
    with pytest.raises(Refused):
        fetch(site.url + "/", permit(site))
    assert site.asked == ["/"]


@pytest.mark.fault("F81", "F84", "F85")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://shop.example/",
        "gopher://shop.example/",
        "http:///list",
        "http://user@shop.example/",
        "http://shop.example:8080/",
        "http://shop.example\\@evil.example/",
        "http://shop.example/ list",
        "http://shop.example/\nHost: evil.example",
        "http://shop.example.evil.example/",
        "http://evil.example/?shop.example",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127。0。0。1/",
        "http://①②⑦.0.0.1/",
        "shop.example",
        "",
    ],
)
def test_an_address_outside_the_permit_is_refused_before_any_socket(url: str) -> None:
    with pytest.raises(Refused):
        fetch(url, Permit(frozenset({"shop.example"}), resolve=_never_asked))


def _never_asked(host: str, port: int, seconds: float) -> list[str]:
    raise AssertionError(f"{host} was resolved")


@pytest.mark.parametrize("url", ["https://shop.example/a?b=c#d", "http://SHOP.example:80/"])
def test_the_permitted_host_is_permitted_in_its_usual_spellings(url: str) -> None:
    assert checked_url(url, Permit(frozenset({"shop.example"}))).host == "shop.example"


@pytest.mark.fault("F84")
@given(st.text(max_size=60))
def test_any_text_is_refused_or_names_the_permitted_host(text: str) -> None:
    permitted = Permit(frozenset({"shop.example"}))
    for url in (text, f"http://{text}", f"http://shop.example{text}"):
        with suppress(Refused):
            assert checked_url(url, permitted).host == "shop.example"


def resolving_to(*addresses: str) -> Callable[[str, int, float], list[str]]:
    return lambda host, port, seconds: list(addresses)


@pytest.mark.fault("F80")
@pytest.mark.parametrize("address", DENIED)
def test_a_permitted_name_that_resolves_inside_is_refused(address: str) -> None:
    inside = Permit(frozenset({"shop.example"}), resolve=resolving_to(address))
    with pytest.raises(Refused, match="no source may use"):
        fetch("http://shop.example/", inside)


@pytest.mark.fault("F83")
def test_one_inner_address_among_public_ones_is_enough_to_refuse() -> None:
    mixed = Permit(frozenset({"shop.example"}), resolve=resolving_to("8.8.8.8", "10.0.0.1"))
    with pytest.raises(Refused, match=r"10\.0\.0\.1"):
        fetch("http://shop.example/", mixed)


def test_the_loopback_exception_holds_for_one_port_and_one_host(site: Site) -> None:
    site.answers["/"] = page("<html></html>")
    other = Permit(loopback=("127.0.0.1", site.server_port + 1))
    for refused in (other, Permit(), Permit(frozenset({"127.0.0.1"}))):
        with pytest.raises(Refused):
            fetch(site.url + "/", refused)
    assert site.asked == []


def test_the_loopback_name_may_not_resolve_anywhere_else() -> None:
    strange = Permit(loopback=("samples.example", 8811), resolve=resolving_to("8.8.8.8"))
    with pytest.raises(Refused, match="no source may use"):
        fetch("http://samples.example:8811/", strange)


def test_nobody_listening_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="did not accept"):
        fetch("http://127.0.0.1:1/", Permit(loopback=("127.0.0.1", 1)))


@pytest.mark.fault("F15")
def test_no_cookie_and_no_proxy_of_the_environment_is_used(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    site.answers["/"] = status(302, Location="/next", **{"Set-Cookie": "a=b"})
    site.answers["/next"] = page("<html></html>")
    assert fetch(site.url + "/", permit(site)).status == 200
    assert all("cookie" not in headers for headers in site.headers_seen)


def test_robots_that_disallow_are_heeded(site: Site) -> None:
    site.answers["/robots.txt"] = page("User-agent: *\nDisallow: /private\n", "text/plain")
    heed_robots(site.url + "/public", permit(site))
    with pytest.raises(RobotsDisallow):
        heed_robots(site.url + "/private/list", permit(site))


@pytest.mark.fault("F18")
def test_absent_robots_allow(site: Site) -> None:
    heed_robots(site.url + "/list", permit(site))
    assert site.asked == ["/robots.txt"]


@pytest.mark.fault("F18")
@pytest.mark.parametrize("answer", [status(503), status(429), truncated(b"User-agent: *\n" * 9)])
def test_robots_that_cannot_be_had_disallow_for_now(site: Site, answer: Answer) -> None:
    site.answers["/robots.txt"] = answer
    with pytest.raises(RobotsUnreachable):
        heed_robots(site.url + "/list", permit(site))


def test_every_failure_is_a_fetch_error() -> None:
    kinds = (Refused, RobotsDisallow, Unreachable, RobotsUnreachable, TooSlow, TooLarge, Damaged)
    assert all(issubclass(kind, FetchError) for kind in (*kinds, BadStatus))
