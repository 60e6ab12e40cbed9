"""Our pick among the plans of another planner, held against that planner's own numbers.

The other planner predicts too: this is a comparison, not a truth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluator.devices import device_of
from evaluator.gpus import GpuSpec, specs
from evaluator.jobs import ServingJob, Task, Workload
from evaluator.layouts import Layout, Links
from evaluator.link_costs import wire_of
from evaluator.machine import LinkClass
from evaluator.models import preset, presets
from evaluator.rentals import Rental
from evaluator.timing import serving_times

FILE = Path("reference") / "aiconfigurator_plans.jsonl"
NEAR = 0.9
SYSTEMS = {
    "h200_sxm": "h200-sxm-141",
    "h100_sxm": "h100-sxm5-80",
    "b200_sxm": "b200-sxm-180",
    "a100_sxm": "a100-sxm4-80",
    "l40s": "l40s",
}
"""Its systems and our cards; it takes NVSwitch for granted on SXM, and so do we for its plans."""
FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "fp8_static": "fp8"}
BATCHES = tuple(round(2 ** (step / 2)) for step in range(25))
"""Users of one engine, from 1 to 4096, half a doubling apart."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of its plans: the layout of an engine, its own output tokens/s per GPU, and ours.

    `our_rate` is 0 where we see no batch that meets both latency limits, or no room for the cache.
    """

    layout: Layout
    per_gpu: float
    our_rate: float = 0.0

    @property
    def gpus(self) -> int:
        return self.layout.engine_gpus


@dataclass(frozen=True, slots=True)
class Shares:
    """Its rate of our picks over its rate of its own best, in one setting.

    `first` is our fastest per GPU within the limits, `narrowest` the one of fewest GPUs that is
    nearly as fast, `holding` the one of fewest GPUs that merely holds the weights.
    """

    first: float
    narrowest: float
    holding: float


def compare(path: Path) -> Iterator[str]:
    """A line for each way to pick; nothing where the file does not stand beside the cases."""
    file = next((root / FILE for root in path.resolve().parents if (root / FILE).is_file()), None)
    if file is None:
        return
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    found = [shares for row in rows if (shares := shares_of(row))]
    if not found:
        return
    for words, picked in (
        ("our first of its plans", [one.first for one in found]),
        ("the narrowest that meets the targets with room", [one.narrowest for one in found]),
        ("the narrowest that merely holds the weights", [one.holding for one in found]),
    ):
        near = sum(share >= NEAR for share in picked)
        yield (
            f"another planner (AIConfigurator, as a comparison): {words} is within 10 % of "
            f"its best by its own numbers in {near} of {len(found)} settings, "
            f"at worst {min(picked):.0%}"
        )


def shares_of(row: Mapping[str, Any]) -> Shares | None:
    """None where we cannot time the setting, or it leaves no choice."""
    plans = (row.get("plans") or {}).get("agg") or []
    workload, rental = _workload(row), _rental(str(row.get("system")))
    if workload is None or rental is None:
        return None
    limits = (float(row["ttft"]) / 1000, float(row["tpot"]) / 1000)
    choices = [
        replace(choice, our_rate=_our_rate(choice, workload, rental, limits))
        for choice in _choices(plans)
    ]
    if len(choices) < 2:
        return None
    best = max(float(plan["tokens/s/gpu"]) for plan in plans)
    picks = (_first(choices), _narrowest(choices), _holding(choices, workload, rental))
    return Shares(*(pick.per_gpu / best for pick in picks))


def _first(choices: Sequence[Choice]) -> Choice:
    return max(choices, key=lambda choice: choice.our_rate)


def _narrowest(choices: Sequence[Choice]) -> Choice:
    """Fewest GPUs of those that reach nine tenths of our best rate per GPU within the limits."""
    enough = NEAR * _first(choices).our_rate
    useful = [choice for choice in choices if choice.our_rate >= enough]
    return min(useful, key=lambda choice: (choice.gpus, -choice.our_rate))


def _holding(choices: Sequence[Choice], workload: Workload, rental: Rental) -> Choice:
    """Fewest GPUs on which an engine starts at all."""
    one = _at(workload, 1)
    able = [choice for choice in choices if serving_times(one, choice.layout, rental)]
    return min(able or choices, key=lambda choice: choice.gpus)


def _choices(plans: Sequence[Mapping[str, Any]]) -> Iterator[Choice]:
    """Its plans that we can tell apart: experts are shared by all ranks, or by none."""
    for plan in plans:
        found = re.match(r"tp(\d+)pp(\d+)dp(\d+)etp(\d+)ep(\d+)", str(plan["parallel"]))
        if found is None:
            continue
        tensor, stages, data, within, experts = map(int, found.groups())
        if data > 1 and experts == 1:
            continue
        layout = Layout(
            tensor=tensor,
            stages=stages,
            data=data,
            experts=experts,
            within=within if experts > 1 else None,
        )
        yield Choice(layout, float(plan["tokens/s/gpu"]))


def _our_rate(
    choice: Choice, workload: Workload, rental: Rental, limits: tuple[float, float]
) -> float:
    """Tokens/s per GPU at the largest batch that meets both latency limits; 0 where none does."""
    best = 0.0
    for batch in BATCHES:
        times = serving_times(_at(workload, batch), choice.layout, rental)
        if times is None or times.slots.typical < batch:
            break
        if times.ttft.value.typical <= limits[0] and times.tpot.value.typical <= limits[1]:
            best = max(best, times.rate.value.typical / choice.gpus)
    return best


def _at(workload: Workload, batch: int) -> Workload:
    job = workload.serving or ServingJob()
    at_batch = ServingJob(
        engine=job.engine,
        kv_dtype=job.kv_dtype,
        input_tokens=job.input_tokens,
        output_tokens=job.output_tokens,
        concurrency=batch,
    )
    return Workload(
        workload.name, workload.task, workload.model, workload.weights_format, serving=at_batch
    )


def _workload(row: Mapping[str, Any]) -> Workload | None:
    plans = (row.get("plans") or {}).get("agg") or [{}]
    words = str(row.get("model_path")).split("/")[-1].lower().removeprefix("meta-")
    name = next((one for one in presets() if words.startswith(one)), None)
    form = FORMATS.get(str(plans[0].get("gemm")))
    if name is None or form is None:
        return None
    cache = FORMATS.get(str(plans[0].get("kvcache")), "bf16")
    job = ServingJob(
        engine="tensorrt-llm" if row.get("backend") == "trtllm" else str(row.get("backend")),
        kv_dtype=cache,
        input_tokens=int(row["isl"]),
        output_tokens=int(row["osl"]),
    )
    return Workload(str(row["id"]), Task.SERVE, preset(name), form, serving=job)


def _rental(system: str) -> Rental | None:
    spec = next((card for card in specs() if card.id == SYSTEMS.get(system)), None)
    device = device_of(spec) if spec else None
    if spec is None or device is None:
        return None
    return Rental(device, (Links(wire_of(_joined(spec), spec)),))


def _joined(spec: GpuSpec) -> LinkClass:
    switched = any(link.kind == "nvlink_nvswitch" for link in spec.permits)
    return LinkClass.NVSWITCH if switched else LinkClass.PCIE
