"""First light: from an empty folder to a served shortlist, by the road that every run takes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from django.conf import settings
from django.core.management import call_command

from marketplace import evaluations, sources, sync
from marketplace.models import Listing, Source
from marketplace.samples.server import serve_samples

Write = Callable[[str], object]

SHOWN = 12
"""Candidates printed for each preset: enough to see where warnings differ."""


class PortTaken(OSError):
    """The web address is in use, so serving would fail after all the work."""


def prepare(write: Write) -> None:
    """Tables and known sources. A second call changes nothing."""
    call_command("migrate", verbosity=0)
    sources.keep_known_sources()
    write(f"Database and sources are ready in {settings.DATA_DIR.name}/.")


def sync_samples(write: Write) -> bool:
    """Every bundled catalog over HTTP; tell how each went and whether all went well."""
    runs = [sync.sync_source(source.pk) for source in Source.objects.filter(bundled=True)]
    for run in filter(None, runs):
        counts = run.counts
        write(
            f"  {run.source.key:<24} {run.outcome:<10} {counts.get('listings', 0):>3} listings, "
            f"{sum(counts.get('quarantined', {}).values())} quarantined, "
            f"{sum(counts.get('left_out', {}).values())} left out"
            + (f": {run.reason}" if run.reason else "")
        )
    write(f"{Listing.objects.filter(gone_at=None).count()} current listings.")
    return all(run is None or run.outcome in ("published", "unchanged") for run in runs)


def judge_presets(write: Write) -> None:
    """Keep a verdict of each preset on each configuration, then print the shortlists."""
    for workload in evaluations.keep_presets():
        write(f"\n{'=' * 100}")
        call_command("shortlist", workload.slug, limit=SHOWN)


def sample_address() -> tuple[str, int]:
    """Where the sample server listens; another port when a second copy already runs here."""
    host, port = settings.SAMPLE_SERVER_ADDRESS
    if "LINKPROOF_SAMPLE_URL" in os.environ or _is_free(host, port):
        return host, port
    with socket.create_server((host, 0)) as probe:
        os.environ["LINKPROOF_SAMPLE_URL"] = f"http://{host}:{probe.getsockname()[1]}"
    # Settings and both children read the address from the environment: start over with it.
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606  our own command line


def _is_free(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_server((host, port), reuse_port=False):
        return True
    return False


@contextmanager
def sample_server() -> Iterator[str]:
    with serve_samples(*sample_address()) as base:
        yield base


def serve(port: int, write: Write) -> int:
    """The site and the scheduler beside it, until one of them ends or a signal comes."""
    if not _is_free("127.0.0.1", port):
        raise PortTaken(f"PORT: read {port}, which is in use; expected a free port, as PORT=9000")
    children = [subprocess.Popen(command) for command in _commands(port)]  # noqa: S603  fixed
    write(f"\nServing on http://127.0.0.1:{port}/ (Ctrl-C ends it).")
    try:
        with _terminated_like_interrupted():
            return children[0].wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _stop(children)


def _commands(port: int) -> list[list[str]]:
    run = [sys.executable, "-m"]
    return [
        [*run, "gunicorn", "marketplace.wsgi", f"--bind=127.0.0.1:{port}", "--threads=4"],
        [*run, "celery", "-A", "marketplace", "beat", "--loglevel=warning", "--pidfile="],
    ]


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """A supervisor's SIGTERM ends the children as Ctrl-C does."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
