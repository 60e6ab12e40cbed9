"""What all commands of a training plan have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evaluator.jobs import TrainingJob, Workload
from evaluator.launch.sheet import Command, EngineLaunch
from evaluator.launch.shell import HEAD, Raw, Value, command, pinned
from evaluator.plans import Plan

PORT = 29500
BENCHMARK_STEPS = 50


@dataclass(frozen=True, slots=True)
class Training:
    """What a training command needs to know. `order` are a machine's GPUs in the order of the
    ranks, `short` ends the job after the steps of a benchmark."""

    workload: Workload
    job: TrainingJob
    plan: Plan
    model: str
    order: tuple[int, ...] = ()
    short: bool = False

    @property
    def rounds(self) -> int:
        """Micro-batches of one data-parallel rank in a step."""
        ranks = self.plan.dp * self.job.micro_batch
        return max(1, (self.job.global_batch or ranks) // ranks)

    @property
    def global_batch(self) -> int:
        return self.job.global_batch or self.plan.dp * self.job.micro_batch

    @property
    def gpus_here(self) -> int:
        return self.plan.gpus // self.plan.nodes

    @property
    def copies(self) -> int:
        """Copies of the parameters among the data and context ranks."""
        return max(1, self.plan.dp * self.plan.cp // self.plan.shard)

    @property
    def steps(self) -> int:
        """Steps of the whole job, or of a benchmark where no end is given."""
        tokens = self.job.tokens_to_train
        if self.short or not tokens:
            return BENCHMARK_STEPS
        return -(-tokens // (self.global_batch * self.job.seq_len))


def launched(
    training: Training,
    engine: EngineLaunch,
    refused: str,
    text_of: Callable[[Training], str],
) -> EngineLaunch:
    """The engine with its commands, or with the reason why it has none."""
    if refused:
        return replace(engine, unsupported=refused)
    where = "on each machine" if training.plan.nodes > 1 else "on the machine"
    short = text_of(replace(training, short=True))
    return replace(
        engine,
        commands=(Command(where, text_of(training)),),
        benchmark=(Command(where, short),),
    )


def torchrun(training: Training, *script: str, options: Mapping[str, Value]) -> str:
    """`torchrun` over all GPUs of the plan; machines find each other at machine 0."""
    plan = training.plan
    joined: list[str] = []
    if plan.nodes > 1:
        joined = ["--rdzv-backend", "c10d", "--rdzv-endpoint", Raw(f"{HEAD}:{PORT}")]
    else:
        joined = ["--standalone"]
    head = ("torchrun", "--nnodes", str(plan.nodes), *joined)
    words = (*head, "--nproc-per-node", str(training.gpus_here), *script)
    return pinned(training.order, command(*words, options=options))
