"""What a finding about evidence says: the gap, the way out, and what clears it."""

from __future__ import annotations

import pytest

from evaluator.findings import Code, finding, gaps_of
from evaluator.meanings import EVIDENCE_MEANINGS

CODES = [Code(value) for value in EVIDENCE_MEANINGS]


@pytest.mark.parametrize("code", CODES)
def test_each_names_its_gap_its_remedy_and_what_clears_it(code: Code) -> None:
    gaps = {name: f"<{name}>" for name in gaps_of(code)}
    found = finding(code, **gaps)
    assert gaps
    assert all(word in found.sentence + found.remedy for word in gaps.values())
    assert found.remedy.endswith(".")
    assert code.meaning.cleared_by is not None


@pytest.mark.parametrize("code", CODES)
def test_each_says_in_its_remedy_what_result_would_clear_it(code: Code) -> None:
    remedy = code.meaning.remedy
    assert "clears it" in remedy or "{rate}" in remedy or "Run " in remedy or "Paste " in remedy
