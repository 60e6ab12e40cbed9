"""Speeds that engines and trainers print themselves. The samples are ours, in their layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.evidence.engine_runs import (
    FIRST_TOKEN,
    GPU_RATE,
    OUTPUT_RATE,
    PER_TOKEN,
    STEP,
    engine_runs,
)

SERVED = (Path(__file__).parents[2] / "samples" / "evidence" / "engine-serve.txt").read_text(
    "utf-8"
)
MEGATRON = (
    " [2026-11-02 10:00:00] iteration {0:8d}/     100 | consumed samples: 160 | elapsed time per "
    "iteration (ms): {1:.1f} | learning rate: 1E-04 | global batch size:   16 |"
)
TITAN = "[rank0]:step: {0}  loss: 7.2  memory: 43.0GiB(54%)  tps: {1:,}  tflops: 197.0  mfu: 20.0%"


def read(text: str) -> dict[str, float]:
    return {one.metric: one.value for one in engine_runs(text)}


def test_a_report_of_a_server_says_rate_and_both_waits() -> None:
    found = read(SERVED)
    assert found == {
        OUTPUT_RATE: 2000,
        FIRST_TOKEN: pytest.approx(0.1964),
        PER_TOKEN: pytest.approx(0.0131),
    }


def test_the_middle_step_after_the_warm_up_counts() -> None:
    times = {1: 9000, 10: 8000, 11: 1000, 12: 1100, 13: 1200, 14: 5000}
    log = "\n".join(MEGATRON.format(step, ms) for step, ms in times.items())
    (found,) = engine_runs(log)
    assert (found.metric, found.value, found.count) == (STEP, pytest.approx(1.15), 4)


def test_a_rate_of_one_device_stays_one() -> None:
    log = "\n".join(TITAN.format(step, 3000 + step) for step in (1, 20, 30, 40))
    (found,) = engine_runs(log)
    assert (found.metric, found.value, found.unit) == (GPU_RATE, 3030, "tokens/s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing here",
        SERVED + SERVED,
        SERVED.replace(":  ", "=  "),
        MEGATRON.format(11, 1000),
        "\n".join(TITAN.format(step, 3000) for step in (1, 5, 10)),
        "Mean TTFT (ms):   nan\nMean TPOT (ms):   -3.0",
        "Mean TTFT (ms):   0.00",
    ],
)
def test_what_is_cut_doubled_or_warming_up_says_nothing(text: str) -> None:
    assert engine_runs(text) == ()
