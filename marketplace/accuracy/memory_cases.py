"""Memory cases as they stand in a file, and the evaluator's objects made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from evaluator.configs import read_model
from evaluator.engines import engine
from evaluator.fields import InvalidWorkload
from evaluator.formats import KV_BYTES, WeightFormat, weight_format
from evaluator.gpus import specs
from evaluator.jobs import (
    Lora,
    Offload,
    Precision,
    Recompute,
    ServingJob,
    Task,
    TrainingJob,
    Workload,
)
from evaluator.plans import Plan
from evaluator.ranges import exact
from evaluator.recipes import optimizers, recipe
from evaluator.shapes import ModelShape
from evaluator.units import GB, GIB, MIB
from marketplace.accuracy.memory_fields import check_fields

UNITS = {"bytes": 1, "GiB": GIB, "GB": GB, "bytes_per_token": 1, "tokens": 1}
TOLERANCE_WORDS = ("exact", "marginal_allowed", "lower_bound", "not_below")


class UnreadableCase(ValueError):
    """A line that is no case: where it stands and what is wrong with it."""


class NotJudged(Exception):
    """A case that asks for something the evaluator does not model; never counted as right."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the case file with its parts read by name; absent parts are empty."""

    id: str
    kind: str
    model: Mapping[str, Any]
    workload: Mapping[str, Any]
    plan: Mapping[str, Any]
    gpu: Mapping[str, Any]
    observed: Mapping[str, Any]
    measured: Mapping[str, Any]
    tolerance: float | str
    blind: bool = False
    source: str = ""

    @property
    def value(self) -> Any:
        return self.measured["value"]

    @property
    def unit_bytes(self) -> int:
        return UNITS[self.measured["unit"]]

    def observed_bytes(self, name: str) -> float | None:
        """A figure of the same log in bytes; None where it was not printed."""
        value = self.observed.get(f"{name}_gib")
        return None if value is None else float(value) * GIB


def read_cases(path: Path) -> Iterator[Case | UnreadableCase]:
    """Every line of a file, or of each .jsonl file of a folder, in order."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        for number, line in enumerate(file.read_text("utf-8", errors="replace").splitlines(), 1):
            if line.strip():
                yield _read(line, f"{file.name}:{number}")


def _read(line: str, place: str) -> Case | UnreadableCase:
    try:
        return _case(json.loads(line))
    except InvalidWorkload as problem:
        return UnreadableCase(f"{place}: {problem}"[:200])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return UnreadableCase(f"{place}: {type(problem).__name__}: {problem}"[:200])


def _case(row: Mapping[str, Any]) -> Case:
    if not isinstance(row, Mapping):
        raise InvalidWorkload(
            "the line", row, "an object with id, kind, model, measured and tolerance"
        )
    measured = row["measured"]
    parts = {name: row.get(name) or {} for name in ("model", "workload", "plan", "gpu", "observed")}
    if not all(isinstance(part, Mapping) for part in (*parts.values(), measured)):
        raise TypeError("model, workload, plan, gpu, observed and measured are objects")
    check_fields(row)
    case = Case(
        id=str(row["id"]),
        kind=str(row["kind"]),
        measured=measured,
        tolerance=row["tolerance"],
        blind=row.get("blind") is True,
        source=str(row.get("source") or ""),
        **parts,
    )
    _check_value(case)
    return case


def _check_value(case: Case) -> None:
    if not isinstance(case.tolerance, int | float) and case.tolerance not in TOLERANCE_WORDS:
        expected = f"a number or one of {', '.join(TOLERANCE_WORDS)}"
        raise ValueError(f"tolerance is {case.tolerance!r}, expected {expected}")
    unit, value = case.measured["unit"], case.value
    if unit == "bool":
        if not isinstance(value, bool):
            raise TypeError(f"measured.value is {value!r}, expected true or false")
    elif unit not in UNITS:
        raise ValueError(f"measured.unit is {unit!r}, expected one of {', '.join(UNITS)}")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise TypeError(f"measured.value is {value!r}, expected a number above 0")


def shape_of(case: Case) -> ModelShape:
    """Megatron trains the layers of further prediction, which engines leave out. Raises
    InvalidWorkload."""
    megatron = case.workload.get("engine") == "megatron-core"
    stated = {**MEGATRON_VOCABULARY, **case.model} if megatron else case.model
    shape = read_model(stated)[0]
    further = case.model.get("num_nextn_predict_layers") or 0
    return replace(shape, predict_layers=further) if megatron else shape


MEGATRON_VOCABULARY = {"vocab_size": 50_432}
"""Megatron's own test runs use the GPT-2 tokenizer: 50,257 entries, padded to 128 x tp."""


def format_of(case: Case) -> WeightFormat:
    """The stated format; bits per weight from the file's own header outrank the table."""
    name = case.workload.get("weights_format") or "bf16"
    bits = case.observed.get("bits_per_weight")
    if bits is not None:
        return WeightFormat(
            exact(float(bits)), "bits per weight of the file", whole=True, mapped=True
        )
    form = weight_format(name)
    if form is None:
        raise NotJudged(f"weights_format {name} has no published size")
    return form


def plan_of(case: Case) -> Plan:
    """Degrees of the case. The shard group is the data-parallel size where ZeRO shares states."""
    stated = case.plan
    degrees = {ours: stated.get(theirs) or 1 for theirs, ours in DEGREES.items()}
    dp = _data_ranks(case)
    zero = case.workload.get("zero_stage") or 0
    shard = stated.get("fsdp_shard") or (dp * degrees["cp"] if zero else 1)
    return Plan(**degrees, dp=dp, shard=shard)


DEGREES = {"tp": "tp", "pp": "pp", "ep": "ep", "etp": "etp", "cp": "cp", "vpp": "virtual"}


def _data_ranks(case: Case) -> int:
    """Where the size was not published, the largest that the global batch allows: what is certain
    to remain on a GPU is what remains then."""
    stated, batch = case.plan.get("dp"), case.workload.get("global_batch")
    if "dp" not in case.plan or stated:
        return stated or 1
    if not batch:
        raise NotJudged("the data-parallel size was not published")
    return int(batch) // (case.workload.get("micro_batch") or 1)


def cache_plan_of(case: Case) -> Plan:
    """Expert parallelism and data parallel attention do not touch the cache of one GPU."""
    return Plan(tp=case.plan.get("tp") or 1, pp=case.plan.get("pp") or 1)


def serving_of(case: Case) -> ServingJob:
    stated = case.workload
    kv_dtype = stated.get("kv_dtype") or "bf16"
    if kv_dtype not in KV_BYTES:
        raise NotJudged(f"a cache of {kv_dtype}")
    longest = stated.get("max_model_len") or case.model.get("max_position_embeddings") or 1
    sequences = stated.get("max_num_seqs")
    name, version = stated.get("engine") or "", stated.get("engine_version") or ""
    return ServingJob(
        engine=name,
        engine_version=version,
        kv_dtype=kv_dtype,
        input_tokens=longest,
        output_tokens=0,
        concurrency=1,
        memory_utilization=stated.get("memory_utilization") or engine(name, version).fraction,
        max_num_seqs=sequences,
        max_num_batched_tokens=stated.get("max_num_batched_tokens"),
        mla_kv=stated.get("mla_kv") is not False,
        window_kv=stated.get("window_kv") is not False,
        lora=_lora(stated["lora"]) if (stated.get("lora") or {}).get("rank") else None,
    )


def training_of(case: Case) -> TrainingJob:
    stated = case.workload
    recompute = stated.get("recompute") or "none"
    if recompute not in list(Recompute):
        raise NotJudged(f"recomputation {recompute}")
    optimizer = stated.get("optimizer") or "adamw"
    return TrainingJob(
        optimizer=optimizer,
        precision=_precision(stated, optimizer),
        seq_len=stated.get("seq_len") or 1,
        micro_batch=stated.get("micro_batch") or 1,
        global_batch=stated.get("global_batch"),
        recompute=Recompute(recompute),
        lora=_lora(stated["lora"]) if stated.get("lora") is not None else None,
        zero_stage=stated.get("zero_stage") or 3,
        fused_attention=stated.get("attention") != "unfused",
        chunked_loss=stated.get("chunked_loss") is True,
        sequence_parallel=case.plan.get("sequence_parallel") is True,
        offload=Offload(stated.get("offload") or "none"),
    )


def _precision(stated: Mapping[str, Any], optimizer: str) -> Precision:
    """Bytes as stated, else those of the optimizer's mixed recipe. Raises NotJudged."""
    if stated.get("precision"):
        return Precision(**stated["precision"])
    if optimizer not in optimizers():
        raise NotJudged(f"the states of {optimizer} are not known")
    return recipe(optimizer, "mixed")


def _lora(stated: Mapping[str, Any]) -> Lora:
    usual = Lora()
    targets = tuple(stated.get("targets") or usual.targets)
    return Lora(rank=stated.get("rank") or usual.rank, targets=targets)


def workload_of(case: Case) -> Workload:
    serving = case.workload.get("task") != "train"
    return Workload(
        name=case.id,
        task=Task.SERVE if serving else Task.TRAIN,
        model=shape_of(case),
        weights_format=case.workload.get("weights_format") or "bf16",
        serving=serving_of(case) if serving else None,
        training=None if serving else training_of(case),
    )


def reported_bytes(case: Case) -> float:
    """What the driver reports: the log's own figure, else the published one of the card, else
    the usual one of cards of the size that the case names ("80 GB class")."""
    logged = case.gpu.get("reported_gib")
    if logged is not None:
        return float(logged) * GIB
    stated = re.search(r"(\d+) ?GB", str(case.gpu.get("name")))
    label = int(stated[1]) if stated else None
    named = [spec for spec in specs() if spec.id == case.gpu.get("spec_id")]
    alike = named or [spec for spec in specs() if spec.label_gb == label]
    found = [spec.driver_reported_mib for spec in alike if spec.driver_reported_mib]
    if not found:
        raise NotJudged("the GPU's reported memory is not known")
    return median(found) * MIB
