"""What can happen to a worker and its schedule, and what stays true all the same.

A worker is a process of its own with a database of its own, and is really killed.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import Settings

from marketplace import sync, tasks
from marketplace.catalog import registry
from marketplace.catalog.base import Batch, Page
from marketplace.catalog.fetch import Limits
from marketplace.models import Listing, Price, Snapshot, Source, SyncRun
from marketplace.schedule import slot_of
from marketplace.sync import reading
from marketplace.sync.claims import LEASE, claim
from marketplace.sync.reading import ReaderDied, ReadingLimits, read_apart
from tests.marketplace.conftest import THREE
from tests.marketplace.installation import PATIENCE, ROOT, Installation
from tests.marketplace.lines import LinesAdapter
from tests.marketplace.site import Site, page
from tests.marketplace.test_tasks import CSV, MAKE_SOURCE, STATE
from tests.marketplace.visiting import LATER, NOON, published, synced

fault = pytest.mark.fault
BOTH_DATABASES = [
    "embedded",
    pytest.param("services", marks=[pytest.mark.postgres, pytest.mark.redis]),
]


@pytest.fixture(params=BOTH_DATABASES)
def half_done(request: pytest.FixtureRequest, site: Site) -> Installation:
    """An installation that has synced once, and whose site then changed its price."""
    made: Installation = request.getfixturevalue(request.param)
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    made = made.having(LINKPROOF_SAMPLE_URL=site.url)
    made.python(
        MAKE_SOURCE.format(url=site.url)
        + "from marketplace import sync; show(outcome=sync.sync_source(source.pk).outcome)"
    )
    site.answers["/vms.csv"] = page(CSV.replace("23.92", "11.11"), "text/csv")
    return made


SYNC = """
import django, os, signal
django.setup()
from marketplace.models import Source
from marketplace.sync import claims, publishing, reading, running, visits
from marketplace import sync
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
{weakness}
sync.sync_source(Source.objects.get().pk, scheduled=True)
"""

AFTERWARDS = """
from datetime import timedelta
from django.utils import timezone
from marketplace import sync
from marketplace.models import Listing, Price, Source, SyncRun
def prices():
    return [str(row.amount.normalize()) for row in Price.objects.filter(superseded_at=None)]
before, source = prices(), Source.objects.get()
busy = sync.sync_source(source.pk, scheduled=True)
hour = timezone.now() + timedelta(minutes=10)
again = sync.sync_source(source.pk, scheduled=True, now=hour)
show(before=before, busy=busy and busy.outcome, again=again and again.outcome, after=prices(),
     runs=list(SyncRun.objects.order_by("fence").values_list("outcome", flat=True)),
     listings=Listing.objects.count(), observations=Price.objects.count())
"""


LOOK = """
from marketplace import sync
from marketplace.models import Listing, Price, Source, SyncRun
busy = sync.sync_source(Source.objects.get().pk, scheduled=True)
show(prices=[str(row.amount.normalize()) for row in Price.objects.filter(superseded_at=None)],
     runs=list(SyncRun.objects.order_by("fence").values_list("outcome", flat=True)),
     listings=Listing.objects.count(), busy=busy)
"""

FORGET_DEAD = """
from marketplace.models import Snapshot, SyncRun
SyncRun.objects.filter(outcome="running").delete()
Snapshot.objects.update(attempts=0)
"""

# Else the next visit waits, as it should, until the dead one's request would have been over.
FREE_SITE = """
from marketplace.models import Host
Host.objects.update(next_at=None)
show()
"""


def killed(installation: Installation, weakness: str) -> None:
    done = installation.run("-c", SYNC.format(weakness=weakness), check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


BEFORE_THE_COMMIT = (
    "running.reader_of",  # before anything is fetched
    "visits.fetch_again",
    "running.keep",
    "running.parts_apart",
    "running.plan",
    "publishing.hold_fence",  # from here on inside the commit
    "publishing._upsert",
    "publishing._write_prices",
    "publishing.finish",
)


@fault("F36", "F37", "F38")
def test_a_worker_killed_before_its_commit_leaves_nothing_and_its_slot_is_done_again(
    half_done: Installation,
) -> None:
    for where in BEFORE_THE_COMMIT:
        half_done.python(FORGET_DEAD + FREE_SITE)
        killed(half_done, f"{where} = die")
        assert half_done.python(LOOK) == {
            "prices": ["23.92"],
            "listings": 1,
            "runs": ["published", "running"],
            "busy": None,
        }
    half_done.python(FREE_SITE)
    said = half_done.python(AFTERWARDS)
    assert (said["again"], said["after"]) == ("published", ["11.11"])
    assert (said["listings"], said["observations"]) == (1, 2)


@fault("F39")
def test_a_worker_killed_after_its_commit_has_done_its_slot(half_done: Installation) -> None:
    killed(
        half_done,
        "strong = running.publish\ndef publish(*a): strong(*a); die()\nrunning.publish = publish",
    )
    said = half_done.python(AFTERWARDS)
    assert (said["before"], said["after"]) == (["11.11"], ["11.11"])
    assert (said["busy"], said["again"]) == (None, None)
    assert said["runs"] == ["published", "published"]
    assert (said["listings"], said["observations"]) == (1, 2)


@fault("F49")
def test_a_worker_frozen_while_another_took_over_publishes_nothing(
    half_done: Installation, site: Site
) -> None:
    freeze = "strong = running.plan\n"
    freeze += "def plan(*a): made = strong(*a); os.kill(os.getpid(), signal.SIGSTOP); return made\n"
    code = SYNC.format(weakness=freeze + "running.plan = plan")
    frozen = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=half_done.environment)
    try:
        _wait(lambda: _state_of(frozen.pid) == "T")
        site.answers["/vms.csv"] = page(CSV.replace("23.92", "12.12"), "text/csv")
        said = half_done.python(AFTERWARDS)
        assert said["after"] == ["12.12"]
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.wait(PATIENCE) == 0
    finally:
        frozen.kill()
    assert half_done.python(AFTERWARDS)["before"] == ["12.12"]


def _state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]


def _wait(done: Callable[[], bool], seconds: float = PATIENCE) -> None:
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.1)


ENQUEUE = "from marketplace import outbox; outbox.enqueue('visit_source', source.pk); show()"
FORGET_LEASE = """
from django.utils import timezone
from marketplace import outbox, schedule
from marketplace.models import Source, SyncRun
SyncRun.objects.filter(outcome="running").update(lease_until=timezone.now())
outbox.enqueue("visit_source", Source.objects.get().pk)
show()
"""


@fault("F36", "F40")
@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.parametrize("where", ["running._visit", "publishing.hold_fence"])
def test_a_real_worker_whose_child_is_killed_goes_on_and_the_slot_is_done(
    services: Installation, site: Site, tmp_path: Path, where: str
) -> None:
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    died = tmp_path / "died"
    services = services.having(
        LINKPROOF_SAMPLE_URL=site.url, LINKPROOF_DIES_AT=where, LINKPROOF_DIED=str(died)
    )
    services.python(MAKE_SOURCE.format(url=site.url) + ENQUEUE)
    worker = services.celery("worker", "--concurrency", "1", app="tests.marketplace.dying")
    with worker, services.celery("beat"):
        _wait(died.exists)
        services.python(FORGET_LEASE)
        said = services.wait_for(STATE, lambda said: said["listings"] == 1)
    assert said["runs"] == ["abandoned", "published"]


@fault("F41")
@pytest.mark.postgres
@pytest.mark.redis
def test_a_worker_asked_to_stop_finishes_what_it_does(services: Installation, site: Site) -> None:
    def slow(handler: object) -> None:
        time.sleep(2)
        page(CSV, "text/csv")(handler)  # type: ignore[arg-type]

    site.answers["/vms.csv"] = slow  # type: ignore[assignment]
    services = services.having(LINKPROOF_SAMPLE_URL=site.url)
    services.python(MAKE_SOURCE.format(url=site.url) + ENQUEUE)
    with services.celery("worker", "--concurrency", "1") as worker, services.celery("beat"):
        _wait(lambda: "/vms.csv" in site.asked)
        worker.terminate()
        worker.wait(PATIENCE)
    assert services.python(STATE)["runs"] == ["published"]


# --- pages that end their reader


class Hostile(LinesAdapter):
    """Does to its own process what a hostile page would."""

    def __init__(self, deed: Callable[[], object]) -> None:
        super().__init__()
        self.deed = deed

    def read(self, pages: Sequence[Page]) -> Batch:
        self.deed()
        return super().read(pages)


def spin() -> None:
    while True:
        pass


def swell() -> bytes:
    return b"x" * (2 * 2**30)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


THE_PAGE = Page("http://shop.example/", THREE.encode(), "text/plain")


@fault("F42", "F89")
def test_a_reader_that_spins_is_ended_by_its_processor_time() -> None:
    assert ReadingLimits().cpu_seconds == 10
    started = time.process_time()
    with pytest.raises(ReaderDied, match="more than 1 s of processor time"):
        read_apart(Hostile(spin), [THE_PAGE], ReadingLimits(cpu_seconds=1))
    assert time.process_time() - started < 0.5


def test_only_a_long_feed_is_given_longer_than_ten_seconds() -> None:
    assert reading.limits_for(499_999) == ReadingLimits()
    assert reading.limits_for(6_000_000).cpu_seconds == 34
    assert reading.limits_for(10**12).memory_bytes == 2**30


def test_a_feed_of_a_hundred_thousand_rows_may_share_its_processor(settings: Settings) -> None:
    limits = reading.limits_for(17_000_000)
    assert limits.seconds >= 2 * limits.cpu_seconds
    longest = reading.limits_for(10**12).seconds + Limits().seconds
    assert longest < settings.CELERY_TASK_TIME_LIMIT


@fault("F42")
def test_a_reader_that_sleeps_is_ended_by_the_clock() -> None:
    with pytest.raises(ReaderDied, match=r"more than 0\.3 s"):
        read_apart(Hostile(lambda: time.sleep(60)), [THE_PAGE], ReadingLimits(seconds=0.3))


def test_a_reader_that_swells_is_ended_by_its_limit() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ReaderDied, match="within 384 MiB"):
        read_apart(Hostile(swell), [THE_PAGE])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_reader_that_reads_gives_what_it_read() -> None:
    apart, here = (read(LinesAdapter(), [THE_PAGE]) for read in (read_apart, reading.read))
    assert apart == here
    assert len(apart.batch.entries) == 3


@fault("F89")
def test_twenty_thousand_open_tags_are_read_in_time() -> None:
    body = b"<html><body>" + b"<a " * 20_000 + b"</body></html>"
    adapter = registry.adapter_for("page")
    with pytest.raises(ValueError, match="expected"):
        read_apart(adapter, [Page("http://shop.example/", body, "text/html")])


@fault("F47")
@pytest.mark.parametrize("deed", [crash, swell])
def test_a_page_that_ends_its_reader_three_times_is_left_for_a_person(
    source: Source, site: Site, monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]
) -> None:
    synced(source)
    before = published()
    site.answers["/list"] = page(THREE.replace("20.00", "19.00"), "text/plain")
    monkeypatch.setitem(registry.ADAPTERS, "lines", lambda _: Hostile(deed))  # type: ignore[arg-type]
    reasons = [synced(source, LATER + timedelta(hours=n)).reason for n in range(5)]
    assert all("ended early" in reason for reason in reasons[:3])
    assert all("wait for a person" in reason for reason in reasons[3:])
    assert published() == before
    monkeypatch.setitem(registry.ADAPTERS, "lines", lambda _: LinesAdapter())  # type: ignore[arg-type]
    again = sync.reparse(source.pk, now=LATER + timedelta(hours=9))
    assert again is not None
    assert again.outcome == "published"


@fault("F47")
def test_an_attempt_is_counted_before_it_begins(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def look(*_: object) -> None:
        seen.append(Snapshot.objects.get().attempts)
        raise ReaderDied

    monkeypatch.setattr("marketplace.sync.running.parts_apart", look)
    synced(source)
    assert (seen, Snapshot.objects.get().attempts) == ([1], 1)


@fault("F44")
def test_a_full_disk_fails_the_run_and_recovers_by_itself(
    embedded: Installation, site: Site
) -> None:
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    embedded = embedded.having(LINKPROOF_SAMPLE_URL=site.url)
    embedded.python(
        MAKE_SOURCE.format(url=site.url)
        + "from marketplace import sync; sync.sync_source(source.pk); show()"
    )
    big = CSV.replace("23.92", "22.22") + "".join(
        f"{n}xL4,L4,1,,,,1.00,eu{n}\n" for n in range(4000)
    )
    site.answers["/vms.csv"] = page(big, "text/csv")
    said = embedded.python(
        """
from django.db import connection
from marketplace import sync
from marketplace.models import Price, Source
source = Source.objects.get()
def prices(): return Price.objects.filter(superseded_at=None).count()
cursor = connection.cursor()
pages = cursor.execute("PRAGMA page_count").fetchone()[0]
cursor.execute(f"PRAGMA max_page_count = {pages + 20}")
full = sync.sync_source(source.pk)
left = prices()
cursor.execute("PRAGMA max_page_count = 1000000")
again = sync.sync_source(source.pk)
show(full=full.outcome, reason=full.reason, left=left, again=again.outcome)
"""
    )
    assert (said["full"], said["left"], said["again"]) == ("failed", 1, "published")
    assert said["reason"]


# --- one run for each slot


def visited(source: Source, at: datetime) -> SyncRun | None:
    return sync.sync_source(source.pk, scheduled=True, now=at)


@fault("F46", "F56")
@pytest.mark.django_db(transaction=True)
def test_of_eight_workers_at_one_slot_one_publishes(source: Source) -> None:
    runs: list[SyncRun | None] = []
    together = threading.Barrier(8)

    def work() -> None:
        together.wait()
        runs.append(visited(source, NOON))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.outcome for run in runs if run] == ["published"]
    assert (Listing.objects.count(), Price.objects.count()) == (3, 3)


@fault("F56")
def test_two_beats_make_one_run(embedded: Installation, site: Site) -> None:
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    embedded = embedded.having(LINKPROOF_SAMPLE_URL=site.url)
    embedded.python(
        MAKE_SOURCE.format(url=site.url)
        + """
task = schedule.keep_in_step(source)
task.interval, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
task.save()
show()
"""
    )
    beat = ("beat", "--max-interval", "1", "--pidfile=")
    with embedded.celery(*beat), embedded.celery(*beat):
        embedded.wait_for(STATE, lambda said: said["listings"] == 1)
        time.sleep(4)
    assert embedded.python(STATE)["runs"] == ["published"]


@fault("F46")
def test_a_slot_is_visited_once_and_the_next_one_again(source: Source) -> None:
    slot = slot_of(source, NOON)
    every = timedelta(minutes=source.interval_minutes)
    assert visited(source, slot) is not None
    assert visited(source, slot + every / 6) is None
    assert visited(source, slot + every - timedelta(seconds=1)) is None
    assert visited(source, slot + every) is not None
    assert visited(source, slot + 2 * every) is not None


def test_a_slot_whose_run_failed_is_not_tried_until_the_next(source: Source, site: Site) -> None:
    del site.answers["/list"]
    slot = slot_of(source, NOON)
    failed = visited(source, slot)
    assert failed is not None
    assert failed.outcome == "failed"
    assert visited(source, slot + timedelta(hours=1)) is None


@fault("F36")
def test_a_slot_whose_worker_died_is_done_again_within_its_interval(source: Source) -> None:
    slot = slot_of(source, NOON)
    assert claim(source.pk, slot, scheduled=True) is not None
    assert visited(source, slot + LEASE / 2) is None
    again = visited(source, slot + LEASE)
    assert again is not None
    assert (again.outcome, again.slot) == ("published", slot)


@fault("F45")
@pytest.mark.parametrize("jump", [timedelta(days=1), timedelta(days=-1), timedelta(hours=1)])
def test_a_clock_that_jumps_and_comes_back_skips_no_slot_and_repeats_none(
    source: Source, jump: timedelta
) -> None:
    every = timedelta(minutes=source.interval_minutes)
    slot = slot_of(source, NOON)
    times = [slot, slot + jump, slot + every, slot + every + jump, slot + 2 * every]
    for at in times:
        visited(source, at)
    slots = list(SyncRun.objects.values_list("slot", flat=True))
    assert len(slots) == len(set(slots))
    assert {slot, slot + every, slot + 2 * every} <= set(slots)


@fault("F57")
def test_after_a_standstill_a_source_catches_up_once(source: Source) -> None:
    every = timedelta(minutes=source.interval_minutes)
    slot = slot_of(source, NOON)
    visited(source, slot)
    back = slot + 3.5 * every
    runs = [visited(source, back + n * every / 6) for n in range(3)]
    assert [run is not None for run in runs] == [True, False, False]


@fault("F58")
@pytest.mark.parametrize("minutes", [5, 30, 90, 300, 2000])
def test_a_schedule_edited_while_it_is_due_makes_one_run(source: Source, minutes: int) -> None:
    slot = slot_of(source, NOON)
    assert visited(source, slot) is not None
    source.interval_minutes = minutes
    source.save()
    assert visited(source, slot + timedelta(minutes=minutes) / 3) is None


def test_sources_of_one_interval_do_not_start_together(source: Source) -> None:
    starts = set()
    for number in range(20):
        source.key = f"source-{number}"
        starts.add(slot_of(source, NOON))
    assert len(starts) > 15


def test_the_scheduled_task_visits_once(source: Source) -> None:
    tasks.visit_source(source.pk)
    tasks.visit_source(source.pk)
    tasks.sync_source(source.pk)
    assert SyncRun.objects.count() == 2


# --- bombs


@fault("F86")
def test_a_gibibyte_in_a_megabyte_costs_little_memory(tmp_path: Path) -> None:
    code = """
import gzip, io, resource, zlib
from marketplace.catalog.failures import TooLarge
from marketplace.catalog.unpacking import unpacker
packer = zlib.compressobj(9, wbits=31)
bomb = b"".join([*(packer.compress(bytes(2**20)) for _ in range(1024)), packer.flush()])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unpack = unpacker("gzip", 32 * 2**20, 64 * 2**20)
parts = []
try:
    for start in range(0, len(bomb), 65536):
        parts.append(unpack.feed(bomb[start : start + 65536]))
    refused = False
except TooLarge:
    refused = True
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
show(refused=refused, grown=grown, wire=len(bomb))
"""
    said = Installation({"LINKPROOF_DATA_DIR": str(tmp_path)}).python(code)
    assert said["refused"]
    assert said["wire"] < 2 * 2**20
    assert said["grown"] < 256
