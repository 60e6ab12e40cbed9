"""What a site can do to us, and what stays true all the same."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace import sync
from marketplace.catalog import fetch as fetching
from marketplace.catalog import retries
from marketplace.catalog.failures import (
    BadStatus,
    Refused,
    TooSlow,
    Unreachable,
)
from marketplace.catalog.fetch import Limits, Permit, fetch
from marketplace.catalog.retries import LONGEST_REST, fetch_again, rest_asked
from marketplace.models import Evidence, Host, Listing, Provider, QuarantinedRow, Source
from marketplace.sync import turns, visits
from tests.marketplace.conftest import THREE
from tests.marketplace.site import Answer, Site, page, redirect, status, undelimited
from tests.marketplace.visiting import LATER, NOON, TOMORROW, listing, published, serve, synced

fault = pytest.mark.fault


def permit(site: Site, **limits: float) -> Permit:
    return Permit(loopback=site.loopback, limits=Limits(**{"seconds": 5, **limits}))  # type: ignore[arg-type]


def in_turn(*answers: Answer) -> Answer:
    """The first answer to the first request, and so on; the last one from then on."""
    left = list(answers)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)


# --- busy, broken and blocking sites


@fault("F03")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("99999999999999999999", LONGEST_REST),
        (format_datetime(NOON + timedelta(minutes=5), usegmt=True), 300.0),
        (format_datetime(NOON - timedelta(minutes=5), usegmt=True), 0.0),
        (format_datetime(NOON + timedelta(days=400), usegmt=True), LONGEST_REST),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("١٢", None),
        ("1e9", None),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_a_busy_site_is_given_the_rest_it_asks_for_up_to_a_day(
    header: str, seconds: float | None
) -> None:
    assert rest_asked(header, NOON) == seconds


@given(st.text(max_size=40))
def test_no_header_asks_for_more_than_a_day(text: str) -> None:
    assert 0 <= (rest_asked(text, NOON) or 0) <= LONGEST_REST


@fault("F03")
def test_a_site_that_is_busy_is_left_alone_until_then_and_no_other_site_is(
    source: Source, site: Site
) -> None:
    site.answers["/list"] = status(429, **{"Retry-After": "7200"})
    assert "answered 429" in synced(source).reason
    asked = len(site.asked)
    serve(site, THREE)
    resting = synced(source, LATER)
    assert "is left alone until 2026-11-30 14:00 UTC" in resting.reason
    assert len(site.asked) == asked
    turns.check_rest("other.example", LATER)
    assert synced(source, NOON + timedelta(hours=2, minutes=1)).outcome == "published"
    assert Host.objects.get().failures == 0


@fault("F04")
@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_broken_site_is_asked_three_times_and_then_left_alone(
    source: Source, site: Site, code: int
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = status(code)
    site.asked.clear()
    assert synced(source, LATER).outcome == "failed"
    assert site.pages_asked() == ["/list"] * 3
    assert "is left alone" in synced(source, LATER + timedelta(minutes=1)).reason
    assert site.pages_asked() == ["/list"] * 3
    assert published() == before


@fault("F04")
def test_retries_wait_a_little_and_never_the_same(site: Site) -> None:
    site.answers["/"] = status(503)
    pauses: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries, "PAUSES", (1.0, 4.0))
        for _ in range(5):
            with suppress(BadStatus):
                fetch_again(site.url + "/", permit(site), pause=pauses.append)
    assert all(0.5 <= seconds <= 1.5 for seconds in pauses[::2])
    assert all(2 <= seconds <= 6 for seconds in pauses[1::2])
    assert len(set(pauses)) == 10


@fault("F04")
def test_a_failure_that_passes_is_no_failure(source: Source, site: Site) -> None:
    site.answers["/list"] = in_turn(status(502), status(503), page(THREE, "text/plain"))
    assert synced(source).outcome == "published"


@fault("F04")
def test_each_failure_in_a_row_doubles_the_rest(source: Source, site: Site) -> None:
    site.answers["/list"] = status(500)
    rests, at = [], NOON
    for _ in range(4):
        synced(source, at)
        rest = (Host.objects.get().rest_until or at) - at
        rests.append(rest.total_seconds())
        at += rest + timedelta(seconds=1)
    assert all(later > 1.5 * before for before, later in pairwise(rests))


def test_what_is_wrong_with_one_address_is_no_reason_to_leave_its_site_alone(
    source: Source, site: Site
) -> None:
    site.answers["/list"] = status(404)
    synced(source)
    serve(site, THREE)
    assert synced(source, NOON + timedelta(minutes=1)).outcome == "published"


CAPTCHA = "<html><head><title>Just a moment...</title></head><body><table>{}</table></body></html>"


@fault("F05")
@pytest.mark.parametrize("answer", [status(401), status(403), page(CAPTCHA)])
def test_a_site_that_blocks_us_is_asked_once_and_not_read(
    source: Source, site: Site, answer: Answer
) -> None:
    synced(source)
    before = published()
    site.asked.clear()
    site.answers["/list"] = answer
    run = synced(source, LATER)
    assert run.outcome == "failed"
    assert site.pages_asked() == ["/list"]
    assert published() == before


@fault("F05")
def test_a_challenge_is_called_by_its_name(source: Source, site: Site) -> None:
    site.answers["/list"] = page(CAPTCHA)
    assert "asks whether we are human" in synced(source).reason


@fault("F06")
@pytest.mark.parametrize("code", [404, 410])
def test_a_page_that_is_not_there_is_never_an_empty_catalog(
    source: Source, site: Site, code: int
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = status(code)
    run = synced(source, LATER)
    assert (run.outcome, run.counts) == ("failed", {})
    assert published() == before


# --- slow, cut and mislabelled answers


@fault("F09")
def test_a_connection_that_nobody_answers_ends_at_its_own_deadline() -> None:
    """A backlog that is full: the kernel takes no further connection."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(address)
        started = time.monotonic()
        limits = Limits(seconds=20, connect_seconds=0.5)
        with pytest.raises(Unreachable):
            fetch(f"http://127.0.0.1:{address[1]}/", Permit(loopback=address, limits=limits))
        assert time.monotonic() - started < limits.seconds
        for filler in fillers:
            filler.close()
    assert Limits().connect_seconds == 5


@fault("F09")
def test_a_site_that_accepts_and_says_nothing_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with pytest.raises(TooSlow):
            fetch(
                f"http://127.0.0.1:{address[1]}/",
                Permit(loopback=address, limits=Limits(seconds=0.4)),
            )


@fault("F12")
@pytest.mark.parametrize("body", [b"a,b\n1,2\n", b"<html><table><tr><td>8x H100", b'[{"gpu": "H1'])
def test_a_body_without_length_must_show_its_end(source: Source, site: Site, body: bytes) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = undelimited(body)
    assert "does not show it" in synced(source, LATER).reason
    assert published() == before


MANGLED = THREE.replace("a-8", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")


@fault("F13")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (MANGLED.encode("latin-1"), "text/plain; charset=utf-8"),
        (MANGLED.encode(), "text/plain; charset=klingon"),
        (b"\xef\xbb\xbf" + MANGLED.encode(), "text/plain; charset=iso-8859-1"),
        (b"<meta charset=iso-8859-2>\n" + MANGLED.encode(), "text/plain; charset=utf-8"),
    ],
    ids=["wrong", "unknown", "mark and header", "header and meta"],
)
def test_text_in_a_doubtful_encoding_is_held(
    source: Source, site: Site, body: bytes, kind: str
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = page(body, kind)
    run = synced(source, LATER)
    assert run.outcome in ("held", "failed")
    assert "encoding" in run.reason or "Unicode" in run.reason
    assert published() == before


@fault("F13")
def test_text_whose_names_agree_is_no_doubt(source: Source, site: Site) -> None:
    site.answers["/list"] = page(MANGLED.encode(), "text/plain; charset=UTF-8")
    assert synced(source).outcome == "published"
    assert Listing.objects.filter(sku="caf\N{LATIN SMALL LETTER E WITH ACUTE}").exists()


@fault("F15")
def test_a_redirect_from_https_to_http_is_refused() -> None:
    allowed = Permit(frozenset({"shop.example"}))
    answer = httpcore.Response(302, headers=[(b"Location", b"http://shop.example/")])
    with pytest.raises(Refused, match="from https to http"):
        fetching._next_hop(answer, fetching.checked_url("https://shop.example/", allowed), allowed)


@pytest.fixture
def tls_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Permit]]:
    """A real TLS server of shop.example whose certificate nobody vouches for."""
    listener = socket.create_server(("127.0.0.1", 0))
    connect = httpcore.SyncBackend.connect_tcp

    def to_us(self: httpcore.SyncBackend, host: str, port: int, **more: object) -> object:
        return connect(self, "127.0.0.1", listener.getsockname()[1], **more)  # type: ignore[arg-type]

    def start(name: str, days: int) -> Permit:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*_certificate(tmp_path, name, days))
        threading.Thread(target=_greet, args=(listener, context), daemon=True).start()
        return Permit(frozenset({"shop.example"}), resolve=lambda *_: ["8.8.8.8"])

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", to_us)
    yield start
    listener.close()


def _certificate(folder: Path, name: str, days: int) -> tuple[str, str]:
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days)]
    command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


def _greet(listener: socket.socket, context: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1000)
                secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")


@fault("F16")
@pytest.mark.parametrize("name", ["shop.example", "other.example"])
def test_a_certificate_that_nobody_vouches_for_is_refused(
    tls_site: Callable[..., Permit], name: str
) -> None:
    with pytest.raises(Unreachable, match="SSLCertVerificationError"):
        fetch("https://shop.example/", tls_site(name, 30))


@fault("F16")
@pytest.mark.parametrize(("name", "trusted"), [("shop.example", True), ("other.example", False)])
def test_a_vouched_certificate_counts_for_its_own_name_only(
    tls_site: Callable[..., Permit],
    name: str,
    trusted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed = tls_site(name, 30)
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    monkeypatch.setattr(fetching, "_tls", lambda: context)
    if trusted:
        assert fetch("https://shop.example/", allowed).body == b"hi"
    else:
        with pytest.raises(Unreachable, match="SSLCertVerificationError"):
            fetch("https://shop.example/", allowed)


@fault("F17")
def test_a_site_that_disallows_us_gets_no_page_request(source: Source, site: Site) -> None:
    site.answers["/robots.txt"] = page("User-agent: *\nDisallow: /\n", "text/plain")
    assert synced(source).outcome == "failed"
    source.refresh_from_db()
    assert (source.robots, site.pages_asked()) == ("disallowed", [])


@fault("F18")
@pytest.mark.parametrize(
    "answer",
    [status(500), status(503), redirect("http://169.254.169.254/"), page(b"#" * 33 * 2**20)],
    ids=["500", "503", "redirect inside", "huge"],
)
def test_robots_that_cannot_be_had_disallow_now_and_are_asked_for_again(
    source: Source, site: Site, answer: Answer
) -> None:
    site.answers["/robots.txt"] = answer
    assert synced(source).outcome == "failed"
    assert site.pages_asked() == []
    del site.answers["/robots.txt"]
    assert synced(source, LATER).outcome == "published"


@fault("F19")
@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"%PDF-1.7 8x H100", "a PDF"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"PK\x03\x04", "an archive"),
        (b'{"error": "not found"}', "JSON"),
        (b"  [1]", "JSON"),
    ],
)
def test_a_body_is_what_it_is_and_not_what_its_header_says(
    source: Source, site: Site, body: bytes, name: str
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = page(body, "text/html")
    run = synced(source, LATER)
    assert run.outcome == "failed"
    assert name in run.reason
    assert published() == before


# --- what a catalog says


@fault("F20")
@pytest.mark.parametrize("text", ["", "<html></html>", "cpu\ncpu\n"])
def test_an_empty_page_is_no_empty_catalog(source: Source, site: Site, text: str) -> None:
    synced(source)
    before = published()
    serve(site, text)
    assert synced(source, LATER).outcome in ("held", "failed")
    assert published() == before


TEN = "".join(f"m{n}|eu|H100|8|80|{20 + n}.00\n" for n in range(10))
ONE = TEN.splitlines(keepends=True)[0]


@fault("F21")
def test_a_great_loss_is_held_and_published_once_a_second_visit_agrees(
    source: Source, site: Site
) -> None:
    serve(site, TEN)
    synced(source)
    before = published()
    serve(site, ONE)
    first = synced(source, LATER)
    assert (first.outcome, first.reason) == ("held", "9 of 10 listings are missing.")
    assert synced(source, LATER + timedelta(minutes=5)).outcome == "held"
    assert published() == before
    agreed = synced(source, LATER + timedelta(hours=1))
    assert (agreed.outcome, agreed.counts["gone"]) == ("published", 9)


@fault("F21")
def test_two_visits_that_miss_different_listings_do_not_agree(source: Source, site: Site) -> None:
    serve(site, TEN)
    synced(source)
    serve(site, ONE)
    assert synced(source, LATER).outcome == "held"
    serve(site, TEN.splitlines(keepends=True)[5])
    assert synced(source, LATER + timedelta(hours=1)).outcome == "held"


@fault("F21")
def test_pages_that_a_curator_rejected_stay_held(source: Source, site: Site) -> None:
    serve(site, TEN)
    synced(source)
    serve(site, ONE)
    synced(source, LATER)
    assert sync.reject(source.pk, now=LATER) is not None
    for hours in (2, 3):
        run = synced(source, NOON + timedelta(hours=hours))
        assert (run.outcome, run.reason[:30]) == ("held", "A curator rejected these pages")
    serve(site, TEN)
    assert synced(source, NOON + timedelta(hours=4)).outcome == "unchanged"


def test_nothing_held_is_nothing_to_reject(source: Source) -> None:
    assert sync.reject(source.pk) is None
    synced(source)
    assert sync.reject(source.pk) is None


CSV = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region\n"
    "8xH100,H100,8.0,208.0,1800.0,,23.92,11.11,eu\n"
    "1xL4,L4,1.0,8.0,32.0,,0.71,0.30,eu\n"
)


@pytest.fixture
def feed(source: Source, site: Site) -> Source:
    """The source as a feed with columns."""
    source.adapter = "skypilot"
    source.save()
    site.answers["/list"] = page(CSV, "text/csv")
    synced(source)
    return source


def swapped(text: str, one: str, other: str) -> str:
    first, *rest = text.splitlines(keepends=True)
    return "".join([first.replace(one, "~").replace(other, one).replace("~", other), *rest])


@fault("F22")
@pytest.mark.parametrize(
    "text",
    [
        swapped(CSV, "Price,SpotPrice", "SpotPrice,Price"),
        CSV.replace("SpotPrice", "BidPrice"),
        CSV.replace("Price,SpotPrice", "Monthly,Price"),
        CSV.replace("InstanceType", "Name"),
    ],
    ids=["swapped", "renamed", "shifted", "no name"],
)
def test_columns_that_moved_are_held_and_no_value_shifts(
    feed: Source, site: Site, text: str
) -> None:
    before = published()
    site.answers["/list"] = page(text, "text/csv")
    run = synced(feed, LATER)
    assert run.outcome in ("held", "failed")
    assert "olumns" in run.reason
    assert published() == before


@fault("F22")
def test_a_table_whose_heads_moved_is_held(source: Source, site: Site) -> None:
    def table(*heads: str) -> str:
        row = "<tr><td>A-8</td><td>8x H100 80GB</td><td>$20.00</td></tr>"
        other = "<tr><td>B-1</td><td>1x L40S 48GB</td><td>$1.10</td></tr>"
        names = "".join(f"<th>{head}</th>" for head in heads)
        return f"<html><body><table><tr>{names}</tr>{row}{other}</table></body></html>"

    source.adapter = "page"
    source.save()
    site.answers["/list"] = page(table("Name", "GPU", "Price per hour"))
    assert synced(source).outcome == "published"
    before = published()
    site.answers["/list"] = page(table("Name", "GPU", "Price per month"))
    run = synced(source, LATER)
    assert (run.outcome, run.reason[:20]) == ("held", "The columns changed;")
    assert published() == before


@fault("F34")
def test_two_layouts_that_take_turns_are_each_recognised(feed: Source, site: Site) -> None:
    other = CSV.replace("SpotPrice", "BidPrice")
    site.answers["/list"] = page(other, "text/csv")
    assert synced(feed, LATER).outcome == "held"
    assert sync.reparse(feed.pk, accept=True, now=LATER + timedelta(minutes=1)) is not None
    for number in range(4):
        site.answers["/list"] = page(CSV if number % 2 else other, "text/csv")
        run = synced(feed, LATER + timedelta(hours=1 + number))
        assert run.outcome in ("published", "unchanged")
        assert run.counts["gone"] == run.counts["new"] == 0


@fault("F23")
@pytest.mark.parametrize("price", ["2000.00", "0.02", "200.0", "2.0"])
def test_a_price_that_jumped_is_set_aside_and_the_others_are_published(
    source: Source, site: Site, price: str
) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", price).replace("1.10", "1.20"))
    run = synced(source, LATER)
    assert run.counts["quarantined"] == {"price_jumped": 1}
    assert listing("a-8").machine_hour_amount == Decimal(20)
    assert listing("c-1").machine_hour_amount == Decimal("1.20")
    assert QuarantinedRow.objects.get().sku == "a-8"


@fault("F23")
def test_a_jump_that_a_curator_accepts_is_published(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", "2.00"))
    synced(source, LATER)
    accepted = sync.reparse(source.pk, accept=True, now=LATER + timedelta(minutes=1))
    assert accepted is not None
    assert listing("a-8").machine_hour_amount == Decimal(2)
    assert synced(source, LATER + timedelta(hours=1)).outcome == "unchanged"


@fault("F23")
def test_a_sale_is_no_jump(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("20.00", "10.00"))
    assert synced(source, LATER).counts["quarantined"] == {}


@fault("F23")
def test_a_price_far_from_what_others_ask_is_set_aside(source: Source, site: Site) -> None:
    for name in ("one", "two", "three", "four"):
        other = _other_source(source, name)
        site.answers[f"/{name}"] = page(
            "".join(f"{name}{n}|eu|H100|8|80|{20 + n}.00\n" for n in range(3)), "text/plain"
        )
        synced(other)
    serve(site, THREE.replace("20.00", "2.00").replace("21.00", "180.00"))
    run = synced(source)
    assert run.counts["quarantined"] == {"price_outlying": 2}
    assert Listing.objects.filter(source=source).get().sku == "c-1"


@fault("F23")
def test_what_old_cards_really_cost_is_believed_though_it_differs_twentyfold(
    source: Source, site: Site
) -> None:
    for name, price in {"one": 1, "two": 1, "three": 2, "four": 23}.items():
        other = _other_source(source, name)
        site.answers[f"/{name}"] = page(f"{name}|eu|H100|8|80|{price}.00\n", "text/plain")
        synced(other)
    assert synced(source).counts["quarantined"] == {}


def _other_source(source: Source, name: str) -> Source:
    return Source.objects.create(
        provider=Provider.objects.create(slug=name, name=name),
        key=name,
        kind="page",
        adapter="lines",
        url=source.url.replace("/list", f"/{name}"),
        bundled=True,
    )


CARD = "<section><article><h3>A-8</h3><p>8x H100 80GB</p><p>{}</p></article>"
CARD += "<article><h3>B-1</h3><p>1x L40S 48GB</p><p>$1.10/hour</p></article></section>"


@fault("F24")
@pytest.mark.parametrize("price", ["$20.00 per GPU/hour", "$20.00/month", "€20.00/hour"])
def test_a_price_that_means_something_else_now_is_set_aside(
    source: Source, site: Site, price: str
) -> None:
    source.adapter = "page"
    source.save()
    site.answers["/list"] = page(
        f"<html><body>{CARD}</body></html>".format("$20.00 per machine/hour")
    )
    synced(source)
    before = Listing.objects.get(gpu_model="H100").machine_hour_amount
    assert before == 20
    site.answers["/list"] = page(f"<html><body>{CARD}</body></html>".format(price))
    run = synced(source, LATER)
    assert sum(run.counts["quarantined"].values()) == 1
    assert Listing.objects.get(gpu_model="H100").machine_hour_amount == before


@fault("F24")
def test_a_catalog_that_lost_half_of_its_prices_is_held(source: Source, site: Site) -> None:
    synced(source)
    before = published()
    serve(site, "a-8|eu|H100|8|80|\nb-8|eu|H100|8|80|\nc-1|us|L40S|1|48|1.10\n")
    run = synced(source, LATER)
    assert (run.outcome, run.reason) == ("held", "2 of 3 listings lost their price.")
    assert published() == before


@fault("F25")
def test_one_id_with_two_contents_is_believed_neither_time(source: Source, site: Site) -> None:
    serve(site, THREE + "a-8|eu|H100|8|80|22.00\n")
    run = synced(source)
    assert run.counts["quarantined"] == {"duplicate_key": 2}
    assert set(Listing.objects.values_list("sku", flat=True)) == {"b-8", "c-1"}


@fault("F26")
@pytest.mark.parametrize("now", ["a-8|eu|A100|8|80|20.00", "a-8|eu|H100|4|80|20.00"])
def test_a_name_given_to_other_hardware_inherits_neither_evidence_nor_history(
    source: Source, site: Site, now: str
) -> None:
    synced(source)
    old = listing("a-8")
    corrected = {"link": {"value": "nvswitch", "grade": 1, "source": "a mail"}}
    Listing.objects.filter(pk=old.pk).update(corrections=corrected)
    serve(site, THREE.replace("a-8|eu|H100|8|80|20.00", now))
    run = synced(source, LATER)
    assert (run.counts["new"], run.counts["gone"]) == (1, 1)
    new = Listing.objects.get(sku="a-8", gone_at=None)
    assert (new.pk != old.pk, new.corrections, new.generation) == (True, {}, 1)
    assert not Evidence.objects.filter(listing=new).exists()
    assert (new.first_seen, new.prices.count()) == (LATER, 1)
    assert Listing.objects.get(pk=old.pk).gone_at == LATER
    assert synced(source, LATER + timedelta(hours=1)).outcome == "unchanged"


@fault("F26")
def test_a_longer_name_of_the_same_card_is_the_same_machine(source: Source, site: Site) -> None:
    synced(source)
    serve(site, THREE.replace("a-8|eu|H100|", "a-8|eu|H100 NVL|"))
    assert synced(source, LATER).counts["new"] == 0


@fault("F27")
def test_a_new_name_of_the_same_machine_is_a_new_listing_without_proof(
    source: Source, site: Site
) -> None:
    synced(source)
    Listing.objects.filter(sku="a-8").update(corrections={"link": {"value": "nvswitch"}})
    serve(site, THREE.replace("a-8", "a-8-v2"))
    run = synced(source, LATER)
    assert (run.counts["new"], run.counts["gone"]) == (1, 1)
    assert listing("a-8-v2").corrections == {}
    assert listing("a-8").gone_at == LATER


# --- lists of many pages


def paged(site: Site, *texts: str) -> None:
    for number, text in enumerate(texts):
        following = f"next /list?{number + 1}\n" if number + 1 < len(texts) else ""
        site.answers[f"/list?{number}" if number else "/list"] = page(
            text + following, "text/plain"
        )


@fault("F28")
def test_a_list_with_a_missing_page_is_not_published(source: Source, site: Site) -> None:
    synced(source)
    before = published()
    paged(site, *(f"p{n}|eu|L4|1|24|1.0{n}\n" for n in range(9)))
    del site.answers["/list?6"]
    assert synced(source, LATER).outcome == "failed"
    assert published() == before


@fault("F28")
def test_a_page_that_leads_to_itself_is_read_once(source: Source, site: Site) -> None:
    serve(site, THREE + "next /list\n")
    run = synced(source)
    assert (run.outcome, run.counts["pages"]) == ("published", 1)


@fault("F28")
def test_a_list_without_end_is_cut_and_not_published(
    source: Source, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visits, "PAGE_CAP", 5)
    paged(site, *(f"p{n}|eu|L4|1|24|1.0{n}\n" for n in range(9)))
    run = synced(source)
    assert (run.outcome, run.counts["pages"], Listing.objects.count()) == ("held", 5, 0)


@fault("F29")
def test_a_list_that_moved_while_it_was_read_is_read_again(source: Source, site: Site) -> None:
    rows = THREE.splitlines(keepends=True)
    paged(site, rows[0] + rows[1], rows[2])
    site.answers["/list?1"] = in_turn(
        page(rows[1] + rows[2], "text/plain"), page(rows[2], "text/plain")
    )
    run = synced(source)
    assert (run.outcome, run.counts["listings"], run.counts["pages"]) == ("published", 3, 2)
    assert site.pages_asked() == ["/list", "/list?1"] * 2


@fault("F29")
def test_a_list_that_keeps_moving_is_held(source: Source, site: Site) -> None:
    rows = THREE.splitlines(keepends=True)
    paged(site, rows[0] + rows[1], rows[2])
    site.answers["/list?1"] = in_turn(
        page(rows[1] + rows[2], "text/plain"), page(rows[0] + rows[2], "text/plain")
    )
    run = synced(source)
    assert (run.outcome, run.reason) == ("held", "The catalog changed between its pages.")
    assert not Listing.objects.exists()


@fault("F29")
def test_a_row_that_stands_on_every_page_is_no_movement(source: Source, site: Site) -> None:
    rows = THREE.splitlines(keepends=True)
    paged(site, rows[0] + rows[1], rows[0] + rows[2])
    assert synced(source).counts["listings"] == 3


# --- numbers, dates and sizes


@fault("F30")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("23.92", "-23.92"),
        ("23.92", "0"),
        ("23.92", "NaN"),
        ("23.92", "Infinity"),
        ("23.92", "1e30"),
        ("8.0,208.0", "0,208.0"),
        ("8.0,208.0", "-8,208.0"),
        ("8.0,208.0", "NaN,208.0"),
    ],
)
def test_a_number_that_cannot_be_is_never_stored(
    feed: Source, site: Site, column: str, value: str
) -> None:
    Listing.objects.all().delete()
    site.answers["/list"] = page(CSV.replace(column, value), "text/csv")
    synced(feed, LATER)
    row = Listing.objects.filter(sku="8xH100").first()
    if row is not None:
        assert row.gpu_count == 8
        assert not row.prices.filter(purchase="on_demand").exists()
    else:
        assert QuarantinedRow.objects.filter(sku="8xH100").exists()


def dated(at: datetime) -> dict[str, str]:
    return {"Last-Modified": format_datetime(at, usegmt=True)}


@fault("F31")
def test_a_page_older_than_the_published_one_is_held(source: Source, site: Site) -> None:
    site.answers["/list"] = page(THREE, "text/plain", **dated(NOON - timedelta(hours=1)))
    synced(source)
    before = published()
    older = THREE.replace("20.00", "19.00")
    site.answers["/list"] = page(older, "text/plain", **dated(NOON - timedelta(days=3)))
    run = synced(source, LATER)
    assert (run.outcome, "older than the published one" in run.reason) == ("held", True)
    assert published() == before
    again = sync.reparse(source.pk, now=LATER + timedelta(minutes=1))
    assert again is not None
    assert again.outcome == "held"


@fault("F31")
def test_a_date_from_the_future_moves_no_clock_of_ours(source: Source, site: Site) -> None:
    future = {**dated(NOON + timedelta(days=900)), "Date": "Fri, 01 Jan 2090 00:00:00 GMT"}
    site.answers["/list"] = page(THREE, "text/plain", **future)
    synced(source)
    assert listing("a-8").last_seen == NOON
    newer = THREE.replace("20.00", "19.00")
    site.answers["/list"] = page(newer, "text/plain", **dated(NOON))
    assert synced(source, LATER).outcome == "published"


@fault("F32")
def test_what_is_not_known_stays_unknown_and_the_row_is_kept(feed: Source, site: Site) -> None:
    unknown = "4xZ9000,Zorg Z9000,4.0,,,,,,\n"
    site.answers["/list"] = page(CSV + unknown, "text/csv")
    assert synced(feed, LATER).counts["new"] == 1
    row = listing("4xZ9000")
    assert (row.gpu_count, row.vram_bytes_per_gpu, row.vcpus, row.link) == (4, None, None, None)
    assert row.machine_hour_amount is None


@fault("F33")
def test_a_page_beyond_the_cap_is_cut_off_and_nothing_of_it_is_published(
    source: Source, site: Site
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = page(b"x" * (Limits().wire_bytes + 1), "text/plain")
    run = synced(source, LATER)
    assert (run.outcome, "bytes" in run.reason) == ("failed", True)
    assert published() == before


WRONG: list[Answer] = [
    *map(status, (401, 403, 404, 410, 429, 500, 502, 503, 504)),
    page(b""),
    page(b"%PDF"),
    page(CAPTCHA),
    redirect("http://169.254.169.254/"),
    page(b"\xff\xfe|", "text/plain; charset=utf-8"),
]


@fault("F35")
@pytest.mark.parametrize("answer", WRONG)
def test_one_source_that_fails_keeps_no_other_from_publishing(
    source: Source, site: Site, answer: Answer
) -> None:
    others = [_other_source(source, f"s{number}") for number in range(19)]
    for number, other in enumerate(others):
        text = f"x{number}|eu|L4|1|24|1.00\n"
        site.answers[f"/{other.key}"] = page(text, "text/plain")
    site.answers["/list"] = answer
    # One site for all would rest as one: each source has a name of its own for it.
    outcomes = []
    for each in [source, *others]:
        Host.objects.all().delete()
        outcomes.append(synced(each, TOMORROW).outcome)
    assert outcomes == ["failed", *["published"] * 19]
