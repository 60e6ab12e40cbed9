"""Pictures of plans, times, memory and scaling: true to scale, nothing cut off, said in words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.collectives import traffic
from evaluator.link_verdicts import LinkVerdict, LinkWord
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
from marketplace.drawing.plan_diagram import LETTERS, PlanDiagram, plan_diagram
from marketplace.drawing.timeline import LEFT, RIGHT, WIDTH, strip_of_step, table_of, timeline

SERVE = parse_workload(workload_presets()["serve-llama-8b"])
TRAIN = parse_workload(workload_presets()["train-llama-70b"])
CARDS = [
    CardSize("24 GB", 22 * GIB, ("L4",), "does_not_fit"),
    CardSize("80 GB", 79 * GIB, ("H100",), "fits"),
]


def diagram(plan: Plan, word: LinkWord = LinkWord.CLAIMED) -> PlanDiagram:
    workload = SERVE if plan.replicas > 1 else TRAIN
    placed = placement_of(workload.model, plan, None)
    moved = traffic(workload, plan, trainable_params(workload))
    return plan_diagram(plan, placed, moved, LinkVerdict(word, "A reason."))


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


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.key)
def test_boxes_of_a_plan_lie_inside_the_picture_and_apart(plan: Plan) -> None:
    drawn = diagram(plan)
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
def test_words_on_wires_are_not_cut_off(plan: Plan) -> None:
    drawn = diagram(plan)
    assert all(wire.right <= drawn.width for wire in drawn.wires)
    assert all(wire.words_y <= drawn.height for wire in drawn.wires if wire.words)


def test_what_exchanges_nothing_has_no_wire() -> None:
    assert diagram(Plan()).wires == ()
    assert diagram(Plan(replicas=4)).wires == ()
    assert "nothing moves" in diagram(Plan(replicas=4)).description


def test_each_word_of_a_link_has_its_letter() -> None:
    assert {diagram(Plan(tp=2), word).letter for word in LETTERS} == {"P", "C", "?", "X", ""}


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
    strips = [
        strip_of_step(f"plan {n}", total, [("attention", 1.0)]) for n, total in enumerate(totals)
    ]
    drawn = timeline(strips, "one step")
    assert drawn is not None
    for row, total in zip(drawn.rows, totals, strict=True):
        assert LEFT <= row.low <= row.end <= row.high + 1e-6 <= WIDTH - RIGHT + 1
        assert all(piece.x + piece.width <= WIDTH for lane in row.lanes for piece in lane.pieces)
        assert bool(row.beyond) or total.high <= 3.01 * max(one.typical for one in totals)
    assert drawn.description.count("for one step") == len(totals)


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
