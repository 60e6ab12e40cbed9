"""Batches that a source does not print, as somebody who tunes a run would choose them."""

from __future__ import annotations

from dataclasses import replace

from evaluator.budgets import FitWord
from evaluator.jobs import TrainingJob, Workload
from evaluator.layouts import Layout
from evaluator.memory import budget, fit
from evaluator.plans import Plan

STEP_TOKENS = 16_384
"""Tokens of a GPU in one step where no batch is printed: four million on 256 GPUs."""


def with_batches(
    workload: Workload, layout: Layout, usable_bytes: int | None, *, micro_stated: bool
) -> Workload:
    """The workload with its global batch, and the largest micro-batch that fits.

    A pipeline keeps one sequence: more of them at once only lengthen its bubble.
    """
    job = workload.training
    if job is None or micro_stated:
        return workload
    share = _sequences_of_rank(job, layout)
    whole = replace(job, global_batch=job.global_batch or share * layout.data)
    if layout.stages > 1:
        return replace(workload, training=whole)
    sizes = (size for size in range(share, 0, -1) if share % size == 0)
    tried = (replace(workload, training=replace(whole, micro_batch=size)) for size in sizes)
    fitting = (one for one in tried if _fits(one, layout, usable_bytes))
    return next(fitting, replace(workload, training=whole))


def _sequences_of_rank(job: TrainingJob, layout: Layout) -> int:
    if job.global_batch:
        return max(1, job.global_batch // layout.data)
    return max(1, STEP_TOKENS // job.seq_len)


def _fits(workload: Workload, layout: Layout, usable_bytes: int | None) -> bool:
    plan = Plan(
        tp=layout.tensor, dp=layout.data, shard=layout.shard, cp=layout.context, ep=layout.experts
    )
    return fit(budget(workload, plan), usable_bytes).word in (FitWord.FITS, FitWord.TIGHT)
