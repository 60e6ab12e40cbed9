"""Evidence lives on one machine: for its uploader at once, for others only in words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from evaluator.facts import Grade, RanBy
from evaluator.findings import Code
from evaluator.link_verdicts import LinkWord
from evaluator.machine import LinkClass
from evaluator.workload import parse_workload
from marketplace import evaluations, rankings
from marketplace.evidence import (
    NotKept,
    NotReviewed,
    Origin,
    expire,
    keep,
    preview,
    review,
    seen_elsewhere,
    visible_to,
)
from marketplace.machines import configuration_of, machine_of
from marketplace.models import Evidence, Fact, Listing, RentedMachine
from marketplace.models.evidence import Change, EvidenceState
from marketplace.rented import own_machines, pending_among
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
ACCEPTED, REJECTED, WITHDRAWN = (
    EvidenceState.ACCEPTED,
    EvidenceState.REJECTED,
    EvidenceState.WITHDRAWN,
)
SERVE_70B = parse_workload({"name": "t", "task": "serve", "model": {"preset": "llama-3.1-70b"}})


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text("utf-8")


PAIRS, SWITCHED, CUT = "8-gpus-nvlink-pairs", "8-gpus-nvswitch", "8-gpus-cut"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


def put(
    listing: Listing,
    user: User | None,
    name: str,
    machine: RentedMachine | None = None,
    text: str = "",
    **origin: object,
) -> Evidence:
    shown = preview(listing, text or sample(name))
    return keep(listing, shown, Origin(user, RanBy.RENTER, machine, **origin))  # type: ignore[arg-type]


def seen_by(listing: Listing, user: User | None) -> LinkClass | None:
    return machine_of(listing, own_machines(user, [listing.pk]).get(listing.pk)).link.value


def words(listing: Listing, user: User) -> dict[str, LinkWord]:
    rented = own_machines(user, [listing.pk]).get(listing.pk)
    verdict = evaluations.judge_listing(SERVE_70B, listing, rented)
    return {plan.plan.key: plan.link.word for plan in verdict.plans}


def test_a_paste_counts_for_its_uploader_alone(eight: Listing, ada: User, bob: User) -> None:
    put(eight, ada, PAIRS)
    assert seen_by(eight, ada) is LinkClass.NVLINK_PAIRS
    assert seen_by(eight, bob) is LinkClass.NVSWITCH
    assert seen_by(eight, None) is LinkClass.NVSWITCH


def test_pairs_against_a_declared_switch_contradict_wide_groups(
    eight: Listing, ada: User, bob: User
) -> None:
    put(eight, ada, PAIRS)
    mine, others = words(eight, ada), words(eight, bob)
    assert (mine["tp8"], mine["tp4"], mine["tp2"]) == (
        LinkWord.CONTRADICTED,
        LinkWord.CONTRADICTED,
        LinkWord.PROVEN,
    )
    assert {others["tp8"], others["tp2"]} == {LinkWord.CLAIMED}


def test_a_matching_matrix_proves_the_claim_and_conflicts_with_nothing(
    eight: Listing, ada: User
) -> None:
    kept = put(eight, ada, SWITCHED)
    assert words(eight, ada)["tp8"] is LinkWord.PROVEN
    assert machine_of(eight, kept.machine).conflicts == ()


def test_acceptance_is_told_to_others_and_raises_no_grade(
    eight: Listing, ada: User, bob: User
) -> None:
    kept = put(eight, ada, PAIRS)
    assert seen_elsewhere(eight) == ()
    review(kept.pk, ACCEPTED, bob)
    (found,) = seen_elsewhere(eight)
    assert found.code is Code.MEASURED_ELSEWHERE
    assert "Measured on 1 of 1 machines seen" in found.sentence
    assert "NVLink between pairs (renter) on 1" in found.sentence
    assert machine_of(eight, None).link.grade is Grade.DECLARED
    assert configuration_of(eight) == eight.configuration


def test_machines_of_one_listing_are_counted_apart(eight: Listing, ada: User, bob: User) -> None:
    for user, name in ((ada, PAIRS), (bob, SWITCHED)):
        review(put(eight, user, name).pk, ACCEPTED, ada)
    review(put(eight, None, "8-gpus-all-reduce").pk, ACCEPTED, ada)
    (found,) = seen_elsewhere(eight)
    assert "Measured on 2 of 3 machines seen" in found.sentence


def test_withdrawing_restores_what_was_and_keeps_the_history(
    eight: Listing, ada: User, bob: User
) -> None:
    kept = put(eight, ada, PAIRS)
    review(kept.pk, ACCEPTED, bob)
    review(kept.pk, WITHDRAWN, bob, "of another machine")
    assert seen_elsewhere(eight) == ()
    assert seen_by(eight, ada) is LinkClass.NVSWITCH
    assert [(row.before, row.after) for row in kept.reviews.all()] == [
        ("pending", "accepted"),
        ("accepted", "withdrawn"),
    ]
    assert Fact.objects.filter(evidence=kept).exists()


@pytest.mark.parametrize("after", [REJECTED, WITHDRAWN])
def test_a_refusal_needs_a_reason(eight: Listing, ada: User, after: EvidenceState) -> None:
    kept = put(eight, ada, PAIRS)
    with pytest.raises(NotReviewed, match="reason"):
        review(kept.pk, after, ada)
    review(kept.pk, after, ada, "a joke")
    with pytest.raises(NotReviewed, match="cannot become rejected"):
        review(kept.pk, REJECTED, ada, "again")
    assert seen_by(eight, ada) is LinkClass.NVSWITCH


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("2-gpus-nvlink", {}, "2 GPUs are in the output and 8 in the listing"),
        (PAIRS, {"gpu_model": "A100", "title": "8x A100"}, "H100 is in the output"),
    ],
)
def test_a_paste_that_does_not_match_is_kept_as_a_conflict_and_raises_nothing(
    ada: User, name: str, changes: dict[str, str], words: str
) -> None:
    row = make_listing(make_source(), **changes)
    kept = put(row, ada, name)
    assert words in kept.mismatch
    assert not kept.facts.exists()
    assert own_machines(ada, [row.pk]) == {}
    assert visible_to(ada, row) == [kept]
    with pytest.raises(NotReviewed, match="does not match"):
        review(kept.pk, ACCEPTED, ada)


def test_a_damaged_upload_keeps_the_earlier_facts(eight: Listing, ada: User) -> None:
    first = put(eight, ada, SWITCHED)
    with pytest.raises(NotKept, match="no fact"):
        put(eight, ada, "", first.machine, text="GPU0 GPU1 what?")
    put(eight, ada, CUT, first.machine)
    assert machine_of(eight, first.machine).link.grade is Grade.MEASURED
    assert words(eight, ada)["tp2"] is LinkWord.PROVEN


def test_a_damaged_upload_alone_proves_no_wide_group(eight: Listing, ada: User) -> None:
    put(eight, ada, CUT)
    assert words(eight, ada)["tp8"] is LinkWord.CLAIMED


def test_two_looks_that_disagree_stand_side_by_side(eight: Listing, ada: User) -> None:
    first = put(eight, ada, SWITCHED, ran_at=timezone.now() - timedelta(hours=2))
    put(eight, ada, PAIRS, first.machine)
    machine = machine_of(eight, first.machine)
    assert "topology" in {one.attribute for one in machine.conflicts}
    assert words(eight, ada)["tp8"] is LinkWord.CONTRADICTED


def test_what_is_old_counts_as_declared(eight: Listing, ada: User) -> None:
    kept = put(eight, ada, PAIRS, ran_at=timezone.now() - timedelta(days=40))
    machine = machine_of(eight, kept.machine)
    assert machine.link.grade is Grade.DECLARED
    assert not machine.topology.known


@pytest.mark.parametrize("change", list(Change))
def test_a_change_of_the_machine_makes_its_evidence_old(
    eight: Listing, ada: User, change: Change
) -> None:
    kept = put(eight, ada, PAIRS)
    expire(kept.machine.evidence.all(), change)
    kept.refresh_from_db()
    assert kept.expired_by == change
    assert not machine_of(eight, kept.machine).topology.known


def test_another_image_expires_what_was_seen_under_the_first(eight: Listing, ada: User) -> None:
    first = put(eight, ada, PAIRS, image="ubuntu-22")
    put(eight, ada, SWITCHED, first.machine, image="ubuntu-24")
    first.refresh_from_db()
    assert first.expired_by == Change.IMAGE
    assert words(eight, ada)["tp8"] is LinkWord.PROVEN


def test_the_same_text_is_kept_once_per_machine(eight: Listing, ada: User, bob: User) -> None:
    first = put(eight, ada, PAIRS)
    with pytest.raises(NotKept, match="already"):
        put(eight, ada, PAIRS, first.machine)
    assert put(eight, bob, PAIRS).machine != first.machine


def test_the_shortlist_ranks_with_the_viewers_own_machine(
    eight: Listing, ada: User, bob: User
) -> None:
    huge = parse_workload({"name": "t", "task": "serve", "model": {"preset": "llama-3.1-405b"},
                           "weights_format": "fp8"})  # fmt: skip
    put(eight, ada, PAIRS)
    before = rankings.shortlist_for(huge, keep=False, viewer=bob)
    mine = rankings.shortlist_for(huge, keep=False, viewer=ada)
    plans = [[one.plan.plan.key for one in (*r.rows, *r.near_misses)] for r in (before, mine)]
    assert plans[0] != plans[1]
    codes = {found.code for one in (*mine.rows, *mine.near_misses) for found in one.findings}
    assert Code.OWN_EVIDENCE in codes


def test_an_own_machine_is_a_configuration_of_its_own(eight: Listing, ada: User) -> None:
    kept = put(eight, ada, PAIRS)
    own = machine_of(eight, kept.machine).fingerprint()
    assert own != eight.configuration
    judged = {
        row.machine.configuration
        for viewer in (ada, None)
        for row in rankings.shortlist_for(SERVE_70B, viewer=viewer).rows
    }
    assert judged == {own, eight.configuration}


def test_too_large_a_paste_is_refused_before_it_is_read(eight: Listing) -> None:
    with pytest.raises(NotKept, match="1,000,000"):
        preview(eight, "x" * 1_000_001)


def test_every_code_about_who_brought_what_is_produced(eight: Listing, ada: User) -> None:
    mismatched = preview(eight, sample("2-gpus-nvlink")).findings
    kept = put(eight, ada, PAIRS)
    own = rankings.notes_of(kept.machine, pending_among([kept.machine]))
    review(kept.pk, ACCEPTED, None)
    made = {found.code for found in (*mismatched, *own, *seen_elsewhere(eight))}
    assert {Code.EVIDENCE_MISMATCH, Code.OWN_EVIDENCE, Code.MEASURED_ELSEWHERE} <= made
