"""What the fields of a memory case may hold. A value outside that is no case: it would be judged as
if it had been left out, and the figure would answer another question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.fields import Fields

MOST = 10**8
MOST_GIB = 10**6
MOST_BYTES = 64
PLANNED = ("tp", "pp", "dp", "ep", "etp", "cp", "vpp", "dcp", "fsdp_shard")
COUNTED = (
    *("max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    *("micro_batch", "global_batch", "seq_len"),
)
PRECISION = ("param_bytes", "grad_bytes", "master_bytes", "optimizer_bytes")
OBSERVED = ("weights_gib", "activation_peak_gib", "non_torch_gib", "kv_gib")
CAPACITIES = ("kv_room", "kv_tokens", "kv_needed")
SCOPES = ("per_gpu", "model", "instance")


def check_fields(row: Mapping[str, Any]) -> None:
    """Raises InvalidWorkload that names the field, what was read and what was expected."""
    plan, workload, gpu, observed, measured = (
        Fields(row.get(part) or {}, part)
        for part in ("plan", "workload", "gpu", "observed", "measured")
    )
    _whole(plan, PLANNED)
    _whole(workload, COUNTED)
    workload.integer("zero_stage", 0, 3)
    workload.number("memory_utilization", high=1)
    _check_precision(workload.table("precision"))
    gpu.number("reported_gib", high=MOST_GIB)
    _check_observed(observed)
    measured.choice("scope", SCOPES)
    measured.choice("of", CAPACITIES)
    if row.get("kind") == "kv_capacity" and not measured.has("of"):
        raise measured.refuse("of", f"one of {', '.join(CAPACITIES)}")


def _whole(part: Fields, names: tuple[str, ...]) -> None:
    for name in names:
        part.integer(name, 1, MOST)


def _check_precision(precision: Fields | None) -> None:
    if precision is None:
        return
    for name in PRECISION:
        if precision.raw(name) is not None:
            precision.count(name, MOST_BYTES)
    precision.finish()


def _check_observed(observed: Fields) -> None:
    """Graphs may take less than nothing where a log compares two moments."""
    for name in OBSERVED:
        if observed.has(name):
            observed.count(name, MOST_GIB)
    observed.number("cuda_graph_gib", low=-MOST_GIB, high=MOST_GIB)
    observed.number("bits_per_weight", high=MOST_BYTES)
    observed.integer("kv_tokens", 1, 10**12)
