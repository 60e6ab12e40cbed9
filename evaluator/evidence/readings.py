"""What a reader of terminal output gives back: only what the text proves, the rest unknown.

Word lists follow the tools' own output. None always means unknown, never "no".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

Matrix = tuple[tuple[str | None, ...], ...]
"""One row per GPU; `X` on the diagonal; None where a pair is unknown."""


class Format(StrEnum):
    """Which output a text is."""

    TOPO_MATRIX = "nvidia-smi-topo-m"
    TOPO_P2P = "nvidia-smi-topo-p2p"
    NVLINK_STATUS = "nvidia-smi-nvlink-status"
    SMI_TABLE = "nvidia-smi-table"
    SMI_QUERY = "nvidia-smi-q"
    SMI_CSV = "nvidia-smi-query-gpu-csv"
    SMI_LIST = "nvidia-smi-L"
    ROCM_TOPOLOGY = "rocm-smi-showtopo"
    AMD_TABLE = "amd-smi-topology-table"
    AMD_JSON = "amd-smi-topology-json"
    NCCL_XML = "nccl-topo-xml"
    HWLOC_XML = "hwloc-xml"
    NCCL_LOG = "nccl-debug-log"
    P2P_BANDWIDTH = "p2pBandwidthLatencyTest"
    SIMPLE_P2P = "simpleP2P"
    NVBANDWIDTH = "nvbandwidth"
    NCCL_TESTS = "nccl-tests"
    LSTOPO = "lstopo"
    COLLECT_ENV = "collect-env"
    SHARED_MEMORY = "df-dev-shm"
    XPU_TOPOLOGY = "xpu-smi-topology"
    UNKNOWN = "unknown"


class Standing(StrEnum):
    """Whether all of a text stands. A text of which nothing stands raises UnreadableEvidence."""

    OK = "ok"
    PARTIAL = "partial"


class Sign(StrEnum):
    """What a text shows besides its figures. The value is the code that case files use."""

    INCOMPLETE = "incomplete"
    HEADER_MISSING = "header_missing"
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105
    ERROR_LINE = "error_line"
    STATIC_DESCRIPTION = "static_description"
    MIG_MODE = "mig_mode"
    P2P_UNUSABLE = "p2p_unusable"
    INACTIVE_LINKS = "inactive_links"
    GPU_OFF_NVLINK = "gpu_off_nvlink"
    PCIE_IDLE_DOWNTRAINED = "pcie_idle_downtrained"
    PCIE_LINK_NARROW = "pcie_link_narrow"
    SLOW_GPU = "slow_gpu"
    MIXED_MODELS = "mixed_models"
    INTER_NODE_OVER_TCP = "inter_node_over_tcp"
    RDMA_WITHOUT_GPUDIRECT = "rdma_without_gpudirect"
    NVLS_UNAVAILABLE = "nvls_unavailable"
    DEV_SHM_TOO_SMALL = "dev_shm_too_small"
    BANDWIDTH_COLLAPSE = "bandwidth_collapse"


class Trouble(StrEnum):
    """Why a text, or a part of it, may not be believed."""

    TRUNCATED = "truncated"
    HEADER_MISSING = "header_missing"
    UNKNOWN_CLASS = "unknown_class"
    UNKNOWN_COLUMN = "unknown_column"
    MIG_MODE = "mig_mode"
    COMMAND_FAILED = "command_failed"
    DRIVER_UNREACHABLE = "driver_unreachable"
    NO_DEVICES = "no_devices"
    NOT_COLLECTED = "not_collected"
    NO_GPU_ROWS = "no_gpu_rows"
    NO_GPU_NODES = "no_gpu_nodes"
    NO_LINK_SECTION = "no_link_section"
    NVLINK_TARGET_IS_SELF = "nvlink_target_is_self"
    INVALID_JSON = "invalid_json"
    INVALID_XML = "invalid_xml"
    UNSUPPORTED_FORMAT = "unsupported_format"
    SINGLE_RANK = "single_rank"
    DATA_CORRUPTION = "data_corruption"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Problem:
    """One line that could not be believed. Lines count from 1; 0 speaks of the whole text."""

    trouble: Trouble
    line: int = 0
    read: str = ""
    expected: str = ""

    @property
    def sentence(self) -> str:
        place = f"Line {self.line}: " if self.line else ""
        read = f", read {self.read!r}" if self.read else ""
        expected = f", expected {self.expected}" if self.expected else ""
        return f"{place}{self.trouble.value.replace('_', ' ')}{read}{expected}."


class UnreadableEvidence(ValueError):
    """Nothing in the text may be believed. `problems` holds at least one problem."""

    def __init__(self, problems: Sequence[Problem], format: Format = Format.UNKNOWN) -> None:
        self.problems = tuple(problems)
        self.format = format
        super().__init__(" ".join(problem.sentence for problem in self.problems))

    @property
    def trouble(self) -> Trouble:
        """The first problem's code."""
        return self.problems[0].trouble


@dataclass(frozen=True, slots=True)
class Span:
    """Smallest and largest of several figures, in the unit that the field names."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Nic:
    """A network device: its column name, the device behind it (None: not printed), and its class
    to each GPU in GPU order.
    """

    label: str
    device: str | None = None
    to_gpus: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Nearest:
    """The network devices of the best class to one GPU, by label and in the order of columns."""

    link_class: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NvlinkStatus:
    """The NVLinks of one GPU, to whomever they lead. `gb_s` is per link and direction.

    `active` and `inactive` are None where the tool would not say, as in MIG mode.
    """

    gpu: int
    name: str | None
    active: int | None
    inactive: tuple[int, ...] | None = ()
    all_inactive: bool = False
    supported: bool | None = None
    gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The slot of one GPU; None where the driver prints N/A. `link_gb_s` is lstopo's figure."""

    gpu: int = 0
    generation_max: int | None = None
    generation_now: int | None = None
    host_generation_max: int | None = None
    width_max: int | None = None
    width_now: int | None = None
    link_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A slice of a GPU: its profile from `-L`, or GPU instance and MiB from the table."""

    gpu: int
    profile: str | None = None
    instance: int | None = None
    mib: int | None = None


@dataclass(frozen=True, slots=True)
class Transport:
    """How often a NCCL log opened a channel by this road, such as `P2P` or `NET/IB/GDRDMA`."""

    name: str
    channels: int


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One row of nccl-tests: bytes, microseconds, GB/s (10^9). None where it was not printed.

    `busbw` is the bus bandwidth out of place, `busbw_in_place` in place; `wrong` counts results
    that failed the check of either column.
    """

    operation: str
    size_bytes: int
    time_us: float | None
    algbw_gb_s: float
    busbw_gb_s: float
    algbw_in_place_gb_s: float | None = None
    busbw_in_place_gb_s: float | None = None
    wrong: int | None = None

    @property
    def best_busbw_gb_s(self) -> float:
        return max(self.busbw_gb_s, self.busbw_in_place_gb_s or 0.0)


@dataclass(frozen=True, slots=True)
class BandwidthMatrix:
    """A pairwise bandwidth table in GB/s. `p2p` says whether peer access was enabled.

    `both_ways` is True for a bidirectional test; None in a cell is unknown.
    """

    title: str
    both_ways: bool | None
    p2p: bool | None
    rows: tuple[tuple[float | None, ...], ...]

    @property
    def span(self) -> Span | None:
        """Over the cells off the diagonal, which holds the device's own memory."""
        cells = [
            cell
            for at, row in enumerate(self.rows)
            for to, cell in enumerate(row)
            if at != to and cell is not None
        ]
        return Span(min(cells), max(cells)) if cells else None


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts of one output. Tuples per GPU follow the GPU order of the text.

    `line` is where the output begins in the paste. `matrix` holds link classes in the driver's
    words (`NV18`, `XGMI`, `PIX`, `PHB`, `SYS`, ...), None when the text holds no matrix.
    `sure` is the same without what lost lines could have changed unseen; None where they cannot.
    """

    format: Format
    line: int = 1
    standing: Standing = Standing.OK
    problems: tuple[Problem, ...] = ()
    signs: frozenset[Sign] = frozenset()

    gpu_count: int | None = None
    gpu_names: tuple[str, ...] | None = None
    vram_mib: tuple[int, ...] | None = None
    driver: str | None = None
    cuda: str | None = None
    mig_enabled: bool | None = None
    mig_instances: tuple[MigInstance, ...] = ()
    power_limit_w: tuple[float, ...] | None = None
    virtual: bool | None = None
    ecc: tuple[bool | None, ...] | None = None
    fabric_state: str | None = None

    matrix: Matrix | None = None
    nics: tuple[Nic, ...] | None = None
    nearest_nic: tuple[Nearest | None, ...] | None = None
    cpu_affinity: tuple[str | None, ...] | None = None
    numa_affinity: tuple[str | None, ...] | None = None
    gpu_numa_id: tuple[str | None, ...] | None = None
    numa_node: tuple[int | None, ...] | None = None

    p2p_matrix: Matrix | None = None
    p2p_capability: str | None = None
    can_access: frozenset[tuple[int, int]] | None = None
    cannot_access: frozenset[tuple[int, int]] | None = None
    nvlinks: tuple[NvlinkStatus, ...] | None = None
    nvlink_supported: bool | None = None
    pcie: tuple[PcieLink, ...] | None = None

    transports: tuple[Transport, ...] | None = None
    nodes: int | None = None
    nccl_version: str | None = None
    rows: tuple[BenchmarkRow, ...] | None = None
    ranks: int | None = None
    bandwidth: tuple[BandwidthMatrix, ...] = ()
    host_to_device_gb_s: float | None = None
    device_to_host_gb_s: float | None = None
    slow_gpus: tuple[int, ...] | None = None
    shared_memory_bytes: int | None = None
    sure: Reading | None = None

    @property
    def whole(self) -> bool:
        return self.standing is Standing.OK

    @property
    def believed(self) -> Reading:
        """What may count for a machine."""
        return self.sure or self

    @property
    def measured(self) -> bool:
        """False for a description of a machine type: it declares, it does not measure."""
        return Sign.STATIC_DESCRIPTION not in self.signs

    @property
    def top_row(self) -> BenchmarkRow | None:
        """The row with the largest bus bandwidth over both columns."""
        return max(self.rows or (), key=lambda row: row.best_busbw_gb_s, default=None)


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """`text` is safe to store. `removed` counts what was taken out, by kind (`ip`, `uuid`, ...)."""

    text: str
    removed: tuple[tuple[str, int], ...] = ()


def troubles(problems: Iterable[Problem]) -> frozenset[Trouble]:
    return frozenset(problem.trouble for problem in problems)
