from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator import __version__
from evaluator.machine import LinkClass
from evaluator.reports import (
    UnreadableReport,
    condense,
    evaluator_version,
    from_report,
    to_report,
)
from evaluator.verdict import MachineVerdict, judge_briefly
from evaluator.workbook import Workbook
from tests.evaluator.machines import LORA_8B, SERVE_8B, TRAIN_70B, machine, preset

BOOKS = {slug: Workbook(preset(slug)) for slug in (SERVE_8B, LORA_8B, TRAIN_70B)}


def verdict(slug: str = TRAIN_70B, model: str = "H100", count: int = 8) -> MachineVerdict:
    return judge_briefly(BOOKS[slug], machine(model, count, link=LinkClass.NVSWITCH))


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(list(BOOKS)),
    st.sampled_from(["L4", "A100", "H100", "MI300X"]),
    st.sampled_from([1, 2, 8]),
)
def test_a_kept_verdict_comes_back_from_json_as_it_was(slug: str, model: str, count: int) -> None:
    made = verdict(slug, model, count)
    kept = from_report(json.loads(json.dumps(to_report(made))))
    assert kept == condense(made)
    assert (kept.best, kept.single, kept.nearest) == (made.best, made.single, made.nearest)
    assert kept.plans_judged == len(made.plans)


def test_a_kept_verdict_holds_only_what_a_list_can_show() -> None:
    assert len(condense(verdict()).plans) <= 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda report: report.pop("plans"),
        lambda report: report.update(extra=1),
        lambda report: report.update(gpu_count="8"),
        lambda report: report["plans"][0].update(status="splendid"),
        lambda report: report["plans"][0]["findings"].append({"code": "gone", "gaps": {}}),
        lambda report: report["plans"].append(None),
    ],
)
def test_a_report_of_another_shape_is_refused(damage: object) -> None:
    report = json.loads(json.dumps(to_report(verdict())))
    damage(report)  # type: ignore[operator]
    with pytest.raises(UnreadableReport):
        from_report(report)


def test_the_version_names_the_code_that_judged_and_fits_its_column() -> None:
    assert evaluator_version().startswith(f"{__version__}+")
    assert len(evaluator_version()) <= 40
