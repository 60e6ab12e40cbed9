"""How to launch a plan and how to prove us wrong: commands by engine, memory, link, benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evaluator.collectives import traffic
from evaluator.findings import Code, Finding, finding
from evaluator.jobs import Workload
from evaluator.launch.benchmark import benchmark_of
from evaluator.launch.deepspeed import deepspeed
from evaluator.launch.megatron import megatron
from evaluator.launch.serving import Serving, sglang, vllm
from evaluator.launch.sheet import (
    Benchmark,
    Command,
    Counter,
    EngineLaunch,
    LaunchSheet,
    Predicted,
)
from evaluator.launch.shell import safe_name
from evaluator.launch.torchtitan import torchtitan
from evaluator.launch.training import Training
from evaluator.link_verdicts import LinkVerdict
from evaluator.machine import Machine
from evaluator.memory import budget
from evaluator.models import repository_of
from evaluator.plans import Plan
from evaluator.states import trainable_params
from evaluator.topology import judge_link

__all__ = [
    "Benchmark",
    "Command",
    "Counter",
    "EngineLaunch",
    "LaunchSheet",
    "Predicted",
    "launch_of",
]


def launch_of(
    workload: Workload,
    plan: Plan,
    machine: Machine,
    *,
    model: str = "",
    unknown_fabric: bool = False,
) -> LaunchSheet:
    """The launch sheet of a plan on a machine.

    `model` is the path or name of the checkpoint; without it that of a listed model, or else the
    workload's own name stands there. Commands over several machines are refused while nothing is
    known of the network between them, unless `unknown_fabric` asks for them.
    """
    known = model or repository_of(workload.model.name)
    name = safe_name(known or workload.model.name)
    refusal = None if unknown_fabric else _fabric_unknown(plan, machine)
    link = _link(workload, plan, machine)
    engines = tuple(_engines(workload, plan, name, _order(plan, link.groups)))
    if refusal:
        engines = tuple(replace(one, commands=(), benchmark=()) for one in engines)
    binding = budget(workload, plan).binding
    return LaunchSheet(
        plan=plan,
        engines=engines,
        assumptions=tuple(_assumptions(workload, plan, named=bool(known))),
        memory=binding.bytes if binding else None,
        usable_bytes=machine.usable_bytes_per_gpu.value,
        link=link,
        benchmark=benchmark_of(workload, plan, machine),
        refusal=refusal,
    )


def _fabric_unknown(plan: Plan, machine: Machine) -> Finding | None:
    if not plan.joins_machines or machine.inter_node.known:
        return None
    return finding(Code.FABRIC_UNKNOWN, plan=plan.label, nodes=plan.nodes)


def _order(plan: Plan, groups: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """GPUs of a machine in the order of the ranks, where groups that were seen hold them all."""
    order = tuple(gpu for group in groups for gpu in group)
    return order if len(order) == plan.gpus // plan.nodes else ()


def _engines(
    workload: Workload, plan: Plan, model: str, order: tuple[int, ...]
) -> Iterator[EngineLaunch]:
    """The workload's own engine first."""
    if workload.serving:
        serving = Serving(workload, workload.serving, plan, model, order)
        makers = (sglang, vllm) if workload.serving.engine == "sglang" else (vllm, sglang)
        yield from (make(serving) for make in makers)
    elif workload.training:
        training = Training(workload, workload.training, plan, model, order)
        yield from (make(training) for make in (torchtitan, megatron, deepspeed))


def _link(workload: Workload, plan: Plan, machine: Machine) -> LinkVerdict:
    if not workload.model.dimensioned:
        return judge_link(plan, machine, "unknown: the dimensions of the model are not stated")
    moved = traffic(workload, plan, trainable_params(workload))
    return judge_link(plan, machine, "; ".join(one.words for one in moved), moved)


def _assumptions(workload: Workload, plan: Plan, *, named: bool) -> Iterator[str]:
    if not named:
        yield "Put the path or the full name of the checkpoint where the model's name stands."
    if plan.joins_machines:
        yield "HEAD_ADDR is the address of machine 0 as the other machines see it."
        yield "NODE_RANK counts the machines from 0, where a command uses it."
    if workload.serving:
        yield from _serving_assumptions(workload, plan)
    else:
        if plan.joins_machines:
            slots = f"slots={plan.gpus // plan.nodes}"
            yield f"DeepSpeed's hostfile has a line for each machine: its address and {slots}."
        yield "CONFIG is torchtitan's own file for this model: its flavour, tokenizer and data."
        yield "DATASET is the dataset; Megatron-LM runs on mock data until --data-path replaces it."
        yield "Rates of 1e-4 and the like are placeholders: they change no time and no memory."
    yield from (f"{one.key} is {one.value}: {one.reason}." for one in workload.assumptions)


def _serving_assumptions(workload: Workload, plan: Plan) -> Iterator[str]:
    job = workload.serving
    if job and job.engine not in ("vllm", "sglang"):
        yield f"Memory and time are those of {job.engine}; the commands are of other engines."
    elif job and job.engine_version:
        yield f"Memory is that of {job.engine} {job.engine_version}: check that it has each option."
    if not workload.model.checkpoint_format and workload.weights_format not in MADE_OR_PLAIN:
        yield f"The checkpoint is already quantised to {workload.weights_format}."
    if plan.replicas > 1:
        yield "A router shares the requests out evenly; ROUTER_URL is its address, where asked for."
    yield "The server listens on the machine itself; a gateway in front of it is yours to add."


MADE_OR_PLAIN = frozenset({"bf16", "fp16", "fp32", "fp8", "bnb-nf4"})
"""Formats that need no quantised checkpoint."""
