"""Families beside those of the presets: their published totals, and their own words for sizes."""

from __future__ import annotations

from typing import Any

import pytest

from evaluator.configs import read_model
from evaluator.fields import InvalidWorkload
from evaluator.parameters import total_params
from evaluator.shapes import Window
from tests.evaluator.published import PUBLISHED


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_family_gives_its_published_total(name: str) -> None:
    config, published = PUBLISHED[name]
    shape, findings = read_model(config)
    assert total_params(shape) == pytest.approx(published, rel=1e-4 if published % 1e6 else 5e-4)
    assert findings == []
    assert shape.dimensioned


@pytest.mark.parametrize("name", ["OLMo 7B", "DBRX", "MPT 7B", "Baichuan 2 7B", "Hunyuan A13B"])
def test_a_total_without_rounding_is_met_to_the_parameter(name: str) -> None:
    config, published = PUBLISHED[name]
    assert total_params(read_model(config)[0]) == published


def test_local_and_global_layers_may_be_spelt() -> None:
    shape, _ = read_model(PUBLISHED["EXAONE 4 32B"][0])
    assert shape.window == Window(48, 4096)


@pytest.mark.parametrize("spelt", ["LGL", "", "X", ["L", "G"], "L" * 2000 + "G"])
def test_a_spelling_that_means_nothing_is_refused(spelt: Any) -> None:
    with pytest.raises(InvalidWorkload, match="sliding_window_pattern"):
        read_model(PUBLISHED["EXAONE 4 32B"][0] | {"sliding_window_pattern": spelt})


@pytest.mark.parametrize("value", [7, [{}], "1", [[1]], {"a": 1}])
def test_a_strange_list_of_attention_kinds_is_not_read(value: Any) -> None:
    shape, _ = read_model(PUBLISHED["MiniMax M2"][0] | {"attn_type_list": value})
    assert total_params(shape) is None


def test_learned_positions_of_mpt_count_without_alibi() -> None:
    config, published = PUBLISHED["MPT 7B"]
    learned, _ = read_model(config | {"attn_config": {"alibi": False}})
    assert total_params(learned) == published + 2048 * 4096
