"""Which faults one output shows, and which it would have shown: what was cut away clears none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from evaluator.connections import GPU_FAULTS, Fault, FaultKind, is_fabric
from evaluator.evidence import Format, Reading, Sign
from evaluator.units import MIB

READ_OR_WRITE = ("r", "w", "rw")
REFUSALS = frozenset({"CNS", "GNS", "TNS", "NS", "DR"})


def peer_access(reading: Reading) -> tuple[tuple[bool | None, ...], ...]:
    """Only the read and write tables speak of peer access; NVLink's and atomics' do not."""
    if reading.p2p_matrix and reading.p2p_capability in READ_OR_WRITE:
        return tuple(tuple(_allowed(cell) for cell in row) for row in reading.p2p_matrix)
    if reading.can_access is None or not reading.gpu_count:
        return ()
    gpus = range(reading.gpu_count)
    return tuple(tuple(_told(reading, one, to) for to in gpus) for one in gpus)


def _told(reading: Reading, one: int, other: int) -> bool | None:
    """What lines on peer access say of a pair, in whichever direction."""
    pair = min(one, other), max(one, other)
    if pair in (reading.can_access or ()):
        return True
    return False if pair in (reading.cannot_access or ()) else None


def _allowed(cell: str | None) -> bool | None:
    return True if cell == "OK" else False if cell in REFUSALS else None


def checked_kinds(reading: Reading) -> Iterator[FaultKind]:
    """The kinds of fault that this output would have shown: what was cut away clears none."""
    inside, between = _channels(reading, network=False), _channels(reading, network=True)
    shown = {
        FaultKind.INACTIVE_LINKS: _all_told(reading, _has_links),
        FaultKind.OFF_FABRIC: bool(reading.matrix) and all(map(all, reading.matrix or ())),
        FaultKind.FABRIC_MANAGER: _stated(reading.fabric_state),
        FaultKind.NARROW_SLOT: _all_told(reading, _has_width),
        FaultKind.SLOW_GPU: reading.slow_gpus is not None,
        FaultKind.SLICED: reading.mig_enabled is not None or bool(reading.mig_instances),
        FaultKind.SHM_FAILED: inside or between or _has_room(reading),
        FaultKind.SMALL_SHM: reading.shared_memory_bytes is not None,
        FaultKind.NO_PEER_ACCESS: inside,
        FaultKind.TCP_BETWEEN: between,
        FaultKind.NO_GPUDIRECT: between,
    }
    by_sign = {fault.kind for fault in faults_of(reading)} - {*GPU_FAULTS}
    yield from (kind for kind in FaultKind if shown[kind] or kind in by_sign)


def _channels(reading: Reading, *, network: bool) -> bool:
    """Whether a log opened channels between machines, or inside one."""
    names = (one.name for one in reading.transports or ())
    return any(name.startswith("NET/") is network for name in names)


def _all_told(reading: Reading, told: Callable[[Reading], list[bool]]) -> bool:
    """Whether an output says something of each GPU that it counts."""
    known = told(reading)
    return reading.whole and all(known) and len(known) == reading.gpu_count


def _has_links(reading: Reading) -> list[bool]:
    return [one.active is not None for one in reading.nvlinks or ()]


def _has_width(reading: Reading) -> list[bool]:
    return [bool(one.width_now and one.width_max) for one in reading.pcie or ()]


def _has_room(reading: Reading) -> bool:
    return (reading.shared_memory_bytes or 0) >= ENOUGH_SHARED_MEMORY


def _stated(state: str | None) -> bool:
    """A card without a switch has the state N/A; beside another state, N/A is no status yet."""
    return state is not None and not state.lower().startswith("n/a")


ENOUGH_SHARED_MEMORY = 1 << 30
"""Containers get 64 MiB unless told otherwise; each rank that has no peer access takes some."""
PLAIN_SIGNS = {
    Sign.DEV_SHM_TOO_SMALL: (FaultKind.SHM_FAILED, "NCCL could not map it"),
    Sign.INTER_NODE_OVER_TCP: (FaultKind.TCP_BETWEEN, "NET/Socket in the log"),
    Sign.RDMA_WITHOUT_GPUDIRECT: (FaultKind.NO_GPUDIRECT, "NET/IB without GDRDMA in the log"),
    Sign.P2P_UNUSABLE: (FaultKind.NO_PEER_ACCESS, "the output shows that peer access fails"),
    Sign.MIG_MODE: (FaultKind.SLICED, "MIG mode is on"),
}


def faults_of(reading: Reading) -> Iterator[Fault]:
    for sign, (kind, words) in PLAIN_SIGNS.items():
        if sign is Sign.P2P_UNUSABLE and _told_by_pair(reading):
            continue
        if sign in reading.signs or (kind is FaultKind.SLICED and reading.mig_enabled):
            yield Fault(kind, (), words)
    if reading.shared_memory_bytes is not None and not _has_room(reading):
        size = f"{reading.shared_memory_bytes / MIB:.0f} MiB at /dev/shm"
        yield Fault(FaultKind.SMALL_SHM, (), size)
    if _shared_memory_only(reading) and Sign.P2P_UNUSABLE not in reading.signs:
        yield Fault(FaultKind.NO_PEER_ACCESS, (), "NCCL took SHM instead of P2P")
    if _stated(reading.fabric_state) and not _fabric_up(reading.fabric_state or ""):
        yield Fault(FaultKind.FABRIC_MANAGER, (), f"its state is {reading.fabric_state}")
    yield from _gpu_faults(reading)


TELLING_PAIRS = (Format.TOPO_P2P, Format.AMD_TABLE, Format.AMD_JSON)


def _told_by_pair(reading: Reading) -> bool:
    """Whether some pairs have peer access and others do not: then each is judged by its own."""
    known = {cell for row in peer_access(reading) for cell in row}
    return reading.format in TELLING_PAIRS and True in known


def _shared_memory_only(reading: Reading) -> bool:
    names = [one.name for one in reading.transports or ()]
    inside = {name.split("/")[0] for name in names if not name.startswith("NET")}
    return "SHM" in inside and "P2P" not in inside


def _fabric_up(state: str) -> bool:
    words = state.lower()
    return "complet" in words and "fail" not in words and "err" not in words


def _gpu_faults(reading: Reading) -> Iterator[Fault]:
    for status in reading.nvlinks or ():
        if status.inactive or (status.all_inactive and status.supported is not False):
            count = len(status.inactive or ())
            which = f"{count} link{'s' if count > 1 else ''}" if count else "all links"
            yield Fault(FaultKind.INACTIVE_LINKS, (status.gpu,), f"{which} inactive")
    for slot in reading.pcie or ():
        if slot.width_now and slot.width_max and slot.width_now < slot.width_max:
            words = f"x{slot.width_now} of x{slot.width_max}"
            yield Fault(FaultKind.NARROW_SLOT, (slot.gpu,), words)
    if reading.slow_gpus:
        yield Fault(FaultKind.SLOW_GPU, reading.slow_gpus, "slower than the others in a benchmark")
    if off := _off_fabric(reading):
        fabric = (
            "XGMI" if "XGMI" in {word for row in reading.matrix or () for word in row} else "NVLink"
        )
        words = f"no {fabric}, while all others have one to each other"
        yield Fault(FaultKind.OFF_FABRIC, off, words)


def _off_fabric(reading: Reading) -> tuple[int, ...]:
    """GPUs without one fabric link where all others, three or more, are joined each with each."""
    matrix = reading.matrix or ()
    gpus = range(len(matrix))
    joined = {one for one in gpus if any(is_fabric(matrix[one][to]) for to in gpus if to != one)}
    rest = [one for one in gpus if one not in joined]
    seen = all(matrix[one][to] for one in rest for to in gpus)
    whole = all(is_fabric(matrix[one][to]) for one, to in combinations(sorted(joined), 2))
    return tuple(rest) if len(joined) > 2 and whole and seen else ()
