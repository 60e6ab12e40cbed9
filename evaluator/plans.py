"""Parallel plans: how a workload is divided over the GPUs of one rental."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Degrees by name; an absent degree is 1. One optimizer copy spans `dp` ranks.

    tp        tensor parallel degree inside every layer
    pp        pipeline stages
    dp        data parallel ranks of a training job
    shard     ranks that share one copy of the parameters (ZeRO-3/FSDP); 1 is plain data parallel
    replicas  independent copies of a serving engine, which exchange nothing
    nodes     machines of one listing that the plan spans
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    shard: int = 1
    replicas: int = 1
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """GPUs that work, over all machines."""
        return self.tp * self.pp * self.dp * self.replicas
