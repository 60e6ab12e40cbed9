"""The dated matrix of drivers, CUDA, engines, cards and number formats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.checklist import HostItem, HostWord
from evaluator.facts import declared
from evaluator.plans import Plan
from evaluator.releases import (
    first_cuda,
    first_nccl,
    lowest_driver,
    own_driver,
    reaches,
    release_of,
    tables,
    version_of,
)
from evaluator.software import software_items
from tests.evaluator.machines import machine, serve, train

PASS, FAIL, UNKNOWN = HostWord.PASS, HostWord.FAIL, HostWord.UNKNOWN
ONE = Plan()


def item(
    name: str, model: str = "H100", keys: dict[str, str] | None = None, **facts: str
) -> HostItem:
    stated = {fact: declared(value) for fact, value in facts.items()}
    found = software_items(serve("llama-3.1-8b", **(keys or {})), machine(model, **stated))
    return next(one for one in found if one.name == name)


def test_every_row_has_a_source_and_the_month_of_its_reading() -> None:
    rows = [row for table in tables().values() for row in table]
    assert len(rows) > 25
    assert all(row.source and re.fullmatch(r"20\d\d-\d\d", row.date) for row in rows)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("570.124.06", (570, 124, 6)),
        ("v0.21.0", (0, 21, 0)),
        ("12.8", (12, 8)),
        ("2.27.3+cuda12.9", (2, 27, 3)),
        ("R570", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_a_version_is_read_as_far_as_it_is_numbers(text: str | None, numbers: object) -> None:
    assert version_of(text) == numbers


def test_a_branch_reaches_the_releases_in_it() -> None:
    assert reaches((570,), (570, 26))
    assert not reaches((565, 57), (570, 26))
    assert reaches((580, 65, 6), (580,))


@given(st.integers(400, 700), st.integers(0, 200), st.integers(0, 300))
def test_a_newer_driver_is_never_worse(branch: int, minor: int, more: int) -> None:
    older = item("driver, CUDA, NCCL", driver_version=f"{branch}.{minor}", cuda_version="12.8")
    newer = item(
        "driver, CUDA, NCCL", driver_version=f"{branch + more}.{minor}", cuda_version="12.8"
    )
    assert older.word is FAIL or newer.word is not FAIL


def test_the_tables_of_drivers() -> None:
    assert lowest_driver((12, 8)) == (525,)
    assert lowest_driver((13, 5)) == (580,)
    assert own_driver((12, 8)) == (570, 26)
    assert own_driver((13, 4)) == (580,)
    assert lowest_driver((9, 0)) == ()


def test_a_card_has_a_first_cuda_where_one_is_listed() -> None:
    assert first_cuda((10, 3)) == (12, 8)
    assert first_cuda((12, 0)) == (12, 8)
    assert first_cuda((9, 0)) == (11, 8)
    assert first_cuda((8, 6)) == ()


@pytest.mark.parametrize(
    ("driver", "cuda", "nccl", "word"),
    [
        ("570.124.06", "12.8", "2.26", PASS),
        ("535.104.05", "12.8", "2.26", PASS),
        ("525.60.13", "13.0", "2.28", FAIL),
        ("515.43.04", "12.1", "2.18", FAIL),
        ("570.124.06", "12.8", "", UNKNOWN),
        ("570.124.06", "", "2.26", UNKNOWN),
        ("", "12.8", "2.26", UNKNOWN),
    ],
)
def test_driver_cuda_and_nccl(driver: str, cuda: str, nccl: str, word: HostWord) -> None:
    stated = {"driver_version": driver, "cuda_version": cuda, "nccl_version": nccl}
    found = item("driver, CUDA, NCCL", **{name: text for name, text in stated.items() if text})
    assert found.word is word
    assert found.remedy or word is PASS


def test_minor_version_compatibility_is_told() -> None:
    stated = {"cuda_version": "12.8", "nccl_version": "2.26"}
    assert "minor version" in item("driver, CUDA, NCCL", driver_version="535.1", **stated).reason
    assert "minor" not in item("driver, CUDA, NCCL", driver_version="570.26", **stated).reason


def test_a_blackwell_card_needs_a_driver_that_knows_it() -> None:
    found = item("driver, CUDA, NCCL", "B200", driver_version="560.28.03", cuda_version="12.6")
    assert found.word is FAIL
    assert "570.26" in found.remedy


def test_the_engine_release_that_is_stated_counts() -> None:
    newest = {"engine": "sglang", "engine_version": "0.5.21"}
    found = item("driver, CUDA, NCCL", keys=newest, driver_version="550.54.14")
    assert found.word is FAIL
    assert "sglang 0.5.21" in found.reason
    older = item(
        "driver, CUDA, NCCL", keys=newest | {"engine_version": "0.5.10"}, driver_version="550"
    )
    assert older.word is UNKNOWN


def test_the_release_of_a_version() -> None:
    assert release_of("vllm", "0.14.1").cuda == (12, 8)  # type: ignore[union-attr]
    assert release_of("vllm", "0.32").cuda == (12, 9)  # type: ignore[union-attr]
    assert release_of("vllm", "").since == (0, 21)  # type: ignore[union-attr]
    assert release_of("another", "1") is None


@pytest.mark.parametrize(
    ("model", "keys", "word"),
    [
        ("H100", {}, PASS),
        ("T4", {}, PASS),
        ("V100", {}, UNKNOWN),
        ("V100", {"engine_version": "0.14"}, PASS),
        ("V100", {"engine_version": "0.22"}, FAIL),
        ("P100", {}, FAIL),
        ("T4", {"engine": "tensorrt-llm"}, FAIL),
        ("MI300X", {}, PASS),
        ("MI355X", {"engine_version": "0.6.5"}, UNKNOWN),
        ("MI300X", {"engine": "sglang"}, UNKNOWN),
        ("H100", {"engine": "llama.cpp"}, UNKNOWN),
    ],
)
def test_the_card_against_the_engine(model: str, keys: dict[str, str], word: HostWord) -> None:
    found = item("GPU against the engine", model, keys)
    assert found.word is word
    assert found.remedy or word is PASS


@pytest.mark.parametrize(
    ("model", "keys", "word"),
    [
        ("H100", {"weights_format": "fp8"}, PASS),
        ("A100", {"weights_format": "fp8"}, PASS),
        ("A100", {"weights_format": "fp8", "engine": "tensorrt-llm"}, FAIL),
        ("V100", {"weights_format": "fp8"}, FAIL),
        ("A100", {"kv_dtype": "fp8"}, UNKNOWN),
        ("H100", {"kv_dtype": "fp8_e4m3"}, PASS),
        ("V100", {"weights_format": "awq-int4"}, FAIL),
        ("V100", {"weights_format": "bf16"}, UNKNOWN),
        ("B200", {"weights_format": "nvfp4"}, PASS),
        ("H100", {"weights_format": "nvfp4"}, UNKNOWN),
        ("H100", {"weights_format": "nvfp4", "engine": "tensorrt-llm"}, FAIL),
        ("MI300X", {"weights_format": "fp8"}, PASS),
        ("MI300X", {"weights_format": "mxfp4"}, UNKNOWN),
        ("MI355X", {"weights_format": "mxfp4"}, PASS),
        ("MI250X", {"kv_dtype": "fp8"}, UNKNOWN),
        ("H100", {"weights_format": "gguf:Q4_K_M"}, PASS),
    ],
)
def test_number_formats(model: str, keys: dict[str, str], word: HostWord) -> None:
    found = item("number formats", model, keys)
    assert found.word is word
    assert found.remedy or word is PASS


def test_unpacked_weights_are_said_to_save_no_arithmetic() -> None:
    assert "saves memory" in item("number formats", "A100", {"weights_format": "fp8"}).reason


def test_training_stands_on_pytorch() -> None:
    found = {one.name: one for one in software_items(train(), machine("V100"))}
    assert found["GPU against the engine"].word is PASS
    assert found["number formats"].remedy == "Run in fp16 (`--dtype half`)."


# --- NCCL and ROCm


@pytest.mark.parametrize(
    ("model", "nccl", "word"),
    [
        ("H100", "2.14.3", UNKNOWN),
        ("H100", "2.15.5", PASS),
        ("B200", "2.24.3", UNKNOWN),
        ("B200", "2.25.1", PASS),
        ("RTX 5090", "2.25.1", UNKNOWN),
        ("RTX 5090", "2.26.2", PASS),
        ("A100", "2.10", PASS),
    ],
)
def test_nccl_older_than_the_card_asks_for_another_image(
    model: str, nccl: str, word: HostWord
) -> None:
    stated = {"driver_version": "590.44.01", "cuda_version": "13.0", "nccl_version": nccl}
    found = item("driver, CUDA, NCCL", model, **stated)
    assert found.word is word
    assert word is PASS or "NCCL" in found.remedy


def test_a_card_that_no_table_names_asks_for_no_nccl() -> None:
    assert first_nccl((8, 0)) == ()
    assert first_nccl((10, 3)) == (2, 25, 1)


@pytest.mark.parametrize(
    ("model", "driver", "rocm", "word"),
    [
        ("MI300X", "6.10.5", "6.3.1", PASS),
        ("MI300X", "", "6.3.1", UNKNOWN),
        ("MI300X", "6.10.5", "", UNKNOWN),
        ("MI300X", "6.10.5", "5.7", FAIL),
        ("MI355X", "6.14.14", "6.4.1", FAIL),
        ("MI355X", "6.14.14", "7.0.2", PASS),
    ],
)
def test_rocm_against_the_card(model: str, driver: str, rocm: str, word: HostWord) -> None:
    stated = {"driver_version": driver, "cuda_version": rocm}
    found = item(
        "driver, ROCm, RCCL", model, **{name: text for name, text in stated.items() if text}
    )
    assert found.word is word
    assert found.remedy or word is PASS


def test_an_engine_may_need_a_newer_rocm_than_the_card() -> None:
    keys = {"engine_version": "0.14"}
    found = item("driver, ROCm, RCCL", "MI300X", keys, driver_version="6.8", cuda_version="6.2")
    assert found.word is FAIL
    assert "vllm 0.14 needs 6.3" in found.reason


def test_an_nccl_from_before_the_switches_added_up_is_said_to_be_one() -> None:
    stated = {"driver_version": "590.44.01", "cuda_version": "13.0"}
    old, new, card = (
        item("driver, CUDA, NCCL", model, nccl_version=nccl, **stated).reason
        for model, nccl in (("H100", "2.16.5"), ("H100", "2.17.1"), ("A100", "2.16.5"))
    )
    assert "from NCCL 2.17 on" in old
    assert "switches" not in new + card
