"""Machines and workloads in few words, for tests of what is judged about them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from evaluator.facts import UNKNOWN, Fact, Grade, declared
from evaluator.gpus import candidates
from evaluator.jobs import Workload
from evaluator.machine import LinkClass, Machine, worst_usable_bytes
from evaluator.workload import parse_workload, workload_presets


def machine(
    model: str = "H100",
    count: int | None = 8,
    gb: int | None = None,
    form: str | None = None,
    link: LinkClass | Fact[LinkClass] | None = None,
    **facts: Any,
) -> Machine:
    """A machine whose catalog says no more than what is given."""
    specs = candidates(model, label_gb=gb, form_factor=form)
    values: dict[str, Any] = {
        "gpu_model": declared(model),
        "specs": specs,
        "gpu_count": declared(count),
        "usable_bytes_per_gpu": declared(worst_usable_bytes(specs)),
        "form_factor": declared(form),
        "link": link if isinstance(link, Fact) else declared(link),
    }
    return Machine(**(values | facts))


def known(value: Any, grade: Grade = Grade.MEASURED) -> Fact[Any]:
    return UNKNOWN if grade is Grade.UNKNOWN else Fact(value, grade)


def measured(link: LinkClass) -> Fact[LinkClass]:
    return known(link)


@cache
def preset(slug: str) -> Workload:
    return parse_workload(workload_presets()[slug])


SERVE_8B, LORA_8B, TRAIN_70B = "serve-llama-8b", "finetune-llama-8b-lora", "train-llama-70b"


def serve(model: str = "llama-3.1-70b", **keys: Any) -> Workload:
    return parse_workload({"name": "t", "task": "serve", "model": {"preset": model}, **keys})


def train(model: str = "llama-3.1-8b", **keys: Any) -> Workload:
    return parse_workload({"name": "t", "task": "train", "model": {"preset": model}, **keys})


def with_shape(workload: Workload, **changes: Any) -> Workload:
    return replace(workload, model=replace(workload.model, **changes))
