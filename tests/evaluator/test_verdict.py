from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.budgets import FitWord
from evaluator.facts import UNKNOWN, Grade, declared
from evaluator.findings import Code, Finding
from evaluator.gpus import candidates
from evaluator.host import HostItem, HostWord, host_items
from evaluator.machine import Conflict, LinkClass, Machine
from evaluator.plans import Plan
from evaluator.topology import LinkWord
from evaluator.units import GIB
from evaluator.verdict import (
    ORDER,
    MachineVerdict,
    PlanVerdict,
    Status,
    judge,
    judge_briefly,
    status_of,
)
from evaluator.workbook import Workbook
from tests.evaluator.machines import (
    LORA_8B,
    SERVE_8B,
    TRAIN_70B,
    known,
    machine,
    measured,
    preset,
    serve,
    train,
    with_shape,
)

PASS = HostItem("a", HostWord.PASS, "")
OPEN = HostItem("b", HostWord.UNKNOWN, "")
FAIL = HostItem("c", HostWord.FAIL, "")


@pytest.mark.parametrize(
    ("fits", "link", "host"),
    list(product(FitWord, LinkWord, [(), (PASS, OPEN), (OPEN, FAIL)])),
)
def test_the_words_table(fits: FitWord, link: LinkWord, host: tuple[HostItem, ...]) -> None:
    """Written out as the table of words is, apart from the order in which code asks."""
    stops = link in {LinkWord.INSUFFICIENT, LinkWord.CONTRADICTED} or FAIL in host
    settled = link in {LinkWord.PROVEN, LinkWord.NOT_NEEDED}
    if fits is FitWord.DOES_NOT_FIT or stops:
        expected = Status.UNSUITABLE
    elif fits is FitWord.UNKNOWN:
        expected = Status.UNKNOWN
    else:
        expected = Status.READY if fits is FitWord.FITS and settled else Status.CONDITIONAL
    assert status_of(fits, link, host) is expected


def codes(found: tuple[Finding, ...]) -> set[Code]:
    return {one.code for one in found}


def best(verdict: MachineVerdict) -> PlanVerdict:
    assert verdict.best is not None
    return verdict.best


@pytest.mark.parametrize("slug", [SERVE_8B, LORA_8B])
@pytest.mark.parametrize("link", [None, LinkClass.NVSWITCH])
def test_an_8b_model_takes_one_gpu_of_eight(slug: str, link: LinkClass | None) -> None:
    found = best(judge(preset(slug), machine(gb=80, link=link)))
    assert (found.plan.label, found.status, found.idle_gpus) == ("one GPU", Status.READY, 7)
    assert Code.IDLE_GPUS in codes(found.findings)


def test_training_70b_takes_several_machines_and_names_what_is_not_known() -> None:
    found = best(judge(preset(TRAIN_70B), machine(gb=80)))
    assert found.plan.nodes > 1
    assert found.status is Status.CONDITIONAL
    assert Code.FABRIC_UNKNOWN in codes(found.findings)
    assert found.weakest.fact == "network between machines"
    assert found.weakest.grade is Grade.UNKNOWN


def test_no_more_machines_are_tried_than_serve() -> None:
    verdict = judge(preset(TRAIN_70B), machine(gb=80))
    assert max(one.plan.nodes for one in verdict.plans) == best(verdict).plan.nodes


def test_serving_stays_inside_one_machine() -> None:
    verdict = judge(serve("llama-3.1-405b"), machine("L4", 2))
    assert {one.plan.nodes for one in verdict.plans} == {1}
    assert verdict.best is None


def test_a_rental_of_two_machines_may_serve_over_both() -> None:
    verdict = judge(serve("llama-3.1-405b"), machine(gb=80, nodes=2))
    assert best(verdict).plan.label == "TP 8 × PP 2 on 2 machines"


def test_replicas_on_two_machines_ask_nothing_of_the_network() -> None:
    spread, rented = Plan(replicas=4, nodes=2), machine("A40", 2, nodes=2)
    items = host_items(serve("llama-3.1-8b"), spread, rented, None)
    words = {item.name: item.word for item in items}
    assert words["peer connectivity"] is HostWord.PASS
    assert "network between machines" not in words
    assert Plan(pp=4, nodes=2).joins_machines


def test_what_does_not_fit_is_an_answer_with_the_smallest_change() -> None:
    verdict = judge(serve("llama-3.1-70b"), machine("L4", 1))
    single = verdict.single
    assert single is not None
    assert single.status is Status.UNSUITABLE
    assert single.fit.missing_bytes > 0
    assert single.changes
    assert single.changes[0].words in single.reasons[-1]
    (found,) = [one for one in single.findings if one.code is Code.DOES_NOT_FIT]
    assert found.remedy == single.changes[0].words


def test_sizes_of_a_thousand_and_more_are_told_with_their_thousands_apart() -> None:
    single = judge(preset(TRAIN_70B), machine("L4", 1)).single
    assert single is not None
    (found,) = [one for one in single.findings if one.code is Code.DOES_NOT_FIT]
    told = [*single.reasons, found.sentence, *(one.words for one in single.changes)]
    large = [one for one in told if re.search(r"\d{4,}(\.\d)? GiB", one)]
    assert re.search(r"\d,\d{3}(\.\d)? GiB", " ".join(told))
    assert large == []


def test_every_rejected_plan_says_why_and_the_brief_judgement_agrees_on_status() -> None:
    workload, of = serve("llama-3.1-70b"), machine("RTX 4090", 8, link=LinkClass.P2P_DISABLED)
    full, brief = judge(workload, of), judge_briefly(Workbook(workload), of)
    assert [one.status for one in full.plans] == [one.status for one in brief.plans]
    for one in full.plans:
        assert one.status.serves or one.changes or one.link.word.stops
        assert all(reason.strip() for reason in one.reasons)


def test_unknown_memory_is_unknown_and_says_so() -> None:
    verdict = judge(preset(SERVE_8B), machine(usable_bytes_per_gpu=UNKNOWN))
    assert verdict.status is Status.UNKNOWN
    assert Code.MEMORY_UNKNOWN in codes(verdict.findings)


def test_an_unknown_model_size_is_unknown_and_never_zero() -> None:
    unknown = with_shape(serve(), computable=False, given_params=None)
    verdict = judge(unknown, machine())
    assert verdict.status is Status.UNKNOWN
    assert verdict.best is None


def test_several_cards_under_one_label_are_named_and_the_smallest_binds() -> None:
    both = candidates("A100")
    sizes = [spec.usable_bytes for spec in both if spec.usable_bytes]
    of = machine("A100")
    assert of.usable_bytes_per_gpu.value == min(sizes)
    assert Code.GPU_AMBIGUOUS in codes(judge(preset(SERVE_8B), of).findings)
    one = machine("A100", gb=80, form="SXM")
    assert Code.GPU_AMBIGUOUS not in codes(judge(preset(SERVE_8B), one).findings)


def test_facts_that_disagree_are_named_on_the_machine() -> None:
    against = (Conflict("link", "measured nvlink_pairs", "declared nvswitch"),)
    verdict = judge(preset(SERVE_8B), machine(conflicts=against))
    (found,) = [one for one in verdict.findings if one.code is Code.CONFLICTING_VALUES]
    assert (
        "measured NVLink between pairs against declared NVSwitch between all GPUs" in found.sentence
    )


def test_a_card_that_shows_as_two_gpus_lends_half_its_memory_to_each() -> None:
    (card,) = candidates("MI250X")
    assert card.usable_bytes is not None
    assert machine("MI250X").usable_bytes_per_gpu.value == card.usable_bytes // 2


def test_memory_of_many_gpus_is_never_summed() -> None:
    """Eight cards of 24 GB are 192 GB in no plan that holds the model whole."""
    verdict = judge(serve("llama-3.1-70b"), machine("L4", 8))
    assert verdict.single is not None
    assert verdict.single.status is Status.UNSUITABLE


def test_a_share_of_a_gpu_and_an_unknown_count_get_the_one_gpu_plan_only() -> None:
    for of in (machine(fractional=True), machine(count=None)):
        verdict = judge(preset(TRAIN_70B), of)
        assert [one.plan.label for one in verdict.plans] == ["one GPU"]


def test_ready_comes_before_conditional_and_narrower_before_wider() -> None:
    tight = replace(best(judge(preset(SERVE_8B), machine())), status=Status.CONDITIONAL)
    wide = replace(tight, plan=replace(tight.plan, tp=2), status=Status.READY)
    wider = replace(wide, plan=replace(tight.plan, tp=4))
    verdict = MachineVerdict("", "H100", 8, 1, (tight, wide, wider))
    assert best(verdict) is wide


def test_a_failing_host_item_makes_a_plan_unsuitable_and_is_named() -> None:
    verdict = judge(preset(SERVE_8B), machine(count=1, vcpus=declared(1), gb=80))
    assert verdict.status is Status.READY
    starved = judge(serve("llama-3.1-70b"), machine(count=8, gb=80, vcpus=declared(2)))
    failing = [one for one in starved.plans if one.plan.gpus == 8]
    assert all(one.status is Status.UNSUITABLE for one in failing)
    assert all("vCPUs" in " ".join(one.reasons) for one in failing)


LINKS = st.one_of(
    st.none(),
    st.sampled_from(list(LinkClass)),
    st.sampled_from(list(LinkClass)).map(measured),
)
MODELS = st.sampled_from(["L4", "RTX 4090", "A100", "H100", "B200", "MI300X"])
WORKLOADS = st.sampled_from([SERVE_8B, LORA_8B, TRAIN_70B])
BOOKS = {slug: Workbook(preset(slug)) for slug in (SERVE_8B, LORA_8B, TRAIN_70B)}


@settings(max_examples=40, deadline=None)
@given(WORKLOADS, MODELS, st.sampled_from([1, 2, 4, 8]), LINKS)
def test_no_plan_with_more_gpus_precedes_a_narrower_one(
    slug: str, model: str, count: int, link: LinkClass | None
) -> None:
    verdict = judge_briefly(BOOKS[slug], machine(model, count, link=link))
    by_machines = [(one.plan.nodes, one.plan.gpus) for one in verdict.plans]
    assert by_machines == sorted(by_machines)
    same = [one for one in verdict.plans if verdict.best and one.status is verdict.best.status]
    assert not same or verdict.best is same[0]


@settings(max_examples=40, deadline=None)
@given(WORKLOADS, MODELS, st.sampled_from([2, 4, 8]), st.sampled_from(list(LinkClass)))
def test_measuring_what_was_declared_never_lowers_a_verdict(
    slug: str, model: str, count: int, link: LinkClass
) -> None:
    before = judge_briefly(BOOKS[slug], machine(model, count, link=link))
    after = judge_briefly(BOOKS[slug], machine(model, count, link=measured(link)))
    doubted = any(Code.IMPLAUSIBLE_LINK in codes(one.findings) for one in before.plans)
    if not doubted:
        assert ORDER[after.status] <= ORDER[before.status]


@settings(max_examples=40, deadline=None)
@given(WORKLOADS, MODELS, st.sampled_from([2, 4, 8]))
def test_a_link_that_suffices_never_makes_a_machine_worse_than_an_unknown_one(
    slug: str, model: str, count: int
) -> None:
    before = judge_briefly(BOOKS[slug], machine(model, count))
    for grade in (Grade.MEASURED, Grade.BENCHMARKED):
        after = judge_briefly(
            BOOKS[slug], machine(model, count, link=known(LinkClass.NVSWITCH, grade))
        )
        assert ORDER[after.status] <= ORDER[before.status]


@settings(max_examples=30, deadline=None)
@given(WORKLOADS, st.integers(8, 300), st.integers(0, 100), st.sampled_from([1, 8]))
def test_more_memory_never_lowers_a_verdict(slug: str, gib: int, more: int, count: int) -> None:
    def status(size: int) -> Status:
        usable = declared(size * GIB)
        return judge_briefly(BOOKS[slug], machine(count=count, usable_bytes_per_gpu=usable)).status

    assert ORDER[status(gib + more)] <= ORDER[status(gib)]


def test_machines_that_differ_in_dates_alone_are_one_configuration() -> None:
    one, other = machine(), machine(vcpus=declared(8, "another page"))
    assert one.fingerprint() != other.fingerprint()
    assert machine(vcpus=declared(8)).fingerprint() == other.fingerprint()
    assert machine(link=LinkClass.PCIE).fingerprint() != (
        machine(link=measured(LinkClass.PCIE)).fingerprint()
    )


def test_a_machine_of_which_nothing_is_known_can_still_be_judged() -> None:
    assert judge(preset(TRAIN_70B), Machine()).status is Status.UNKNOWN
    assert judge(train(), Machine()).gpu_count is None


@pytest.mark.parametrize("count", [1, 8])
def test_whether_it_fits_is_said_for_an_engine_and_a_length(count: int) -> None:
    job = serve(engine="sglang", engine_version="0.5", max_model_len=8192)
    named = "sglang 0.5 with 1,280 tokens a sequence, limit 8,192"
    plans = judge(job, machine(gb=80, count=count)).plans
    assert plans
    assert all(named in one.reasons[0] for one in plans)


def test_training_names_its_length() -> None:
    assert "sequences of 2,048 tokens" in train(seq_len=2048).terms


def test_a_pinned_component_decides_the_verdict() -> None:
    small = "llama-3.1-8b"
    free, held = serve(small), serve(small, pins={"activations": 78 * GIB})
    assert free.fingerprint() != held.fingerprint()
    assert judge(free, machine(gb=80, count=1)).status is Status.READY
    refused = judge(held, machine(gb=80, count=1))
    assert {one.fit.word for one in refused.plans} == {FitWord.DOES_NOT_FIT}
