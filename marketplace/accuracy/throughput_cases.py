"""Throughput cases as they stand in a file, and the evaluator's objects made from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluator.configs import read_model
from evaluator.devices import device_of
from evaluator.fields import InvalidWorkload
from evaluator.formats import weight_format
from evaluator.gpus import GpuSpec, specs
from evaluator.jobs import Lora, Recompute, ServingJob, Task, TrainingJob, Workload
from evaluator.layouts import Layout, Links
from evaluator.link_costs import Fabric, fabric_of, wire_of
from evaluator.machine import LinkClass
from evaluator.rentals import FASTEST_NETWORK, SLOWEST_NETWORK, Rental, possible_kinds
from evaluator.shapes import ModelShape


class NotJudged(Exception):
    """A case that asks for something the evaluator does not model; never counted as right."""


LINKS = {
    "nvswitch": LinkClass.NVSWITCH,
    "nvlink_mesh": LinkClass.NVLINK,
    "nvlink_bridge": LinkClass.NVLINK_BRIDGE,
    "xgmi": LinkClass.XGMI,
    "pcie_p2p": LinkClass.PCIE,
    "pcie_no_p2p": LinkClass.P2P_DISABLED,
}
"""`pcie_p2p` says that the board permits peer access, and nothing of the machine's paths."""
GPUS_OF_A_MACHINE = 8
"""Where a case does not say: every published machine of its kinds holds eight."""
RACK = {"gb200-186": 72, "gb300-288": 72}
"""GPUs that one NVLink domain joins where it is larger than a machine."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the file with its parts read by name; absent parts are empty."""

    id: str
    kind: str
    group: str
    counted: bool
    model: Mapping[str, Any]
    workload: Mapping[str, Any]
    plan: Mapping[str, Any]
    hardware: Mapping[str, Any]
    measured: Mapping[str, Any]
    source: str = ""

    @property
    def value(self) -> float:
        return float(self.measured["value"])

    @property
    def metric(self) -> str:
        return str(self.measured["metric"])

    @property
    def gpus(self) -> int:
        return int(self.hardware.get("gpus") or 1)

    @property
    def for_fitting(self) -> bool:
        """Whether the case belongs to the half on which constants may be fitted."""
        return int(sha256(self.id.encode()).hexdigest(), 16) % 2 == 0

    @property
    def link_known(self) -> bool:
        """PCIe is not counted as known: the machine's own topology is in no source."""
        network = self.hardware.get("inter_node")
        return self.hardware.get("link") not in ("unknown", "pcie_p2p") and network != "unknown"


def read_cases(path: Path) -> Iterator[Case | str]:
    """Every line of a file, or of each .jsonl file of a folder; a text for one that is no case."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        for number, line in enumerate(file.read_text("utf-8", errors="replace").splitlines(), 1):
            if line.strip():
                yield _read(line, f"{file.name}:{number}")


def _read(line: str, place: str) -> Case | str:
    try:
        return _case(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        return f"{place}: {type(problem).__name__}: {problem}"[:200]


def _case(row: Mapping[str, Any]) -> Case:
    parts = {name: row.get(name) or {} for name in ("model", "workload", "plan", "hardware")}
    case = Case(
        id=str(row["id"]),
        kind=str(row["kind"]),
        group=str(row.get("group") or ""),
        counted=row.get("counted") is not False,
        measured=row["measured"],
        source=str(row.get("source") or ""),
        **parts,
    )
    if not case.value > 0:
        raise ValueError(f"measured.value is {case.value}, expected a number above 0")
    return case


def spec_of(case: Case) -> GpuSpec:
    wanted = case.hardware.get("spec_id")
    found = next((spec for spec in specs() if spec.id == wanted), None)
    if found is None:
        raise NotJudged(f"the card {wanted} is not listed")
    return found


def shape_of(case: Case) -> ModelShape:
    try:
        return read_model(case.model)[0]
    except InvalidWorkload as problem:
        raise NotJudged(str(problem)) from problem


def nodes_of(case: Case) -> int:
    stated = case.hardware.get("nodes")
    together = RACK.get(str(case.hardware.get("spec_id")), GPUS_OF_A_MACHINE)
    return int(stated) if stated and together == GPUS_OF_A_MACHINE else -(-case.gpus // together)


def layout_of(case: Case) -> Layout:
    """Degrees of the case; data parallel copies make up what was not published."""
    plan = {key: int(value) for key, value in case.plan.items() if isinstance(value, int)}
    tensor, stages, context = plan.get("tp", 1), plan.get("pp", 1), plan.get("cp", 1)
    if case.kind == "serve" and plan.get("ep", 1) > 1:
        tensor = max(tensor, case.gpus // stages)  # experts spread over all GPUs hold one copy
    data = max(plan.get("dp", 1), case.gpus // (tensor * stages * context))
    sharded = bool(case.workload.get("zero_stage")) or case.plan.get("dp", 0) is None
    return Layout(
        tensor=tensor,
        stages=stages,
        data=1 if case.kind == "serve" else data,
        shard=plan.get("fsdp_shard") or (data * context if sharded else 1),
        context=context,
        experts=plan.get("ep", 1),
        virtual=plan.get("vpp") or (1 if case.plan.get("schedule") == "1f1b" else None),
        replicas=max(1, case.gpus // (tensor * stages)) if case.kind == "serve" else 1,
        nodes=nodes_of(case),
    )


def rental_of_case(case: Case) -> Rental:
    """The card and the links of a case; what the source does not say spans all that may be."""
    spec = spec_of(case)
    device = device_of(spec)
    if device is None:
        raise NotJudged("the card's peak is not published")
    wires = [wire_of(kind, spec) for kind in _kinds(case, spec)] if case.gpus > 1 else [None]
    worlds = (Links(wire, fabric) for fabric in _fabrics(case) for wire in wires)
    return Rental(device, tuple(worlds))


def _kinds(case: Case, spec: GpuSpec) -> list[LinkClass]:
    stated = LINKS.get(str(case.hardware.get("link")))
    return [stated] if stated else possible_kinds(spec)


def _fabrics(case: Case) -> list[Fabric | None]:
    words = case.hardware.get("inter_node")
    if nodes_of(case) == 1:
        return [None]
    fabric = fabric_of(str(words), GPUS_OF_A_MACHINE) if words else None
    return [fabric] if fabric else [SLOWEST_NETWORK, FASTEST_NETWORK]


def training_of(case: Case) -> TrainingJob:
    stated = case.workload
    lora = Lora() if stated.get("lora") is not None else None
    if not stated.get("seq_len"):
        raise NotJudged("the length of a sequence was not published")
    return TrainingJob(
        seq_len=int(stated["seq_len"]),
        micro_batch=int(stated.get("micro_batch") or 1),
        global_batch=stated.get("global_batch"),
        recompute=Recompute(stated.get("recompute") or "none"),
        lora=lora,
        zero_stage=int(stated.get("zero_stage") or 3),
    )


def is_offline(case: Case) -> bool:
    """Whether all requests were queued at once."""
    return bool(case.workload.get("offline")) or case.workload.get("scenario") == "offline"


def serving_of(case: Case) -> ServingJob:
    stated = case.workload
    return ServingJob(
        engine=str(stated.get("engine") or ""),
        kv_dtype=str(stated.get("kv_dtype") or _usual_cache(stated)),
        input_tokens=int(stated.get("input_tokens") or SHORT_PROMPT),
        output_tokens=int(stated.get("output_tokens") or SHORT_ANSWER),
        concurrency=int(stated.get("concurrency") or 1),
    )


SHORT_PROMPT, SHORT_ANSWER = 16, 256
"""Tokens of a request where a case of one user does not say."""


def _usual_cache(stated: Mapping[str, Any]) -> str:
    """Quantised checkpoints for TensorRT-LLM carry an 8-bit cache."""
    quantised = stated.get("precision") in ("fp8", "nvfp4")
    return "fp8" if quantised and stated.get("engine") == "tensorrt-llm" else "bf16"


def weights_format_of(case: Case) -> str:
    name = str(case.workload.get("precision") or "bf16")
    if weight_format(name) is None:
        raise NotJudged(f"weights in {name}")
    return name


def workload_of(case: Case) -> Workload:
    serving = case.kind == "serve"
    return Workload(
        name=case.id,
        task=Task.SERVE if serving else Task.TRAIN,
        model=shape_of(case),
        weights_format=_loaded_format(case) if serving else "bf16",
        serving=serving_of(case) if serving else None,
        training=None if serving else training_of(case),
    )


def _loaded_format(case: Case) -> str:
    """MXFP4 names experts only; a dense model in 4 bits is taken as one of NVFP4's size."""
    name = weights_format_of(case)
    return "nvfp4" if name == "mxfp4" and shape_of(case).experts is None else name
