"""The workload file: reading it with an error for everything that is not understood."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from evaluator.configs import read_model
from evaluator.facts import Grade
from evaluator.fields import LARGEST, Fields, InvalidWorkload
from evaluator.findings import Code, Finding, finding
from evaluator.formats import weight_format_names, with_group
from evaluator.job_fields import Defaults, read_serving, read_training
from evaluator.jobs import Costs, Needs, ServingJob, Task, TrainingJob, Workload
from evaluator.lora_targets import finds_nothing
from evaluator.models import preset
from evaluator.shapes import ModelShape

__all__ = ["InvalidWorkload", "parse_workload", "workload_presets"]

SERVED = (
    "weights",
    "kv_cache",
    "activations",
    "engine_overhead",
    "communicators",
    "cuda_graphs",
    "cache_reserve",
    "free_margin",
    "tower_profile",
    "lora_buffers",
    "draft_model",
)
TRAINED = (
    "model_states",
    "gathered_layers",
    "prefetched_layers",
    "gradient_buckets",
    "shard_buckets",
    "activations",
    "logits",
    "overhead",
)
COMPONENTS = tuple(dict.fromkeys((*SERVED, *TRAINED)))
"""Components that a user may pin to a number of bytes, each in a job that has it."""

MODULE_FORMATS: Mapping[str, str] = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "awq": "awq-int4",
    "gptq": "gptq-int4",
    "gptq of 8 bits": "gptq-int8",
    "int8": "int8",
    "int4": "int4",
    "nvfp4": "nvfp4",
    "bitsandbytes": "bnb-nf4",
    "bitsandbytes of 8 bits": "int8",
}
"""`quantization_config.quant_method`, with bits other than 4, and the format that it means."""


UNNAMED = "the config names none: gated MLP, two norms a layer, no bias, unless a key says so"


def parse_workload(document: Mapping[str, Any]) -> Workload:
    """A workload from the keys of a workload file. Raises InvalidWorkload and nothing else."""
    keys = Fields(document)
    defaults = Defaults()
    task = Task(_required(keys.choice("task", list(Task)), keys, "task", ", ".join(Task)))
    model, findings = _model(keys, defaults)
    trained = task is not Task.SERVE and not keys.has("lora")
    weights_format = _weights_format(keys, model, defaults, trained=trained)
    serving = read_serving(keys, defaults) if task is Task.SERVE else None
    training = None if serving else read_training(keys, defaults, weights_format)
    amount, currency = _budget(keys)
    workload = Workload(
        name=keys.text("name") or f"{task.word} {model.name}",
        task=task,
        model=model,
        weights_format=weights_format,
        serving=serving,
        training=training,
        pins=_pins(keys, SERVED if serving else TRAINED),
        budget_amount=amount,
        budget_currency=currency,
        needs=_needs(keys),
        costs=_costs(keys),
        findings=(*findings, *_adapter_findings(model, serving, training)),
    )
    keys.finish()
    return replace(workload, assumptions=defaults.used)


def _adapter_findings(
    model: ModelShape, serving: ServingJob | None, training: TrainingJob | None
) -> list[Finding]:
    """The usual targets are projections of attention, which some models have none of."""
    job = serving or training
    if job is None or job.lora is None or not finds_nothing(model, job.lora):
        return []
    targets = ", ".join(job.lora.targets)
    return [finding(Code.NO_ADAPTERS, model=model.name, targets=targets)]


def _required(value: str | None, keys: Fields, key: str, expected: str) -> str:
    if value is None:
        raise keys.refuse(key, f"one of {expected}")
    return value


def _model(keys: Fields, defaults: Defaults) -> tuple[ModelShape, list[Finding]]:
    table = keys.table("model")
    if table is None:
        raise keys.refuse("model", 'a Hugging Face config.json, or {"preset": "llama-3.1-8b"}')
    slug = table.text("preset")
    if slug is None:
        shape, findings = read_model(table.document, "model", whole=True)
        if not shape.architecture and shape.computable:
            defaults.take("model.architectures", "plain decoder", UNNAMED)
        return shape, findings
    table.finish()
    return preset(slug), []


def _weights_format(keys: Fields, model: ModelShape, defaults: Defaults, *, trained: bool) -> str:
    """The stated format, else the checkpoint's own; weights that are trained have 16 bits."""
    stated = keys.choice("weights_format", weight_format_names())
    mixed = model.checkpoint_format.startswith("mixed:")
    named = model.checkpoint_format if mixed else MODULE_FORMATS.get(model.checkpoint_format, "")
    if stated is not None:
        return with_group(stated, model.checkpoint_group) if stated == named else stated
    if trained:
        return defaults.take("weights_format", "bf16", "the usual format of training")
    method = model.checkpoint_format
    if method and not named:
        raise keys.refuse("weights_format", f"a format, as the checkpoint is quantised by {method}")
    if method:
        reason = "the model's quantization_config"
        return defaults.take("weights_format", with_group(named, model.checkpoint_group), reason)
    return defaults.take("weights_format", "bf16", "the usual format of a checkpoint")


def _pins(keys: Fields, names: Sequence[str]) -> Mapping[str, int]:
    table = keys.table("pins")
    if table is None:
        return MappingProxyType({})
    found = {name: table.integer(name, 0) for name in names}
    table.finish()
    return MappingProxyType({name: size for name, size in found.items() if size is not None})


def _budget(keys: Fields) -> tuple[Any, str | None]:
    table = keys.table("budget")
    if table is None:
        return None, None
    amount, currency = table.money("amount"), table.text("currency")
    if amount is None or currency is None:
        missing = "currency" if amount is not None else "amount"
        raise table.refuse(missing, "an amount and a currency")
    if not CURRENCY.fullmatch(currency):
        raise table.refuse("currency", "three capital letters, such as USD")
    table.finish()
    return amount, currency


CURRENCY = re.compile("[A-Z]{3}")
"""An ISO 4217 code. In any other spelling no price would be comparable, without a word of why."""


def _needs(keys: Fields) -> Needs:
    table = keys.table("needs")
    if table is None:
        return Needs()
    grade = table.choice("min_grade", [grade.word for grade in Grade])
    needs = Needs(
        regions=table.texts("regions"),
        max_price_per_hour=table.money("max_price_per_hour"),
        spot=table.flag("spot"),
        min_grade=None if grade is None else Grade.from_word(grade),
    )
    table.finish()
    return needs


MOST_HOURS = 10**6


def _costs(keys: Fields) -> Costs:
    """What the user knows of a rental. Nothing costs 0 unless it is said to."""
    table = keys.table("costs")
    if table is None:
        return Costs()

    def amount(key: str, high: float = MOST_HOURS) -> float | None:
        return table.count(key, high) if table.has(key) else None

    def money(key: str) -> Decimal | None:
        return None if amount(key) is None else Decimal(str(table.raw(key)))

    costs = Costs(
        setup_hours=amount("setup_hours"),
        verification_hours=amount("verification_hours"),
        stopped_hours=amount("stopped_hours"),
        storage_per_gb_month=money("storage_per_gb_month"),
        egress_per_gb=money("egress_per_gb"),
        egress_bytes=table.integer("egress_bytes", 0, LARGEST),
        download_bytes_per_s=table.integer("download_bytes_per_s", 1, LARGEST),
        billing_unit_hours=table.money("billing_unit_hours"),
        minimum_hours=money("minimum_hours"),
        utilisation=table.number("utilisation", high=1),
        reclaim_hours=table.number("reclaim_hours"),
    )
    table.finish()
    return costs


@cache
def workload_presets() -> Mapping[str, Mapping[str, Any]]:
    """Workload documents by slug, ready for `parse_workload`."""
    text = files("evaluator").joinpath("data/workloads.toml").read_text("utf-8")
    return MappingProxyType(dict(tomllib.loads(text)))
