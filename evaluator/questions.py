"""What to ask a provider, and what to run: made from what is not known about a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evaluator.facts import Grade
from evaluator.findings import Finding
from evaluator.held import is_amd
from evaluator.machine import Machine

QUESTIONS = {
    "gpu_model": "Which GPU model exactly, with how much memory (`nvidia-smi -L`)?",
    "gpu_count": "How many whole GPUs does one machine have?",
    "usable_bytes_per_gpu": "How much memory does the driver report per GPU?",
    "vcpus": "How many vCPUs does the machine have?",
    "ram_bytes": "How much RAM does the host have?",
    "local_storage_bytes": "How large is the local disk?",
    "persistent_storage": "Which storage outlives the rental?",
    "pcie_generation": "Which PCIe generation and width does each GPU's slot have?",
    "power_limit_watts": "Which power limit do the GPUs run at (`nvidia-smi -q -d POWER`)?",
    "virtual": "Is it bare metal or a virtual machine?",
    "shm_bytes": "How large is /dev/shm, and may a container enlarge it?",
    "open_ports": "How many ports can be reached from outside?",
    "download_bytes_per_s": "How fast does the machine download, and what does traffic cost?",
    "driver_version": "Which GPU driver is installed?",
    "cuda_version": "Which CUDA version does the driver support?",
    "nccl_version": "Which NCCL version is installed?",
}
"""By attribute of the machine, asked where nothing is known of it."""
OF_AMD = {
    "cuda_version": "Which ROCm release is installed (`amd-smi version`)?",
    "nccl_version": "",
    "power_limit_watts": "Which power limit do the GPUs run at (`amd-smi metric --power`)?",
}
"""What is asked otherwise of machines with AMD's cards; RCCL comes with ROCm."""


def questions_for(machine: Machine, findings: Iterable[Finding] = ()) -> tuple[str, ...]:
    """Questions to send, each once: the links first, as they decide most."""
    return tuple(dict.fromkeys(_questions(machine, findings)))


def _questions(machine: Machine, findings: Iterable[Finding]) -> Iterator[str]:
    count = machine.gpu_count.value
    unseen = count != 1 and not machine.link.at_least(Grade.MEASURED)
    if unseen:
        yield (
            "How are the GPUs of this very machine joined? Please send "
            f"{_listed(AMD_LINKS if is_amd(machine) else NVIDIA_LINKS)}."
        )
    if count != 1 and not machine.link_bytes_per_s.at_least(Grade.BENCHMARKED):
        ranks = count or "ALL"
        yield f"What does `all_reduce_perf -b 1G -e 8G -f 2 -g {ranks}` give on it?"
    if machine.nodes > 1 and not machine.inter_node.at_least(Grade.BENCHMARKED):
        yield "Which network joins the machines, and does NCCL use GPUDirect RDMA over it?"
    asked = QUESTIONS | OF_AMD if is_amd(machine) else QUESTIONS
    yield from (text for name, text in asked.items() if text and not getattr(machine, name).known)
    remedies = (found.remedy for found in findings if found.remedy.startswith("Ask "))
    yield from (_request(remedy) for remedy in remedies if not (unseen and _asks_for_links(remedy)))


def _asks_for_links(remedy: str) -> bool:
    """What the first question asks for already, of a machine whose links nobody has seen."""
    return any(f"`{command}`" in remedy for command in (*NVIDIA_LINKS, *AMD_LINKS))


def _request(remedy: str) -> str:
    """A remedy that says what to ask, as words to the one who is asked."""
    asked = remedy.split(";")[0].rstrip(".")
    if asked.startswith("Ask for "):
        return f"Please send {asked.removeprefix('Ask for ')}."
    return f"Please say {asked.removeprefix('Ask ')}."


NVIDIA_LINKS = ("nvidia-smi topo -m", "nvidia-smi topo -p2p r", "nvidia-smi nvlink --status")
AMD_LINKS = ("rocm-smi --showtopo", "amd-smi topology")


def _listed(commands: tuple[str, ...]) -> str:
    *first, last = (f"`{command}`" for command in commands)
    return f"{', '.join(first)} and {last}"


NVIDIA = (
    "nvidia-smi -L",
    "nvidia-smi",
    "nvidia-smi topo -m",
    "nvidia-smi topo -p2p r",
    "nvidia-smi nvlink --status",
    "nvidia-smi -q",
    "df -h /dev/shm",
)
AMD = ("rocm-smi --showtopo", "amd-smi topology", "df -h /dev/shm")


def commands_for(machine: Machine) -> tuple[str, ...]:
    """Commands that read and change nothing, for the vendors that the label may mean."""
    return AMD if is_amd(machine) else NVIDIA


def benchmark_for(machine: Machine) -> str:
    """The benchmark over all GPUs. It loads them for a minute or two and stores nothing."""
    return f"all_reduce_perf -b 8 -e 8G -f 2 -g {machine.gpu_count.value or 'ALL'}"
