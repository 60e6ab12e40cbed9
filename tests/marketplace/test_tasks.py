"""The same work through every door: in-process, by beat, by real workers, and cut short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.workload import workload_presets
from marketplace import outbox, tasks
from marketplace.models import Listing, Source
from tests.marketplace.installation import Installation
from tests.marketplace.site import Site, page

CSV = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,Region\n"
    "8xH100,H100,8.0,208.0,1800.0,,23.92,eu-north\n"
)

MAKE_SOURCE = """
from marketplace import schedule
from marketplace.models import Provider, Source
from django_celery_beat.models import IntervalSchedule, PeriodicTask
source = Source.objects.create(
    provider=Provider.objects.create(slug="acme", name="Acme"), key="acme", kind="feed",
    adapter="skypilot", url="{url}/vms.csv", bundled=True)
schedule.keep_outbox_poller()
"""

STATE = """
from marketplace.models import Listing, Outbox, SyncRun, Verdict
show(runs=list(SyncRun.objects.order_by("fence").values_list("outcome", flat=True)),
     workers=list(SyncRun.objects.values_list("worker", flat=True)),
     listings=Listing.objects.count(), waiting=Outbox.objects.filter(published_at=None).count(),
     verdicts=Verdict.objects.count())
"""


def test_the_task_does_what_the_function_does(source: Source) -> None:
    tasks.sync_source(source.pk)
    assert Listing.objects.count() == 3


@pytest.fixture
def eager() -> Iterator[None]:
    before = tasks.app.conf.task_always_eager
    tasks.app.conf.update(task_always_eager=True)
    yield
    tasks.app.conf.update(task_always_eager=before)


@pytest.mark.usefixtures("eager")
def test_an_eager_message_runs_in_this_process(source: Source) -> None:
    outbox.enqueue("sync_source", source.pk)
    tasks.publish_outbox()
    assert Listing.objects.count() == 3


def test_beat_alone_keeps_an_embedded_catalog_in_step(embedded: Installation, site: Site) -> None:
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
    with embedded.celery("beat", "--max-interval", "1"):
        said = embedded.wait_for(STATE, lambda said: said["listings"] == 1)
    assert said["runs"] == ["published"]


@pytest.mark.postgres
@pytest.mark.redis
def test_real_workers_sync_what_a_request_left_behind_and_judge_what_came_of_it(
    services: Installation, site: Site
) -> None:
    site.answers["/vms.csv"] = page(CSV, "text/csv")
    services = services.having(LINKPROOF_SAMPLE_URL=site.url)
    services.python(
        MAKE_SOURCE.format(url=site.url)
        + "from marketplace import outbox; outbox.enqueue('sync_source', source.pk); show()"
    )
    with services.celery("worker", "--concurrency", "1"), services.celery("beat"):
        said = services.wait_for(STATE, lambda said: said["verdicts"] == len(workload_presets()))
    assert (said["runs"][0], said["listings"], said["waiting"]) == ("published", 1, 0)


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.parametrize("part", ["worker", "beat"])
def test_services_mode_starts_only_when_it_is_whole(services: Installation, part: str) -> None:
    done = services.having(SECRET_KEY="").run(
        "-m", "celery", "-A", "marketplace", part, check=False
    )
    assert done.returncode != 0
    assert "linkproof.E001" in done.stderr
