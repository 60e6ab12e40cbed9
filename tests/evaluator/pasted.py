"""Machines as pastes show them: terminal output through the readers into a `Machine`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evaluator.evidence import read_evidence, scrub
from evaluator.facts import Fact
from evaluator.findings import Finding
from evaluator.jobs import Workload
from evaluator.machine import Conflict, Machine
from evaluator.sightings import Sighting, sight
from evaluator.verdict import MachineVerdict, PlanVerdict, judge

LEGEND = "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP\n"


def matrix_text(
    rows: Sequence[Sequence[str]],
    numa: Sequence[str] = (),
    nics: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """`nvidia-smi topo -m` of the given cells, `X` on the diagonal; network devices by name."""
    named = dict(nics or {})
    nodes = numa or ("0",) * len(rows)
    gpus = [f"GPU{at}" for at in range(len(rows))]
    head = "\t".join(["", *gpus, *named, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [
        "\t".join([name, *row, *(to[at] for to in named.values()), "0-47", nodes[at], "", "N/A"])
        for at, (name, row) in enumerate(zip(gpus, rows, strict=True))
    ]
    return "\n".join(["$ nvidia-smi topo -m", head, *lines, LEGEND])


def cells(
    islands: Iterable[Sequence[int]], inside: str, near: str, far: str, numa: Sequence[str]
) -> list[list[str]]:
    """Rows in which GPUs of one island are `inside`, of one NUMA node `near`, others `far`."""
    held = [set(island) for island in islands]

    def cell(one: int, to: int) -> str:
        if one == to:
            return "X"
        if any({one, to} <= island for island in held):
            return inside
        return near if numa[one] == numa[to] else far

    gpus = range(len(numa))
    return [[cell(one, to) for to in gpus] for one in gpus]


def alike(gpus: int, word: str) -> list[list[str]]:
    return cells([], "", word, word, ["0"] * gpus)


def peer_text(gpus: int, word: str) -> str:
    """`nvidia-smi topo -p2p r` in which every pair has one state."""
    names = [f"GPU{at}" for at in range(gpus)]
    rows = [
        "\t".join([f" {name}", *("X" if a == b else word for b in range(gpus))])
        for a, name in enumerate(names)
    ]
    return "\n".join(["$ nvidia-smi topo -p2p r", " \t" + "\t".join(names), *rows, ""])


def benchmark_text(gpus: int, points: Iterable[tuple[int, float]], nodes: int = 1) -> str:
    """An all-reduce of nccl-tests: buffer in bytes and bus bandwidth in GB/s."""
    ranks = "".join(
        f"#  Rank {at:2d} Group  0 Pid {900 + at:6d} on node{at * nodes // gpus} device {at:2d} "
        f"[0000:{at + 16:02x}:00] NVIDIA GPU\n"
        for at in range(gpus)
    )
    head = f"# nThread 1 nGpus {gpus} minBytes 8 maxBytes 8589934592 step: 2(factor)\n#\n"
    return (
        f"all_reduce_perf -b 8 -e 8G -f 2 -g {gpus}\n{head}# Using devices\n{ranks}#\n"
        + "".join(_point(gpus, size, bus) for size, bus in points)
    )


def rates_text(rows: Sequence[Sequence[float]], off: float = 8.0, name: str = "L40S") -> str:
    """p2pBandwidthLatencyTest, GB/s one way: with peer access as given, `off` without."""
    gpus = range(len(rows))
    devices = "".join(f"Device: {at}, NVIDIA {name}, pciBusID: {at + 1}\n" for at in gpus)
    access = "".join(
        f"Device={at} CAN Access Peer Device={to}\n" for at in gpus for to in gpus if at != to
    )
    without = [[800.0 if at == to else off for to in gpus] for at in gpus]
    tables = _rate_table("Disabled", without) + _rate_table("Enabled", rows)
    return f"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n{devices}{access}{tables}"


def _rate_table(state: str, rows: Sequence[Sequence[float]]) -> str:
    lines = [f"{at:6d} " + " ".join(f"{rate:6.2f}" for rate in row) for at, row in enumerate(rows)]
    head = f"   D\\D {' '.join(f'{at:6d}' for at in range(len(rows)))}"
    title = f"Unidirectional P2P={state} Bandwidth Matrix (GB/s)"
    return "\n".join([title, head, *lines, ""])


def rates_of_pairs(
    gpus: int, usual: float, odd: Mapping[tuple[int, int], float] | None = None
) -> list[list[float]]:
    """One rate for all pairs but the odd ones."""
    told = dict(odd or {})
    return [
        [
            800.0 if one == to else told.get((min(one, to), max(one, to)), usual)
            for to in range(gpus)
        ]
        for one in range(gpus)
    ]


def _point(gpus: int, size: int, bus: float) -> str:
    algorithm = bus * gpus / (2 * (gpus - 1))
    column = f"{size / algorithm / 1000:.1f} {algorithm:.2f} {bus:.2f} 0"
    return f"  {size}  {size // 4}  float  sum  -1  {column}  {column}\n"


def seen(text: str) -> Sighting:
    return sight(read_evidence(scrub(text).text))


def with_paste(machine: Machine, text: str) -> Machine:
    """The machine with what a paste shows of it. A link that differs is a conflict."""
    facts = {one.name: Fact(one.value, one.grade, caveat=one.caveat) for one in seen(text).facts}
    link, declared = facts.get("link"), machine.link
    conflicts = ()
    if link and declared.known and link.value != declared.value:
        conflicts = (Conflict("link", f"measured {link.value}", f"declared {declared.value}"),)
    return replace(machine, **facts, conflicts=conflicts)  # type: ignore[arg-type]


def findings_of(verdict: MachineVerdict) -> tuple[Finding, ...]:
    """Everything that a verdict says, of the machine, of its plans and of those refused."""
    return (
        *verdict.findings,
        *(found for plan in verdict.plans for found in plan.findings),
        *(refusal.finding for refusal in verdict.refused),
    )


def judged(workload: Workload, machine: Machine, text: str = "") -> MachineVerdict:
    return judge(workload, with_paste(machine, text) if text else machine)


def plan_of(verdict: MachineVerdict, key: str) -> PlanVerdict:
    """The plan of that key, such as `tp8`."""
    return next(plan for plan in verdict.plans if plan.plan.key == key)
