"""Pictures of plans, times, memory and scaling: true to scale, nothing cut off, said in words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.collectives import traffic
from evaluator.link_verdicts import GroupVerdict, LinkVerdict, LinkWord
from evaluator.links import Use
from evaluator.memory import budget
from evaluator.placement import placement_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.states import trainable_params
from evaluator.units import GIB
from evaluator.workload import parse_workload, workload_presets
from marketplace.drawing.axes import powers, ticks, tiers
from marketplace.drawing.loglog import Measure, loglog
from marketplace.drawing.memory_bars import KEPT_FREE, WORD, CardSize, memory_bars
from marketplace.drawing.plan_diagram import PlanDiagram, plan_diagram
from marketplace.drawing.plan_wires import LETTERS, STACKED, TOLD, Spacing
from marketplace.drawing.timeline import (
    LEFT,
    NARROW,
    RIGHT,
    WIDTH,
    strip_of_step,
    table_of,
    timeline,
)

SERVE = parse_workload(workload_presets()["serve-llama-8b"])
TRAIN = parse_workload(workload_presets()["train-llama-70b"])
CARDS = [
    CardSize("24 GB", 22 * GIB, ("L4",), "does_not_fit"),
    CardSize("80 GB", 79 * GIB, ("H100",), "fits"),
]


def diagram(plan: Plan, word: LinkWord = LinkWord.CLAIMED, spacing: Spacing = TOLD) -> PlanDiagram:
    workload = SERVE if plan.replicas > 1 else TRAIN
    placed = placement_of(workload.model, plan, None)
    moved = traffic(workload, plan, trainable_params(workload))
    return plan_diagram(plan, placed, moved, LinkVerdict(word, "A reason."), spacing)


PLANS = [
    Plan(),
    Plan(tp=8),
    Plan(pp=8),
    Plan(tp=4, pp=2),
    Plan(replicas=4),
    Plan(tp=2, replicas=2),
    Plan(tp=4, dp=4, shard=4, nodes=2),
    Plan(tp=8, pp=4, nodes=4),
    Plan(dp=16, shard=8, nodes=2),
    Plan(pp=4, virtual=2),
    Plan(cp=4, dp=2, shard=8),
    Plan(tp=16),
    Plan(tp=2, pp=2, dp=4, shard=4, nodes=2),
]


@pytest.mark.parametrize("spacing", [TOLD, STACKED], ids=["wide", "narrow"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_boxes_of_a_plan_lie_inside_the_picture_and_apart(plan: Plan, spacing: Spacing) -> None:
    drawn = diagram(plan, spacing=spacing)
    for box in drawn.boxes:
        assert 0 <= box.x < box.x + box.width <= drawn.width
        assert 0 <= box.y < box.bottom <= drawn.height
        assert all(
            box.x <= chip.x and chip.x + chip.side <= box.x + box.width for chip in box.chips
        )
        assert all(chip.y + chip.side <= box.bottom for chip in box.chips)
    places = {(box.x, box.y) for box in drawn.boxes}
    assert len(places) == len(drawn.boxes)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_on_a_narrow_screen_all_parts_stand_one_below_the_other(plan: Plan) -> None:
    drawn, wide = diagram(plan, spacing=STACKED), diagram(plan)
    assert drawn.width <= PHONE
    assert len({box.x for box in drawn.boxes}) == 1
    assert all(one.bottom < next_.y for one, next_ in pairwise(drawn.boxes))
    assert {wire.what: wire.words for wire in drawn.arrows} == {
        wire.what: wire.words for wire in wide.arrows
    }


PHONE = 318.0
"""Pixels that a panel of a page of 390 leaves for its picture."""


def test_each_arrow_has_the_word_of_its_own_link() -> None:
    plan = Plan(tp=2, pp=2, dp=4, shard=4, nodes=2)
    parts = (
        GroupVerdict("", LinkWord.CLAIMED, "", "", use=Use.TENSOR),
        GroupVerdict("", LinkWord.UNKNOWN, "", "", machines=2, use=Use.PIPELINE),
        GroupVerdict("", LinkWord.INSUFFICIENT, "", "", use=Use.SHARDED),
    )
    moved = traffic(TRAIN, plan, trainable_params(TRAIN))
    link = LinkVerdict(LinkWord.INSUFFICIENT, "A reason.", parts=parts)
    drawn = plan_diagram(plan, placement_of(TRAIN.model, plan, 8), moved, link)
    assert {(wire.what, wire.word.value, wire.letter) for wire in drawn.wires} == {
        ("inside a group", "claimed", "C"),
        ("between stages", "unknown", "?"),
        ("between shards", "insufficient", "X"),
    }
    assert drawn.patterns == [("claimed", "C"), ("unknown", "?"), ("insufficient", "X")]


def test_a_group_over_two_machines_has_two_links() -> None:
    plan = Plan(dp=16, shard=16, nodes=2)
    parts = (
        GroupVerdict("", LinkWord.UNKNOWN, "", "", machines=2, use=Use.SHARDED),
        GroupVerdict("", LinkWord.PROVEN, "", "", use=Use.SHARDED),
    )
    moved = traffic(TRAIN, plan, trainable_params(TRAIN))
    link = LinkVerdict(LinkWord.UNKNOWN, "A reason.", parts=parts)
    drawn = plan_diagram(plan, placement_of(TRAIN.model, plan, 8), moved, link)
    assert [box.machine for box in drawn.boxes] == [0, 0, 1]
    assert [wire.word.value for wire in drawn.wires] == ["proven", "unknown"]
    first, second = drawn.arrows
    assert (first.word, second.word) == (LinkWord.PROVEN, LinkWord.UNKNOWN)
    assert first.words == second.words != ""


def test_groups_that_share_experts_are_no_copies() -> None:
    routed = parse_workload({"task": "serve", "model": {"preset": "mixtral-8x7b-v0.1"}})
    plan, link = Plan(dp=4, ep=4), LinkVerdict(LinkWord.UNKNOWN, "A reason.")
    drawn = plan_diagram(plan, placement_of(routed.model, plan, 4), traffic(routed, plan), link)
    assert [box.title for box in drawn.boxes] == ["group 1", "group 2", "group 4"]
    assert drawn.notes == ("1 of 4 groups is left out of the picture.",)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_words_on_wires_are_not_cut_off(plan: Plan) -> None:
    drawn = diagram(plan)
    assert all(wire.right <= drawn.width for wire in drawn.wires)
    assert all(wire.words_y <= drawn.height for wire in drawn.wires if wire.words)


def test_what_exchanges_nothing_has_no_wire() -> None:
    assert diagram(Plan()).wires == ()
    assert diagram(Plan(replicas=4)).wires == ()
    assert "nothing moves" in diagram(Plan(replicas=4)).description


def test_each_word_of_a_link_has_its_letter() -> None:
    assert {diagram(Plan(tp=2), word).wires[0].letter for word in LETTERS} == {
        "P",
        "C",
        "?",
        "X",
        "",
    }


def test_a_wire_names_two_exchanges_and_counts_the_rest() -> None:
    routed = parse_workload({"task": "train", "model": {"preset": "mixtral-8x7b-v0.1"}})
    plan = Plan(tp=2, dp=4, ep=4, shard=4)
    moved = traffic(routed, plan, trainable_params(routed))
    link = LinkVerdict(LinkWord.CLAIMED, "A reason.")
    drawn = plan_diagram(plan, placement_of(routed.model, plan, None), moved, link)
    words = [wire.words for wire in drawn.wires if wire.words]
    assert any(told.endswith(" more") and told.count("(") == 2 for told in words)
    assert all(len(told) < 90 for told in words)


def test_a_wide_plan_says_what_is_left_out() -> None:
    drawn = diagram(Plan(tp=8, pp=8, nodes=8))
    assert drawn.notes == ("4 of 8 stages are left out of the picture.",)
    assert [chip.text for chip in drawn.boxes[0].chips] == [str(gpu) for gpu in range(8)]


def test_known_groups_number_the_gpus() -> None:
    placed = placement_of(SERVE.model, Plan(tp=2, replicas=2), 4)
    link = LinkVerdict(LinkWord.PROVEN, "Seen.", groups=((0, 3), (1, 2)))
    drawn = plan_diagram(Plan(tp=2, replicas=2), placed, (), link)
    assert [[chip.text for chip in box.chips] for box in drawn.boxes] == [["0", "3"], ["1", "2"]]


def test_parts_of_a_bar_add_up_to_what_the_card_must_report() -> None:
    memory = budget(SERVE, Plan())
    bars = memory_bars(memory, memory, CARDS, "twice")
    assert bars is not None
    (bar,) = bars.bars
    assert sum(part.typical for part in bar.parts) == pytest.approx(bar.needed.typical)
    assert bar.parts[-1].name == KEPT_FREE
    for left, right in pairwise(bar.parts):
        assert right.x == pytest.approx(left.x + left.width)
    assert bar.low <= bar.end <= bar.high <= bars.width


def test_words_of_small_cards_beside_a_large_job_are_not_cut_off() -> None:
    memory = budget(TRAIN, Plan())
    bars = memory_bars(memory, memory, CARDS, "twice")
    assert bars is not None
    assert bars.lines[0].x < WORD / 2
    for line in bars.lines:
        assert WORD / 2 <= line.words_x <= bars.width - WORD / 2


def test_a_bar_ends_before_the_line_of_a_card_that_holds_it() -> None:
    memory = budget(SERVE, Plan())
    bars = memory_bars(memory, memory, CARDS, "twice")
    assert bars is not None
    lines = {line.words: line.x for line in bars.lines}
    assert lines["24 GB"] < bars.bars[0].low
    assert bars.bars[0].high < lines["80 GB"]
    assert "the smallest that holds it is 80 GB" in bars.description


def test_a_step_is_ordered_as_work_transfer_wait() -> None:
    terms = [("pipeline bubble", 1.0), ("attention", 2.0), ("pipeline hops", 1.0)]
    strip = strip_of_step("PP 2", Range(3, 4, 6), terms)
    assert [one.kind for one in strip.lanes[0][1]] == ["compute", "transfer", "wait"]
    assert strip.shares == {"compute": 0.5, "transfer": 0.25, "wait": 0.25}
    assert [row["share"] for row in table_of([strip])] == [0.5, 0.25, 0.25]


@given(
    st.lists(
        st.tuples(st.floats(0.001, 1e4), st.floats(1, 500)).map(
            lambda pair: Range(pair[0], pair[0] * 1.1, pair[0] * 1.1 * pair[1])
        ),
        min_size=1,
        max_size=4,
    )
)
def test_every_lane_and_whisker_lies_inside_the_timeline(totals: list[Range]) -> None:
    for width in (WIDTH, NARROW):
        lies_inside(totals, width)


def lies_inside(totals: list[Range], width: float) -> None:
    strips = [
        strip_of_step(f"plan {n}", total, [("attention", 1.0)]) for n, total in enumerate(totals)
    ]
    drawn = timeline(strips, "one step", width)
    assert drawn is not None
    for row, total in zip(drawn.rows, totals, strict=True):
        assert LEFT <= row.low <= row.end <= row.high + 1e-6 <= width - RIGHT + 1
        assert all(piece.x + piece.width <= width for lane in row.lanes for piece in lane.pieces)
        assert bool(row.beyond) or total.high <= 3.01 * max(one.typical for one in totals)
    assert drawn.description.count("for one step") == len(totals)


def test_steps_of_other_sizes_are_told_with_their_tokens() -> None:
    terms = [("attention", 2.0), ("pipeline hops", 2.0)]
    one, eight = (
        strip_of_step(f"FSDP over {ranks} GPUs (does not fit)", Range(3, 4, 6), terms, tokens=n)
        for ranks, n in ((1, 8192), (8, 65536))
    )
    assert (one.work, eight.work) == (
        "8,192 tokens, 2,048 tokens/s",
        "65,536 tokens, 16,384 tokens/s",
    )
    drawn = timeline([one, eight], "one optimizer step", NARROW)
    assert drawn is not None
    assert (
        "4 s (3 to 6) for one optimizer step of 65,536 tokens, 16,384 tokens/s" in drawn.description
    )
    lines = [line for row in drawn.rows for line, _ in row.names]
    assert len(lines) == 4
    assert all(len(line) * 7.4 <= NARROW for line in lines)
    assert [row["seconds"] for row in table_of([one])] == [2.0, 2.0]


@pytest.mark.parametrize("width", [340.0, 640.0])
def test_bars_and_the_words_of_their_cards_lie_inside(width: float) -> None:
    memory = budget(SERVE, Plan())
    bars = memory_bars(memory, memory, CARDS, "twice", width)
    assert bars is not None
    assert bars.width == width
    assert all(bar.high <= width for bar in bars.bars)
    assert all(WORD / 2 <= line.words_x <= width - WORD / 2 for line in bars.lines)


def test_nothing_timed_is_nothing_drawn() -> None:
    assert timeline([], "one step") is None


@given(st.floats(0.01, 1e6))
def test_an_axis_has_few_round_ticks(largest: float) -> None:
    marks = ticks(largest, 1.0)
    assert 2 <= len(marks) <= 7
    assert marks[-1].at <= largest * 1.0001


@given(st.floats(0.01, 1e6), st.floats(1, 1e6))
def test_powers_enclose_their_values(low: float, factor: float) -> None:
    found = powers(low, low * factor)
    assert found[0] <= low * 1.0001
    assert low * factor <= found[-1] * 1.0001


def test_words_in_one_row_do_not_touch() -> None:
    assert list(tiers([10, 20, 30, 40, 100], 46)) == [0, 1, 2, None, 0]


def test_a_curve_that_is_ideal_lies_on_the_ideal_line() -> None:
    points = [Measure(n, Range(9.0 * n, 10.0 * n, 11.0 * n), "") for n in (1, 2, 4, 8)]
    drawn = loglog(points, "weak", "Weak scaling")
    assert drawn is not None
    first, last = drawn.dots[0], drawn.dots[-1]
    assert drawn.ideal == f"M{first.x:.1f} {first.y:.1f}L{last.x:.1f} {last.y:.1f}"
    assert "8 times the GPUs bring 8 times the rate, 100% of ideal." in drawn.description


@given(st.lists(st.floats(0.5, 1e7), min_size=2, max_size=6))
def test_a_curve_and_its_ranges_lie_inside_the_axes(rates: list[float]) -> None:
    points = [Measure(2**n, Range(rate / 3, rate, rate * 2), "") for n, rate in enumerate(rates)]
    drawn = loglog(points, "strong", "Strong scaling")
    assert drawn is not None
    for dot in drawn.dots:
        assert drawn.left <= dot.x <= drawn.right
        assert drawn.top - 1e-6 <= dot.high <= dot.y <= dot.low <= drawn.base + 1e-6


def test_one_point_is_no_curve() -> None:
    assert loglog([Measure(1, Range(1, 2, 3), "")], "strong", "Strong scaling") is None
