"""What can happen to the broker, on a real one of the test's own that is cut, filled and killed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.conftest import REQUIRE_ALL
from tests.marketplace.installation import PATIENCE, Installation
from tests.marketplace.site import Site, page
from tests.marketplace.test_tasks import CSV, MAKE_SOURCE

fault = pytest.mark.fault
pytestmark = [pytest.mark.postgres, pytest.mark.redis]

ENQUEUE = """
from marketplace import outbox
from marketplace.models import Source
outbox.enqueue("sync_source", Source.objects.get().pk)
show()
"""
PUBLISH = """
from django.utils import timezone
from marketplace import outbox, tasks
show(sent=outbox.publish(tasks.send, timezone.now()))
"""
LONG_AGO = """
from marketplace import outbox
from marketplace.models import Outbox
for message in Outbox.objects.exclude(published_at=None):
    message.published_at -= 2 * outbox.LOST_AFTER
    message.save()
show()
"""
STATE = """
from marketplace.models import Outbox, SyncRun
show(runs=list(SyncRun.objects.order_by("fence").values_list("outcome", flat=True)),
     ended=SyncRun.objects.exclude(outcome="running").count(),
     workers=len(set(SyncRun.objects.values_list("worker", flat=True))),
     waiting=Outbox.objects.filter(published_at=None, task="sync_source").count(),
     errors=list(Outbox.objects.exclude(last_error="").values_list("last_error", flat=True)))
"""


@dataclass
class Broker:
    """A Redis server that keeps nothing on disk."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def start(self) -> None:
        quiet = ("--save", "", "--appendonly", "no", "--bind", "127.0.0.1")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--dir", str(self.folder), *quiet],
            stdout=subprocess.DEVNULL,
        )
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < ends
            time.sleep(0.1)

    def _answers(self) -> bool:
        with suppress(redis.ConnectionError):
            return bool(self.client.ping())
        return False

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if shutil.which("redis-server") is None:
        (pytest.fail if REQUIRE_ALL else pytest.skip)("needs redis-server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        made = Broker(free.getsockname()[1], tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def ours(services: Installation, broker: Broker, site: Site) -> Installation:
    """A services installation on the test's own broker, with one source."""
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    made = services.having(REDIS_URL=broker.url, LINKPROOF_SAMPLE_URL=site.url)
    made.python(MAKE_SOURCE.format(url=site.url) + "show()")
    return made


@fault("F52")
def test_a_broker_that_was_started_empty_gets_what_is_due_again(
    ours: Installation, broker: Broker
) -> None:
    ours.python(ENQUEUE)
    assert ours.python(PUBLISH) == {"sent": 1}
    broker.kill()
    broker.start()
    ours.python(LONG_AGO)
    with ours.celery("worker", "--concurrency", "1"), ours.celery("beat"):
        said = ours.wait_for(STATE, lambda said: said["runs"] == ["published"])
    assert said["waiting"] == 0


@fault("F53")
def test_a_broker_that_resets_is_worked_with_again(ours: Installation, broker: Broker) -> None:
    with ours.celery("worker", "--concurrency", "1"), ours.celery("beat"):
        for _ in range(3):
            time.sleep(2)
            broker.client.client_kill_filter(_type="normal", skipme=True)
        ours.python(ENQUEUE)
        ours.wait_for(STATE, lambda said: said["runs"] == ["published"])


@fault("F54")
def test_a_broker_without_memory_takes_nothing_and_loses_nothing(
    ours: Installation, broker: Broker
) -> None:
    ours.python(ENQUEUE)
    assert ours.python(PUBLISH) == {"sent": 1}
    broker.client.config_set("maxmemory", "1")
    ours.python(ENQUEUE)
    assert ours.python(PUBLISH) == {"sent": 0}
    held = ours.python(STATE)
    assert (held["waiting"], held["errors"]) == (1, ["OperationalError"])
    broker.client.config_set("maxmemory", "0")
    with ours.celery("worker", "--concurrency", "1"), ours.celery("beat"):
        ours.wait_for(STATE, lambda said: said["ended"] == 2)


@fault("F54")
def test_a_worker_that_met_a_full_broker_works_again_once_there_is_room(
    ours: Installation, broker: Broker
) -> None:
    ours.python(ENQUEUE)
    with ours.celery("worker", "--concurrency", "1") as worker, ours.celery("beat"):
        ours.wait_for(STATE, lambda said: said["ended"] == 1)
        broker.client.config_set("maxmemory", "1")
        # Whoever is cut off connects anew, and what it then writes first is refused.
        broker.client.client_kill_filter(_type="normal", skipme=True)
        ours.python(ENQUEUE)
        time.sleep(5)
        broker.client.config_set("maxmemory", "0")
        ours.wait_for(STATE, lambda said: said["ended"] == 2)
        assert worker.poll() is None


@fault("F55")
def test_a_task_that_outlives_its_visibility_is_delivered_twice_and_done_once(
    ours: Installation, site: Site
) -> None:
    def slow(handler: object) -> None:
        time.sleep(6)
        page(CSV, "text/csv")(handler)  # type: ignore[arg-type]

    site.answers["/vms.csv"] = slow  # type: ignore[assignment]
    ours = ours.having(LINKPROOF_TEST_VISIBILITY="2")
    ours.python(ENQUEUE)
    assert ours.python(PUBLISH) == {"sent": 1}
    with ours.celery("worker", "--concurrency", "2", "-n", "one@%h"):
        ours.wait_for(STATE, lambda said: said["runs"] == ["published"])
    assert ours.python(STATE)["runs"] == ["published"]
    assert site.asked.count("/vms.csv") == 1


@fault("F43")
def test_a_child_that_grew_beyond_its_limit_makes_way_for_a_fresh_one(ours: Installation) -> None:
    limited = ours.celery("worker", "--concurrency", "1", "--max-memory-per-child", "1000")
    with limited, ours.celery("beat"):
        for number in range(1, 3):
            ours.python(ENQUEUE)
            ours.wait_for(STATE, lambda said, n=number: said["ended"] == n)  # type: ignore[misc]
    assert ours.python(STATE)["workers"] == 2
