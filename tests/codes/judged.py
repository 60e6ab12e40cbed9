"""How each finding about a plan on a machine comes to be: outputs and offers through the judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from evaluator.configs import read_model
from evaluator.facts import UNKNOWN, declared
from evaluator.findings import Code
from evaluator.fleet import Fleet
from evaluator.jobs import Workload
from evaluator.machine import Availability, LinkClass, Machine
from evaluator.prices import Basis, Quote, TimeUnit
from evaluator.shortlist import Offering, shortlist
from evaluator.units import GB
from evaluator.workload import parse_workload
from tests.codes.pages import Made, Maker
from tests.evaluator.machines import SERVE_8B, machine, preset, serve, train, with_shape
from tests.evaluator.pasted import (
    alike,
    benchmark_text,
    cells,
    findings_of,
    judged,
    matrix_text,
    peer_text,
    rates_of_pairs,
    rates_text,
)

SERVE_70B = "llama-3.1-70b"
SOCKETS = ["0"] * 4 + ["1"] * 4
PAIRS = matrix_text(cells([(0, 1), (2, 3), (4, 5), (6, 7)], "NV12", "NODE", "SYS", ["0"] * 8))
TWO_SOCKETS = matrix_text(cells([], "", "NODE", "SYS", ["0", "1"]), ["0", "1"])
SWITCHED = matrix_text(alike(8, "NV18"))
GPU_LINES = "GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"
ACTIVE, DEAD = "\t Link 0: 26.562 GB/s\n", "\t Link 0: <inactive>\n"
ONE_DEAD_EACH = "$ nvidia-smi nvlink --status\n" + "".join(
    GPU_LINES.format(gpu=gpu) + ACTIVE + DEAD.replace("0:", "1:") for gpu in range(8)
)
NARROW = "".join(
    f"GPU 00000000:{gpu + 1:02x}:00.0\n    Product Name                 : NVIDIA L40S\n"
    "        GPU Link Info\n            PCIe Generation\n"
    "                Max                       : 4\n                Current                   : 4\n"
    "            Link Width\n                Max                       : 16x\n"
    f"                Current                   : {'4x' if gpu == 3 else '16x'}\n"
    for gpu in range(4)
)
NARROW_SLOT = (
    "==============NVSMI LOG==============\n\nAttached GPUs                             : 4\n"
    + NARROW
)
FABRIC_DOWN = (
    "==============NVSMI LOG==============\n\nAttached GPUs                             : 1\n"
    "GPU 00000000:1B:00.0\n    Product Name                  : NVIDIA H100 80GB HBM3\n"
    "    Fabric\n        State                     : In Progress\n"
    "        Status                    : N/A\n"
)
SLICES = GPU_LINES.format(gpu=0) + "  MIG 3g.40gb     Device  0: (UUID: MIG-0)\n"
LOG = "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {}\n"
NO_SHM = (
    "n1:1:2 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x (size 9637)\n"
    "n1:1:2 [0] NCCL WARN Call to posix_fallocate failed : No space left on device\n"
)
DOCKER_SHM = "Filesystem  Size  Used Avail Use% Mounted on\nshm  64M  0  64M  0% /dev/shm\n"
TWO_HOSTS = LOG.replace("n1", "n2")


def of_plans(workload: Workload, of: Machine, text: str = "") -> Maker:
    return lambda: findings_of(judged(workload, of, text))


def of_offer(amount: str | None, availability: Availability = Availability.AVAILABLE) -> Maker:
    """What a shortlist says of one offer of one GPU."""
    now = datetime(2026, 12, 1, 9, tzinfo=UTC)
    quotes = (Quote(Decimal(amount), "USD", TimeUnit.HOUR, Basis.MACHINE),) if amount else ()
    offer = Offering(
        "one", "h100", provider="Ridge", title="H100", quotes=quotes,
        availability=availability, seen_at=now,
    )  # fmt: skip
    of = {"h100": machine("H100", 1, gb=80)}

    def made() -> Made:
        found = shortlist(preset(SERVE_8B), Fleet.of([offer], of), now=now)
        shown = (*found.rows, *found.unranked, *found.near_misses)
        return tuple(one for row in shown for one in row.findings)

    return made


def _without_attention() -> Made:
    document = {"task": "finetune", "lora": {"rank": 8}, "model": {"preset": "mamba-2.8b"}}
    return parse_workload(document).findings


def _config(**keys: Any) -> Maker:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
    }  # fmt: skip
    return lambda: tuple(read_model(config | keys)[1])


def _tight() -> Made:
    """On a card whose memory lies between what a training typically and at most needs."""
    single = judged(train(), machine(count=1, gb=80)).single
    assert single
    assert single.fit.needed
    between = round((single.fit.needed.typical + single.fit.needed.high) / 2)
    return findings_of(judged(train(), machine(count=1, usable_bytes_per_gpu=declared(between))))


WIDE = serve(SERVE_70B)
FOUR = partial(machine, count=4)
GPU_3_SLOW = {(0, 3): 3.0, (1, 3): 3.0, (2, 3): 3.0}
SPREAD = train(SERVE_70B)

JUDGED: Mapping[Code, Maker] = {
    Code.SNAPSHOT_NOT_RESERVATION: of_offer("2.00"),
    Code.NOT_RANKED: of_offer(None),
    Code.NOT_AVAILABLE: of_offer("2.00", Availability.WAITLIST),
    Code.TOPOLOGY_NOT_VERIFIED: of_plans(WIDE, machine(gb=80)),
    Code.LINK_UNKNOWN: of_plans(WIDE, machine(gb=80)),
    Code.LINK_CLAIMED: of_plans(WIDE, machine(gb=80, link=LinkClass.NVSWITCH)),
    Code.LINK_UNBENCHMARKED: of_plans(WIDE, FOUR("L40S"), matrix_text(alike(4, "NODE"))),
    Code.LINK_INSUFFICIENT: of_plans(
        WIDE, FOUR("L40S"), matrix_text(alike(4, "NODE")) + benchmark_text(4, [(8 << 30, 4.2)])
    ),
    Code.LINK_CONTRADICTED: of_plans(
        WIDE,
        machine(gb=80, link=LinkClass.NVSWITCH),
        SWITCHED + benchmark_text(8, [(8 << 30, 11.0)]),
    ),
    Code.GROUP_LEAVES_ISLAND: of_plans(WIDE, machine(gb=80), PAIRS),
    Code.NO_PEER_ACCESS: of_plans(
        WIDE, FOUR("RTX 4090"), matrix_text(alike(4, "PIX")) + peer_text(4, "CNS")
    ),
    Code.LINK_CROSSES_SOCKETS: of_plans(WIDE, machine("L40S", 2), TWO_SOCKETS),
    Code.TOPOLOGY_FLATTENED: of_plans(WIDE, machine(gb=80), matrix_text(alike(8, "PHB"))),
    Code.TOPOLOGY_PARTIAL: of_plans(WIDE, machine(gb=80), "\n".join(SWITCHED.split("\n")[:4])),
    Code.GPU_LINK_FAULTY: of_plans(WIDE, machine(gb=80), SWITCHED + ONE_DEAD_EACH),
    Code.NARROW_SLOT: of_plans(WIDE, FOUR("L40S"), matrix_text(alike(4, "NODE")) + NARROW_SLOT),
    Code.GPU_SLOW: of_plans(
        WIDE,
        FOUR("L40S"),
        matrix_text(alike(4, "PIX")) + rates_text(rates_of_pairs(4, 24.0, GPU_3_SLOW)),
    ),
    Code.PAIR_SLOW: of_plans(
        WIDE,
        FOUR("L40S"),
        matrix_text(alike(4, "PIX")) + rates_text(rates_of_pairs(4, 24.0, {(1, 2): 3.0})),
    ),
    Code.FABRIC_MANAGER_DOWN: of_plans(WIDE, machine(gb=80), FABRIC_DOWN),
    Code.SLICED_GPU: of_plans(WIDE, machine(gb=80), SLICES),
    Code.SHM_SMALL: of_plans(WIDE, FOUR("L40S"), matrix_text(alike(4, "NODE")) + DOCKER_SHM),
    Code.SHM_FAILED: of_plans(WIDE, FOUR("L40S"), matrix_text(alike(4, "NODE")) + NO_SHM),
    Code.LINK_SUSPECTED: of_plans(
        WIDE,
        machine("RTX A6000", 2),
        matrix_text(alike(2, "NV3")) + benchmark_text(2, [(1 << 18, 8.0), (8 << 30, 51.0)]),
    ),
    Code.FABRIC_OVER_TCP: of_plans(
        SPREAD,
        machine(gb=80),
        LOG.format("NET/Socket/0") + TWO_HOSTS.format("NET/Socket/0"),
    ),
    Code.FABRIC_STAGED: of_plans(
        SPREAD, machine(gb=80), LOG.format("NET/IB/0") + TWO_HOSTS.format("NET/IB/0")
    ),
    Code.FABRIC_UNKNOWN: of_plans(SPREAD, machine(gb=80)),
    Code.FABRIC_CLAIMED: of_plans(
        SPREAD, machine(gb=80, inter_node=declared("8 x 400 Gb/s InfiniBand"))
    ),
    Code.DOES_NOT_FIT: of_plans(WIDE, machine("L4", 1)),
    Code.TIGHT_FIT: _tight,
    Code.MEMORY_UNKNOWN: of_plans(WIDE, machine(usable_bytes_per_gpu=UNKNOWN)),
    Code.ACTIVATIONS_WIDE: of_plans(train(), machine(gb=80)),
    Code.GPU_AMBIGUOUS: of_plans(WIDE, machine("A100")),
    Code.IDLE_GPUS: of_plans(preset(SERVE_8B), machine(gb=80)),
    Code.PLAN_INDIVISIBLE: of_plans(WIDE, machine(count=6, gb=80)),
    Code.PLAN_UNSUPPORTED: of_plans(serve(SERVE_70B, engine="transformers"), machine(gb=80)),
    Code.HOST_RAM_SMALL: of_plans(WIDE, machine(gb=80, ram_bytes=declared(64 * GB))),
    Code.HOST_UNKNOWN: of_plans(preset(SERVE_8B), machine(gb=80)),
    Code.MODEL_KEYS_IGNORED: _config(mystery_gate=3),
    Code.NO_ADAPTERS: _without_attention,
    Code.ARCHITECTURE_UNKNOWN: of_plans(
        with_shape(WIDE, computable=False, given_params=None), machine(gb=80)
    ),
}
