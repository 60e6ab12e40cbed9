"""Topology files as NCCL dumps them, of invented machines: what is nested can be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Link = tuple[int, int]
"""The bus of a target and how many links lead there."""
SWITCHES = ((0xC1, 4), (0xC2, 4), (0xC3, 5), (0xC4, 5))
HALVES = ("0000ffff", "ffff0000")
"""Masks of two processors of 16 cores each."""


def pci(bus: int, kind: str, inside: str, depth: int) -> str:
    blank = "  " * depth
    told = f'busid="0000:{bus:02x}:00.0" class="{kind}" vendor="0x10de" device="0x2230"'
    return (
        f'{blank}<pci {told} link_speed="16.0 GT/s PCIe" link_width="16">\n{inside}{blank}</pci>\n'
    )


def gpu(bus: int, number: int, depth: int, links: Sequence[Link] = ()) -> str:
    blank = "  " * (depth + 1)
    told = f'{blank}<gpu dev="{number}" sm="80" rank="{number}" gdr="1"'
    lines = "".join(f"{blank}  {nvlink(*one)}\n" for one in links)
    body = f"{told}>\n{lines}{blank}</gpu>\n" if links else f"{told}/>\n"
    return pci(bus, "0x030200", body, depth)


def nvlink(bus: int, count: int) -> str:
    kind = "0x068000" if bus >= 0xC1 else "0x030200"
    return f'<nvlink target="0000:{bus:02x}:00.0" count="{count}" tclass="{kind}"/>'


def nic(bus: int, number: int, depth: int) -> str:
    blank = "  " * (depth + 1)
    net = f'{blank}  <net name="mlx5_{number}" dev="{number}" speed="200000" port="1" gdr="1"/>\n'
    return pci(bus, "0x020700", f"{blank}<nic>\n{net}{blank}</nic>\n", depth)


def switch(bus: int, *inside: str, depth: int = 2) -> str:
    return pci(bus, "0x060400", "".join(inside), depth)


def cpu(number: int, mask: str, *inside: str) -> str:
    told = f'numaid="{number}" affinity="{mask}" arch="x86_64" vendor="GenuineIntel"'
    return f'  <cpu host_hash="0x1" {told}>\n{"".join(inside)}  </cpu>\n'


def system(*cpus: str) -> str:
    return f'<system version="1">\n{"".join(cpus)}</system>\n'


def switched_pairs() -> str:
    """Two processors, each with two switches of two GPUs."""
    halves = [
        cpu(
            number,
            HALVES[number],
            *(
                switch(bus, *(gpu(bus + 2 + at, first + at, 3) for at in range(2)))
                for bus, first in ((start, 4 * number), (start + 0x20, 4 * number + 2))
            ),
        )
        for number, start in enumerate((0x17, 0x97))
    ]
    return system(*halves)


def cascade() -> str:
    """One processor of two shows devices: four GPUs behind two levels of switches."""
    inner = [
        switch(bus, gpu(bus + 2, number, 4), depth=3)
        for number, bus in enumerate((0x1B, 0x1E, 0x21, 0x24))
    ]
    outer = switch(0x18, nic(0x1A, 0, 3), *inner)
    return system(cpu(0, "00ff00ff", outer, switch(0x3B, gpu(0x3D, 4, 3))))


def packed() -> str:
    """Switches whose buses follow each other without a gap."""
    deep = switch(
        7, *(switch(bus, gpu(bus + 2, number, 4), depth=3) for number, bus in ((2, 9), (3, 12)))
    )
    flat = [switch(1, gpu(3, 0, 3)), switch(4, gpu(6, 1, 3)), deep]
    return system(cpu(0, HALVES[0], *flat), cpu(1, HALVES[1], gpu(0x81, 4, 2), gpu(0x82, 5, 2)))


def mesh(pairs: Iterable[tuple[int, int, int]], buses: Sequence[int]) -> str:
    """GPUs of one processor that NVLinks join: two numbers and how many links."""
    links: dict[int, list[Link]] = {number: [] for number in range(len(buses))}
    for one, other, count in pairs:
        links[one].append((buses[other], count))
        links[other].append((buses[one], count))
    return system(cpu(0, "ffff", *(gpu(bus, at, 2, links[at]) for at, bus in enumerate(buses))))


def one_off_the_fabric() -> str:
    """Three GPUs at NVLink switches, and a fourth that is not."""
    near = [
        switch(bus, gpu(bus + 2, number, 3, SWITCHES), nic(bus + 3, number, 3))
        for number, bus in enumerate((0x17, 0x37, 0x57))
    ]
    return system(cpu(0, HALVES[0], *near), cpu(1, HALVES[1], switch(0x97, gpu(0x99, 3, 3))))


def structures() -> list[str]:
    bridged = mesh([(0, 1, 4), (2, 3, 4)], [0x21, 0x41, 0x61, 0x81])
    square = mesh([(0, 1, 2), (0, 2, 1), (1, 3, 1), (2, 3, 2)], [6, 7, 0x0A, 0x0B])
    return [switched_pairs(), cascade(), packed(), bridged, square, one_off_the_fabric()]
