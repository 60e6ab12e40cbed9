from __future__ import annotations

from typing import Any

import pytest

from evaluator.findings import Code, finding, recall


def test_a_stored_finding_comes_back() -> None:
    kept = finding(Code.IDLE_GPUS, idle=3, gpu_count=4)
    assert recall(kept.as_dict()) == kept


@pytest.mark.parametrize(
    "stored",
    [
        {"code": "no_longer_used", "gaps": {}},
        {"code": "idle_gpus", "gaps": {"idle": "3"}},
        {"code": "idle_gpus"},
        {},
    ],
)
def test_a_finding_of_another_version_is_told_and_not_dropped(stored: dict[str, Any]) -> None:
    found = recall(stored)
    assert found.code is Code.FINDING_OUTDATED
    assert str(stored.get("code", "something")) in found.sentence
