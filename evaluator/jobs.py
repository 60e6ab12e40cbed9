"""A workload: one model and what is to be done with it, serving or training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from evaluator.facts import Grade
from evaluator.findings import Finding
from evaluator.shapes import ModelShape


class Task(StrEnum):
    SERVE = "serve"
    TRAIN = "train"
    FINETUNE = "finetune"

    @property
    def word(self) -> str:
        """As a sentence has it."""
        return "fine-tune" if self is Task.FINETUNE else self.value


class Recompute(StrEnum):
    """What the backward pass computes again instead of keeping."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"
    OFFLOAD = "offload"
    """As full, and the inputs of the layers wait in host memory."""

    @property
    def whole_layers(self) -> bool:
        return self in (Recompute.FULL, Recompute.OFFLOAD)


class Offload(StrEnum):
    """What waits in host memory: optimizer states and master copy, or parameters and gradients
    too. The GPU then holds the rest and the layers at hand."""

    NONE = "none"
    OPTIMIZER = "optimizer"
    PARAMS = "params"


class Schedule(StrEnum):
    """The order of micro-batches in a pipeline. `Plan.virtual` above 1 interleaves 1F1B."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    ZERO_BUBBLE_1 = "zb-h1"
    ZERO_BUBBLE_2 = "zb-h2"


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes per trained parameter: working copy, gradient, master copy, optimizer states."""

    param_bytes: float = 2
    grad_bytes: float = 2
    master_bytes: float = 4
    optimizer_bytes: float = 8

    @property
    def bytes_per_param(self) -> float:
        return self.param_bytes + self.grad_bytes + self.master_bytes + self.optimizer_bytes


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters on the named matrices; the base is frozen. `targets` are projections."""

    rank: int = 16
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True, slots=True)
class ServingJob:
    """Requests of `input_tokens` + `output_tokens`, `concurrency` at once over all replicas.

    `lora` and `adapters` are the adapters that the engine keeps room for, `draft_params` the
    parameters of a draft model beside the served one. `prefix_share` is the least and the most
    share of every request that other requests have in common, so that its cache is kept once.
    `memory_utilization` is None where the engine works its share out from the card and the plan.
    """

    engine: str = "vllm"
    engine_version: str = ""
    kv_dtype: str = "bf16"
    input_tokens: int = 1024
    output_tokens: int = 256
    concurrency: int = 1
    memory_utilization: float | None = 0.90
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    arrival_rate: float | None = None
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    tokens_per_s: float | None = None
    mla_kv: bool = True
    window_kv: bool = True
    lora: Lora | None = None
    adapters: int = 1
    draft_params: int = 0
    prefix_share: tuple[float, float] = (0.0, 0.0)

    @property
    def sequence_tokens(self) -> int:
        """Tokens that one request holds in the cache at its end."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """`micro_batch` sequences of `seq_len` per data-parallel rank and forward pass.

    `zero_stage` is what the ranks of `Plan.shard` divide: 1 optimizer states, 2 gradients too,
    3 parameters too (FSDP). `fused_attention` is False where the attention scores are kept,
    `sequence_parallel` is False where tensor parallel ranks all keep the norms' activations,
    `chunked_loss` is True where the loss never holds all logits at once. `bucket_elements` is the
    size of DeepSpeed's buckets under ZeRO 1 and 2; 0 where the framework needs none, None unknown.
    """

    optimizer: str = "adamw"
    precision: Precision = Precision()
    seq_len: int = 4096
    micro_batch: int = 1
    global_batch: int | None = None
    recompute: Recompute = Recompute.NONE
    lora: Lora | None = None
    zero_stage: int = 3
    fused_attention: bool = True
    sequence_parallel: bool = True
    chunked_loss: bool = False
    bucket_elements: int | None = None
    offload: Offload = Offload.NONE
    schedule: Schedule = Schedule.ONE_F_ONE_B
    tokens_to_train: int | None = None
    deadline_hours: float | None = None
    dataset_bytes: int | None = None
    checkpoint_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What a candidate must offer besides memory. None is no demand."""

    regions: tuple[str, ...] = ()
    max_price_per_hour: Decimal | None = None
    spot: bool | None = None
    min_grade: Grade | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """What the user knows of a rental that no listing states. None is not stated.

    Money is in the currency that prices are compared in. `billing_unit_hours` is what a started
    part is paid as, `minimum_hours` the shortest rental. `utilisation` is the share of the time
    in which a server is busy, `reclaim_hours` how long spot capacity stays on average.
    """

    setup_hours: float | None = None
    verification_hours: float | None = None
    stopped_hours: float | None = None
    storage_per_gb_month: Decimal | None = None
    egress_per_gb: Decimal | None = None
    egress_bytes: int | None = None
    download_bytes_per_s: int | None = None
    billing_unit_hours: Decimal | None = None
    minimum_hours: Decimal | None = None
    utilisation: float | None = None
    reclaim_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that the workload left out and the evaluator chose."""

    key: str
    value: str
    reason: str


NOT_JUDGED = frozenset(
    {
        "name",
        "assumptions",
        "findings",
        "source",
        "needs",
        "costs",
        "budget_amount",
        "budget_currency",
    }
)


@dataclass(frozen=True, slots=True)
class Workload:
    """Exactly one of `serving` and `training` is set. `pins` are bytes by component name."""

    name: str
    task: Task
    model: ModelShape
    weights_format: str = "bf16"
    serving: ServingJob | None = None
    training: TrainingJob | None = None
    pins: Mapping[str, int] = field(default_factory=dict, hash=False)
    budget_amount: Decimal | None = None
    budget_currency: str | None = None
    needs: Needs = field(default_factory=Needs)
    costs: Costs = field(default_factory=Costs)
    assumptions: tuple[Assumption, ...] = field(default=(), compare=False)
    findings: tuple[Finding, ...] = field(default=(), compare=False)

    @property
    def terms(self) -> str:
        """Engine and length, without which no word on memory means anything."""
        job = self.serving
        if job is None:
            length = self.training.seq_len if self.training else 0
            return f"training on sequences of {length:,} tokens"
        engine = f"{job.engine} {job.engine_version}".strip()
        limit = f", limit {job.max_model_len:,}" if job.max_model_len else ""
        return f"{engine} with {job.sequence_tokens:,} tokens a sequence{limit}"

    def fingerprint(self) -> str:
        """Equal for workloads that every verdict treats alike.

        Names and notes stay out, and so do demands, costs and budget: they rank verdicts and
        change none.
        """
        text = _identity(self, leave_out=NOT_JUDGED)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _identity(value: Any, leave_out: frozenset[str] | set[str]) -> str:
    if is_dataclass(value):
        parts = [
            f"{item.name}={_identity(getattr(value, item.name), leave_out)}"
            for item in fields(value)
            if item.name not in leave_out
        ]
        return f"({';'.join(parts)})"
    if isinstance(value, Mapping):
        return f"({';'.join(f'{key}={value[key]}' for key in sorted(value))})"
    if isinstance(value, tuple):
        return f"[{','.join(_identity(item, leave_out) for item in value)}]"
    return repr(value)
