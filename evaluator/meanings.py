"""What a warning code says, and the texts of those that evidence of a machine gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from evaluator.facts import Grade


class Severity(IntEnum):
    INFO = 1
    WARNING = 2
    BLOCKER = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Meaning:
    severity: Severity
    sentence: str
    remedy: str
    cleared_by: Grade | None = None
    clears: str = ""

    @property
    def clearing(self) -> str:
        """What makes the finding go, as a sentence; empty where the remedy says so itself."""
        if self.clears or CLEARS.search(self.remedy):
            return self.clears
        return CLEARED_BY_GRADE[self.cleared_by] if self.cleared_by else ""


CLEARS = re.compile(r"\bclears? it\b|\{rate\}")
"""A remedy that says itself which result clears the finding; a rate is one."""
CLEARED_BY_GRADE = {
    Grade.DECLARED: "A catalog that states it clears it.",
    Grade.MEASURED: "Such output of the machine, pasted under its listing, clears it.",
    Grade.BENCHMARKED: "Such a result of the machine, pasted under its listing, clears it.",
}


info = partial(Meaning, Severity.INFO)
warning = partial(Meaning, Severity.WARNING)
blocker = partial(Meaning, Severity.BLOCKER)

ASK_TOPOLOGY = (
    "Ask for `nvidia-smi topo -m` and `nvidia-smi topo -p2p r` (AMD: `rocm-smi --showtopo`) from "
    "this very machine."
)
ASK_MEMORY = "Ask for `nvidia-smi --query-gpu=name,memory.total --format=csv`."


EVIDENCE_MEANINGS: Mapping[str, Meaning] = {
    "group_leaves_island": blocker(
        "{plan} over {group} {islands}: {pair} meet over {link} only.",
        "Keep each tensor group on one island, or show with `{command}` that the group reaches "
        "{rate}.",
        Grade.BENCHMARKED,
    ),
    "no_peer_access": blocker(
        "{plan} over {group}: {pair} meet over {link} and cannot reach each other's memory "
        "({words}), so every byte goes through the host.",
        "Use replicas or a pipeline, or have ACS and the IOMMU turned off and show "
        "{peers} and {rate} in `{command}`.",
        Grade.BENCHMARKED,
    ),
    "link_crosses_sockets": blocker(
        "{plan} over {group} crosses the processors' own link: {pair} lie at NUMA nodes {nodes}.",
        "Put a stage or replica boundary there, or show with `{command}` that the group reaches "
        "{rate}.",
        Grade.BENCHMARKED,
    ),
    "topology_flattened": warning(
        "Every pair shows {link} and one NUMA node: a virtual machine may hide the bridges, so "
        "the matrix does not settle {plan}.",
        "Ask for the matrix of the host, or for `{command}` with {rate}.",
        Grade.BENCHMARKED,
    ),
    "topology_partial": warning(
        "The output does not show {pairs} of the group that {plan} needs.",
        "Paste the whole of `{command}`; all its pairs have to be there.",
        Grade.MEASURED,
    ),
    "gpu_link_faulty": blocker(
        "{plan} cannot leave out {gpus}, whose links are not as they should be: {words}.",
        "Have the machine repaired or replaced; `{command}` with every link there clears it.",
        Grade.MEASURED,
    ),
    "narrow_slot": blocker(
        "{plan} cannot leave out {gpus}, whose slot is slower than the others: {words}.",
        "Have the card moved; `nvidia-smi -q` with its link width at the maximum under load "
        "clears it.",
        Grade.MEASURED,
    ),
    "gpu_slow": blocker(
        "{plan} cannot leave out {gpus}, whose rates to all others are far below usual: {words}.",
        "Have slot and riser of the card checked, or the machine replaced; "
        "`p2pBandwidthLatencyTest` in which it is as fast as the others clears it.",
        Grade.BENCHMARKED,
    ),
    "pair_slow": blocker(
        "{plan} cannot leave out a pair that is far slower than its link should be: {words}.",
        "Have slot, riser and bridge of both cards checked; `{command}` in which every pair "
        "reaches {rate} clears it.",
        Grade.BENCHMARKED,
    ),
    "fabric_manager_down": blocker(
        "The NVSwitch fabric is not up: {words}. No group of GPUs starts before it is.",
        "Have the fabric manager started; `nvidia-smi -q` with the fabric state Completed and "
        "Success clears it.",
        Grade.MEASURED,
    ),
    "sliced_gpu": blocker(
        "{plan} needs whole GPUs: {words}, and slices cannot reach each other.",
        "Run independent replicas, or have MIG mode turned off; `nvidia-smi -L` without slices "
        "clears it.",
        Grade.MEASURED,
    ),
    "shm_small": warning(
        "The shared memory of the container is small ({words}); ranks that lose peer access have "
        "no room to meet in.",
        "Start the container with `--shm-size=8g` or `--ipc=host`; `df -h /dev/shm` with 1 GiB "
        "or more clears it.",
        Grade.MEASURED,
    ),
    "shm_failed": blocker(
        "{plan} cannot start as the container is: NCCL's ranks meet in shared memory, and there is "
        "no room for it ({words}).",
        "Start the container with `--shm-size=8g` or `--ipc=host`; `df -h /dev/shm` with 1 GiB or "
        "more, or a NCCL log without the error, clears it.",
        Grade.MEASURED,
    ),
    "link_suspected": warning(
        "A benchmark carries {plan} ({rate}) although something speaks against it: {words}.",
        "Keep both in mind and run `{command}` again under load; an output without the doubt "
        "clears it.",
        Grade.MEASURED,
    ),
    "fabric_over_tcp": blocker(
        "{plan} spans {nodes} machines, and NCCL was seen to use plain TCP between them ({words}).",
        "Ask for RDMA devices in the container; a NCCL log with NET/IB and GDRDMA, or a two-node "
        "`all_reduce_perf -b 1G -e 8G -f 2`, clears it.",
        Grade.BENCHMARKED,
    ),
    "fabric_staged": warning(
        "{plan} spans {nodes} machines over RDMA without GPUDirect: every byte is staged in host "
        "memory ({words}).",
        "Ask for nvidia-peermem; a NCCL log with GDRDMA, or a two-node "
        "`all_reduce_perf -b 1G -e 8G -f 2`, clears it.",
        Grade.BENCHMARKED,
    ),
    "own_evidence": info(
        "Judged with your own evidence of {machine}, which no curator has accepted: everyone else "
        "sees what the catalog declares.",
        "A curator's review clears it.",
        Grade.MEASURED,
    ),
    "evidence_mismatch": warning(
        "A paste does not match this listing and raises nothing: {words}.",
        "Run the commands on the whole machine of this listing and paste all of their output.",
        Grade.MEASURED,
    ),
    "measured_elsewhere": info(
        "Measured on {measured} of {seen} machines seen: {words}. The next one may differ.",
        "Run `nvidia-smi topo -m` on the machine that you get.",
        Grade.MEASURED,
    ),
}
"""By the value of the code, which `evaluator.findings.Code` lists with all others."""
