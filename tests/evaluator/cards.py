"""Cards, models and jobs that the timing tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.devices import Device, device_of
from evaluator.gpus import GpuSpec, specs
from evaluator.jobs import ServingJob, Task, TrainingJob, Workload
from evaluator.layouts import Links
from evaluator.link_costs import Fabric, Wire, wire_of
from evaluator.machine import LinkClass
from evaluator.models import preset
from evaluator.rentals import Rental


def card(spec_id: str) -> GpuSpec:
    return next(spec for spec in specs() if spec.id == spec_id)


H100, A100, L40S = card("h100-sxm5-80"), card("a100-sxm4-80"), card("l40s")
H200, B200 = card("h200-sxm-141"), card("b200-sxm-180")


def device(spec: GpuSpec) -> Device:
    found = device_of(spec)
    assert found is not None
    return found


def wire(kind: LinkClass, spec: GpuSpec = H100, **parts: Any) -> Wire:
    found = wire_of(kind, spec, **parts)
    assert found is not None
    return found


def rental(spec: GpuSpec, kind: LinkClass | None = None, fabric: Fabric | None = None) -> Rental:
    return Rental(device(spec), (Links(wire(kind, spec) if kind else None, fabric),))


def served(model: str = "llama-3.1-70b", form: str = "fp8", **job: Any) -> Workload:
    usual = ServingJob(
        engine="tensorrt-llm",
        kv_dtype="fp8" if form == "fp8" else "bf16",
        input_tokens=5000,
        output_tokens=500,
    )
    return Workload("served", Task.SERVE, preset(model), form, serving=replace(usual, **job))


def trained(model: str = "llama-3.1-8b", **job: Any) -> Workload:
    usual = TrainingJob(seq_len=8192, micro_batch=1, global_batch=64)
    return Workload("trained", Task.TRAIN, preset(model), training=replace(usual, **job))
