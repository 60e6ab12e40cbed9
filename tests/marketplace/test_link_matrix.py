"""The matrix states in words what it draws, and hides no pair."""

from __future__ import annotations

import pytest

from evaluator.connections import NicPaths, Topology
from evaluator.machine import LinkClass
from marketplace.link_matrix import link_matrix
from tests.evaluator.topologies import joined, pairs_of, uniform

PAIRS = joined("NV12", "NODE", "SYS", [(0, 1), (2, 3)], ("0", "0", "1", "1"))


def test_every_pair_is_drawn_with_letters_and_a_title() -> None:
    picture = link_matrix(PAIRS)
    assert picture is not None
    assert len(picture.cells) == 12
    assert {cell.letters for cell in picture.cells} == {"NV12", "SYS"}
    assert "GPUs 0 and 1: NV12" in [cell.title for cell in picture.cells]


def test_a_declaration_stands_in_the_corner_where_it_differs() -> None:
    picture = link_matrix(PAIRS, LinkClass.NVSWITCH)
    assert picture is not None
    assert {cell.letters for cell in picture.cells if cell.declared == "NV"} == {"SYS"}
    bare = link_matrix(PAIRS, LinkClass.NVLINK_PAIRS)
    assert bare is not None
    assert not any(cell.declared for cell in bare.cells)


def test_numa_nodes_are_brackets_and_the_text_says_the_same() -> None:
    picture = link_matrix(PAIRS, LinkClass.NVSWITCH)
    assert picture is not None
    assert [bracket.text for bracket in picture.brackets] == ["0", "1"]
    assert "Fast links join only these: 0, 1; 2, 3." in picture.description
    assert "Declared: NVSwitch between all GPUs." in picture.description
    assert dict(picture.rows)["GPU0"] == ("–", "NV12", "SYS", "SYS")


def test_nics_stand_at_the_edge() -> None:
    topology = Topology(
        gpus=2, matrix=uniform(2, "NV4").matrix, nics=(NicPaths("NIC0", ("PIX", "SYS")),)
    )
    picture = link_matrix(topology)
    assert picture is not None
    right = max(cell.x for cell in picture.cells)
    assert [cell.letters for cell in picture.cells if cell.x == right] == ["PIX", "SYS"]
    assert picture.heads == ("GPU0", "GPU1", "NIC0")


def test_a_pair_that_was_not_seen_is_a_question_mark() -> None:
    picture = link_matrix(pairs_of(3, {(0, 1): "NV4"}), LinkClass.NVLINK)
    assert picture is not None
    assert {cell.tone for cell in picture.cells if cell.letters == "?"} == {"unseen"}
    assert "2 of 3 pairs were not seen." in picture.description


def test_the_groups_of_a_plan_are_framed() -> None:
    picture = link_matrix(PAIRS, groups=((0, 1),))
    assert picture is not None
    assert {cell.title for cell in picture.cells if cell.grouped} == {
        "GPUs 0 and 1: NV12",
        "GPUs 1 and 0: NV12",
    }


@pytest.mark.parametrize("gpus", [1, 2, 8, 16, 72])
def test_everything_lies_inside_the_picture(gpus: int) -> None:
    picture = link_matrix(uniform(gpus, "NV18"))
    assert picture is not None
    assert all(cell.x + cell.side <= picture.width for cell in picture.cells)
    assert all(cell.y + cell.side <= picture.height for cell in picture.cells)


def test_nothing_is_drawn_where_nothing_was_seen() -> None:
    assert link_matrix(Topology()) is None
    assert link_matrix(uniform(73, "NV18")) is None
