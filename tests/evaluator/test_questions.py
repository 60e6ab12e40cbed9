"""Questions are made from what is unknown, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

from evaluator.facts import Grade, declared
from evaluator.findings import Code, finding
from evaluator.machine import LinkClass, Machine
from evaluator.questions import QUESTIONS, benchmark_for, commands_for, questions_for
from tests.evaluator.machines import known, machine, measured


def test_a_machine_of_which_nothing_is_known_is_asked_everything() -> None:
    asked = questions_for(Machine())
    assert set(QUESTIONS.values()) <= set(asked)
    assert asked[0].startswith("How are the GPUs of this very machine joined?")


def test_what_is_known_is_not_asked() -> None:
    of = replace(
        machine(link=measured(LinkClass.NVLINK)),
        link_bytes_per_s=known(450 * 10**9, Grade.BENCHMARKED),
        **{name: declared("1") for name in QUESTIONS},
    )
    assert questions_for(of) == ()


def test_a_declared_link_is_still_asked_about_and_one_gpu_is_not() -> None:
    assert any("topo -m" in one for one in questions_for(machine(link=LinkClass.NVSWITCH)))
    assert not any("topo -m" in one for one in questions_for(machine(count=1)))


def test_several_machines_are_asked_for_their_network() -> None:
    asked = questions_for(replace(machine(), nodes=2))
    assert any("GPUDirect" in one for one in asked)


def test_what_the_catalog_left_open_is_asked_once() -> None:
    basis = finding(Code.BASIS_UNKNOWN, price="2 USD", gpu_count=8)
    asked = questions_for(machine(), [basis, basis, finding(Code.HIDDEN_TEXT_IGNORED)])
    assert asked.count("Please say whether the rate covers the whole machine.") == 1
    assert not any(one.startswith("Ask ") or "clears it" in one for one in asked)


def test_commands_are_those_of_the_vendor() -> None:
    assert "nvidia-smi topo -m" in commands_for(machine("H100"))
    assert "rocm-smi --showtopo" in commands_for(machine("MI300X"))
    assert benchmark_for(machine(count=8)).endswith("-g 8")
    assert benchmark_for(machine(count=None)).endswith("-g ALL")


def test_amd_machines_are_asked_for_rocm_and_never_for_cuda() -> None:
    asked = questions_for(machine("MI300X"))
    assert any("ROCm" in one for one in asked)
    assert not any("CUDA" in one or "nvidia-smi" in one for one in asked)


def test_links_are_asked_for_once() -> None:
    unverified = finding(Code.TOPOLOGY_NOT_VERIFIED, gpu_count=8)
    assert sum("topo -m" in one for one in questions_for(machine(), [unverified])) == 1
    seen = machine(link=measured(LinkClass.NVLINK))
    assert sum("topo -m" in one for one in questions_for(seen, [unverified])) == 1
