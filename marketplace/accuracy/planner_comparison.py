"""Our pick among the plans of another planner, held against that planner's own numbers.

The other planner predicts too: this is a comparison, not a truth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
BATCHES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of its plans: degrees of an engine and its own output tokens/s per GPU."""

    tensor: int
    stages: int
    per_gpu: float


def compare(path: Path) -> Iterator[str]:
    """One line for each setting and one for all; nothing where the file does not stand beside."""
    file = next((root / FILE for root in path.resolve().parents if (root / FILE).is_file()), None)
    if file is None:
        return
    shares = []
    for line in file.read_text("utf-8").splitlines():
        share = _share_of_best(json.loads(line)) if line.strip() else None
        if share is not None:
            shares.append(share)
    near = sum(share >= NEAR for share in shares)
    yield (
        f"another planner (AIConfigurator, as a comparison): our first of its plans is within "
        f"10 % of its best by its own numbers in {near} of {len(shares)} settings"
    )


def _share_of_best(row: Mapping[str, Any]) -> float | None:
    """Its rate of our pick over its rate of its own. None where we cannot time the setting."""
    plans = (row.get("plans") or {}).get("agg") or []
    choices = list(_choices(plans))
    workload, rental = _workload(row), _rental(str(row.get("system")))
    if len(choices) < 2 or workload is None or rental is None:
        return None
    limits = (float(row["ttft"]) / 1000, float(row["tpot"]) / 1000)
    picked = max(choices, key=lambda choice: _our_rate(choice, workload, rental, limits))
    return picked.per_gpu / max(float(plan["tokens/s/gpu"]) for plan in plans)


def _choices(plans: Sequence[Mapping[str, Any]]) -> Iterator[Choice]:
    for plan in plans:
        found = re.match(r"tp(\d+)pp(\d+)dp1etp\d+ep\d+", str(plan["parallel"]))
        if found:
            yield Choice(int(found[1]), int(found[2]), float(plan["tokens/s/gpu"]))


def _our_rate(
    choice: Choice, workload: Workload, rental: Rental, limits: tuple[float, float]
) -> float:
    """Tokens/s per GPU at the largest batch that meets both latency limits; 0 where none does."""
    best, layout = 0.0, Layout(tensor=choice.tensor, stages=choice.stages)
    for batch in BATCHES:
        times = serving_times(_at(workload, batch), layout, rental)
        if times is None or times.slots.typical < batch:
            break
        if times.ttft.value.typical <= limits[0] and times.tpot.value.typical <= limits[1]:
            best = max(best, times.rate.value.typical / layout.engine_gpus)
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
