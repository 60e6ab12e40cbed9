"""What is known of rented machines: who saw it, when, how long it holds, what contradicts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from evaluator.facts import Grade, RanBy
from evaluator.findings import Code
from evaluator.link_verdicts import LinkVerdict, LinkWord
from evaluator.machine import LinkClass
from evaluator.verdict import judge
from evaluator.workload import parse_workload
from marketplace.evidence import Origin, expire, keep, preview, review, seen_elsewhere
from marketplace.machines import machine_of
from marketplace.models import Evidence, Listing, RentedMachine
from marketplace.models.evidence import Change, EvidenceState
from marketplace.rented import own_machines
from tests.evaluator.pasted import alike, benchmark_text, matrix_text, plan_of
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
SERVE = parse_workload({"name": "t", "task": "serve", "model": {"preset": "llama-3.1-8b"}})
ACCEPTED = EvidenceState.ACCEPTED


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def pair() -> Listing:
    return make_listing(
        make_source(), "a6000x2", title="2x RTX A6000", gpu_model="RTX A6000", gpu_count=2,
        vram_bytes_per_gpu=48 * 10**9, form_factor="", link="nvlink_bridge",
    )  # fmt: skip


def put(
    row: Listing,
    user: User | None,
    text: str,
    machine: RentedMachine | None = None,
    hours: int = 0,
    by: RanBy = RanBy.RENTER,
) -> Evidence:
    """A paste of an output that was run so many hours ago."""
    at = timezone.now() - timedelta(hours=hours)
    return keep(row, preview(row, text), Origin(user, by, machine, ran_at=at))


def link(kept: Evidence, key: str) -> LinkVerdict:
    return plan_of(judge(SERVE, machine_of(kept.listing, kept.machine)), key).link


SEATED_BADLY = matrix_text(alike(2, "NV3"))
HEALTHY = benchmark_text(2, [(1 << 14, 1.0), (1 << 24, 38.0), (8 << 30, 51.0)])


def test_a_later_benchmark_outweighs_a_bridge_that_looks_badly_seated(
    pair: Listing, ada: User
) -> None:
    first = put(pair, ada, SEATED_BADLY, hours=5)
    assert link(first, "tp2").word is LinkWord.CONTRADICTED
    put(pair, ada, HEALTHY, first.machine, hours=1)
    found = link(first, "tp2")
    assert found.word is LinkWord.PROVEN
    assert found.grade is Grade.BENCHMARKED
    assert [one.code for one in found.findings] == [Code.LINK_SUSPECTED]


def test_an_earlier_benchmark_does_not(pair: Listing, ada: User) -> None:
    """The bridge may have come loose since."""
    first = put(pair, ada, HEALTHY, hours=5)
    put(pair, ada, SEATED_BADLY, first.machine, hours=1)
    assert link(first, "tp2").word is LinkWord.CONTRADICTED


def test_a_matrix_that_lost_its_links_outweighs_an_older_benchmark(
    pair: Listing, ada: User
) -> None:
    first = put(pair, ada, matrix_text(alike(2, "NV4")) + HEALTHY, hours=5)
    assert link(first, "tp2").word is LinkWord.PROVEN
    apart = matrix_text([["X", "SYS"], ["SYS", "X"]], ["0", "1"])
    put(pair, ada, apart, first.machine, hours=1)
    assert link(first, "tp2").word is LinkWord.CONTRADICTED
    conflicts = machine_of(pair, first.machine).conflicts
    assert {one.attribute for one in conflicts} >= {"link", "topology"}


def test_memory_that_a_driver_reports_settles_which_card_it_is(ada: User) -> None:
    row = make_listing(
        make_source(), "a100x2", title="2x A100", gpu_model="A100", gpu_count=2,
        vram_bytes_per_gpu=None, form_factor="", link=None,
    )  # fmt: skip
    ambiguous = judge(SERVE, machine_of(row)).findings
    assert Code.GPU_AMBIGUOUS in {one.code for one in ambiguous}
    rows = "NVIDIA A100-SXM4-80GB, 81920 MiB\n" * 2
    kept = put(row, ada, f"name, memory.total [MiB]\n{rows}")
    seen = machine_of(row, kept.machine)
    assert [spec.label_gb for spec in seen.specs] == [80]
    assert Code.GPU_AMBIGUOUS not in {one.code for one in judge(SERVE, seen).findings}


def bridged(word: str) -> str:
    return matrix_text(alike(2, word))


def test_machines_of_one_listing_are_told_by_what_they_showed_and_who_ran_it(
    pair: Listing, ada: User
) -> None:
    """The same listing comes up with and without its bridge."""
    shown = [("NV4", RanBy.RENTER), ("NV4", RanBy.PROVIDER), ("PHB", RanBy.THIRD_PARTY)]
    for number, (word, by) in enumerate(shown):
        user = User.objects.create_user(f"user-{number}")
        review(put(pair, user, bridged(word), by=by).pk, ACCEPTED, ada)
    (found,) = seen_elsewhere(pair)
    assert "Measured on 3 of 3 machines seen" in found.sentence
    assert "NVLink (renter) on 1" in found.sentence
    assert "NVLink (provider) on 1" in found.sentence
    assert f"PCIe ({RanBy.THIRD_PARTY}) on 1" in found.sentence
    assert machine_of(pair).link.grade is Grade.DECLARED


def test_what_has_expired_is_seen_and_measures_nothing(pair: Listing, ada: User) -> None:
    review(put(pair, ada, bridged("NV4"), hours=24 * 40).pk, ACCEPTED, ada)
    (found,) = seen_elsewhere(pair)
    assert "Measured on 0 of 1 machines seen" in found.sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (matrix_text(alike(4, "NV4")), "4 GPUs are in the output and 2 in the listing"),
        ("GPU 0: NVIDIA L4 (UUID: GPU-0)\nGPU 1: NVIDIA L4 (UUID: GPU-1)\n", "L4 is in the output"),
        (benchmark_text(8, [(8 << 30, 400.0)]), "8 GPUs took part in the benchmark and 2"),
        (bridged("NV4") + bridged("PHB"), "are NV4 in one output and PHB in another"),
    ],
)
def test_a_paste_of_another_machine_is_a_conflict_and_raises_nothing(
    pair: Listing, ada: User, text: str, words: str
) -> None:
    kept = put(pair, ada, text)
    assert words in kept.mismatch
    assert not kept.facts.exists()
    assert own_machines(ada, [pair.pk]) == {}
    assert machine_of(pair, kept.machine).link.value is LinkClass.NVLINK_BRIDGE
    assert machine_of(pair, kept.machine).link.grade is Grade.DECLARED


def test_a_run_over_two_machines_of_the_listing_is_no_conflict(pair: Listing, ada: User) -> None:
    kept = put(pair, ada, benchmark_text(4, [(8 << 30, 20.0)], nodes=2))
    assert kept.mismatch == ""
    assert not kept.facts.filter(name="link_bytes_per_s").exists()


def with_driver(version: str) -> str:
    rows = f"NVIDIA RTX A6000, 49140 MiB, {version}\n" * 2
    return f"name, memory.total [MiB], driver_version\n{rows}"


def test_another_driver_makes_what_was_seen_before_old(pair: Listing, ada: User) -> None:
    first = put(pair, ada, with_driver("550.54.15") + bridged("NV4"), hours=9)
    assert machine_of(pair, first.machine).topology.known
    put(pair, ada, with_driver("570.86.10"), first.machine, hours=1)
    first.refresh_from_db()
    assert first.expired_by == "driver"
    seen = machine_of(pair, first.machine)
    assert not seen.topology.known
    assert seen.link.grade is Grade.DECLARED
    assert seen.driver_version.value == "570.86.10"


def test_what_a_paste_made_old_counts_again_once_it_is_withdrawn(pair: Listing, ada: User) -> None:
    first = put(pair, ada, with_driver("550.54.15") + bridged("NV4"), hours=2)
    review(first.pk, ACCEPTED, ada)
    second = put(pair, ada, with_driver("570.86.10"), first.machine, hours=1)
    review(second.pk, EvidenceState.WITHDRAWN, ada, "of another machine")
    first.refresh_from_db()
    assert first.expired_by == ""
    seen = machine_of(pair, first.machine)
    assert seen.topology.known
    assert seen.driver_version.value == "550.54.15"


def test_it_stays_old_where_another_look_shows_the_change_too(pair: Listing, ada: User) -> None:
    first = put(pair, ada, with_driver("550.54.15"), hours=3)
    second = put(pair, ada, with_driver("570.86.10"), first.machine, hours=2)
    put(pair, ada, with_driver("570.86.10") + "\n", first.machine, hours=1)
    review(second.pk, EvidenceState.WITHDRAWN, ada, "twice")
    first.refresh_from_db()
    assert first.expired_by == "driver"


def test_a_reboot_that_was_told_outlasts_a_withdrawn_paste(pair: Listing, ada: User) -> None:
    first = put(pair, ada, with_driver("550.54.15"), hours=2)
    second = put(pair, ada, with_driver("570.86.10"), first.machine, hours=1)
    expire(first.machine.evidence.all(), Change.REBOOT)
    review(second.pk, EvidenceState.WITHDRAWN, ada, "of another machine")
    first.refresh_from_db()
    assert first.expired_by == "reboot"
