"""What changed since an answer was kept: rows that moved, left, or came."""

from __future__ import annotations

from marketplace.frozen import SHOWN, changes


def row(key: str, rank: str = "1", **values: str) -> dict[str, str]:
    usual = dict.fromkeys(SHOWN, "as before") | {"key": key, "rank": rank, "title": key}
    return usual | values


def test_nothing_is_said_where_nothing_changed() -> None:
    assert changes([row("a"), row("b")], [row("b"), row("a")], [row("a")]) == []


def test_each_value_is_told_before_and_now() -> None:
    found = changes([row("a", hourly="2 USD")], [row("a", hourly="3 USD", rank="4")], [])
    assert [one.pairs for one in found] == [
        (("rank", "1", "4"), ("cost per hour", "2 USD", "3 USD"))
    ]


def test_what_left_and_what_came_is_told() -> None:
    here = row("b", rank="not ranked", hourly="2.00 USD")
    found = changes([row("a", hourly="3.00 USD")], [here], [here])
    assert [(one.row["key"], one.pairs) for one in found] == [
        ("a", (("no longer in the answer", "rank 1, 3.00 USD", "–"),)),
        ("b", (("new here", "–", "not ranked, 2.00 USD"),)),
    ]


def test_a_row_that_moved_in_rank_alone_is_told_apart() -> None:
    kept = [row("a"), row("b", rank="2")]
    today = [row("a", rank="2", hourly="3 USD"), row("b", rank="1")]
    assert [one.moved_only for one in changes(kept, today, today)] == [False, True]


def test_a_row_that_still_stands_further_down_is_not_gone() -> None:
    assert changes([row("a")], [row("b"), row("a")], [row("a")]) == []


def test_row_0_and_the_same_listing_under_another_plan_are_two_rows() -> None:
    kept = [row("a", rank="0", plan="one GPU"), row("a", rank="3", plan="TP 8")]
    assert changes(kept, list(reversed(kept)), kept) == []


def test_a_value_that_an_older_version_did_not_keep_is_empty_then() -> None:
    old = row("a")
    del old["availability"]
    (found,) = changes([old], [row("a")], [])
    assert found.pairs == (("availability", "", "as before"),)
