"""What a training step waits for from outside the GPU: host memory, the processor, storage."""

from __future__ import annotations

from evaluator.calibration import figure
from evaluator.estimates import Setting
from evaluator.jobs import Offload, Recompute, TrainingJob
from evaluator.ranges import larger, occurs

ACTIVATION_BYTES = 2
GATHERS = 2
"""Offloaded parameters come for the forward and for the backward pass of each micro-batch."""


def host_bytes(job: TrainingJob, held: float, trained: float, rounds: int, inputs: float) -> float:
    """Bytes between one GPU and host memory in a step, both directions.

    `held` parameters are this GPU's share, `trained` of them get gradients; `inputs` are elements
    of all layer inputs of one micro-batch. After ZeRO-Offload, arXiv 2101.06840, section 3: a
    gradient goes down and an updated parameter comes up.
    """
    moved = 0.0
    if job.offload is not Offload.NONE:
        moved += trained * (job.precision.grad_bytes + job.precision.param_bytes)
    if job.offload is Offload.PARAMS:
        moved += GATHERS * rounds * held * job.precision.param_bytes
        moved += (rounds - 1) * trained * job.precision.grad_bytes
    if job.recompute is Recompute.OFFLOAD:
        moved += 2 * rounds * inputs * ACTIVATION_BYTES
    return moved


def host_seconds(moved: float, computed: float, setting: Setting) -> float:
    """What compute does not hide of the traffic with host memory."""
    if not occurs(moved):
        return 0.0
    spent = moved / setting.take("link to host memory", figure("training.host_link"))
    hidden = setting.take("overlap of host traffic", figure("training.host_overlap"))
    return larger(NEVER_HIDDEN * spent, spent - hidden * computed)  # type: ignore[no-any-return]


NEVER_HIDDEN = 0.1
"""The last gradients go down and the first parameters come up with nothing beside them."""


def host_optimizer_seconds(job: TrainingJob, trained: float, setting: Setting) -> float:
    """The optimizer's pass over states that wait in host memory."""
    if job.offload is Offload.NONE:
        return 0.0
    rate = setting.take("optimizer on the host", figure("training.host_optimizer"))
    return trained * job.precision.bytes_per_param / rate


def starved_seconds(
    job: TrainingJob, tokens: int, machines: int, busy: float, setting: Setting
) -> float:
    """What the data of a step take from storage beyond the step itself. 0 where the size of the
    dataset or the number of its tokens is not stated: tokens of text never starve a GPU."""
    if not job.dataset_bytes or not job.tokens_to_train:
        return 0.0
    read = tokens * job.dataset_bytes / job.tokens_to_train / machines
    rate = setting.take("reading from storage", figure("rent.load"))
    return larger(0.0, read / rate - busy)  # type: ignore[no-any-return]
