"""`nvidia-smi nvlink --status` and `nvidia-smi -L`: both list GPUs by the same line.

The status counts links per GPU, not peers: it never says who is joined to whom.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluator.evidence.lines import Line, Paste
from evaluator.evidence.readings import (
    Format,
    MigInstance,
    NvlinkStatus,
    Problem,
    Reading,
    Sign,
    Standing,
    Trouble,
)

GPU_LINE = re.compile(
    r"\s{0,40}GPU\s{1,4}(\d{1,4})\s{0,4}:\s{0,4}(\S.{0,120}?)\s{0,4}\(UUID.{0,80}"
)
LINK_LINE = re.compile(r"\s{0,40}Link\s{1,4}(\d{1,3})\s{0,4}:\s{0,8}(\S.{0,60})")
RATE = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)\s{0,4}GB/s")
MIG_LINE = re.compile(r"\s{0,40}MIG\s{1,4}(\S{1,40})\s{1,20}Device\s{1,8}\d{1,3}\s{0,4}:.{0,120}")


@dataclass(slots=True)
class Device:
    """One GPU of the list and what stands under it. `elided` where somebody left links out."""

    line: Line
    gpu: int
    name: str
    rates: list[float] = field(default_factory=list)
    inactive: list[int] = field(default_factory=list)
    cut: bool = False
    elided: bool = False
    sentence: str = ""
    profiles: list[str] = field(default_factory=list)

    @property
    def of_status(self) -> bool:
        """Whether links were asked for; a plain list has no such lines."""
        return bool(self.rates or self.inactive or self.sentence or self.cut)


LEFT_OUT = re.compile(r"\s{0,40}[\[(]?(?:\.\.\.|…)[\])]?\s{0,40}")
NO_NVLINK = "does not have or support nvlink"
ALL_INACTIVE = "all links are inactive"
IN_MIG_MODE = "not supported for devices in mig mode"
SENTENCES = (NO_NVLINK, ALL_INACTIVE, IN_MIG_MODE)


def read_gpu_lists(paste: Paste) -> Iterator[Reading]:
    """The status listing, or the plain list; a list that starts again at GPU 0 is a new one."""
    for devices in _lists(paste):
        if any(device.of_status for device in devices):
            yield _status(devices, paste)
        else:
            yield _plain(devices)


def _lists(paste: Paste) -> Iterator[list[Device]]:
    devices: list[Device] = []
    for line in paste.lines:
        match = GPU_LINE.fullmatch(line.text)
        if match:
            device = Device(line, int(match[1]), match[2])
            if devices and device.gpu <= devices[-1].gpu:
                yield devices
                devices = []
            devices.append(device)
        elif devices:
            _take(devices[-1], line, paste)
    if devices:
        yield devices


def _take(device: Device, line: Line, paste: Paste) -> None:
    link, mig = LINK_LINE.fullmatch(line.text), MIG_LINE.fullmatch(line.text)
    if link:
        _take_link(device, int(link[1]), link[2], paste.cut_at(line))
    elif mig:
        device.profiles.append(mig[1])
    elif device.of_status and LEFT_OUT.fullmatch(line.text):
        device.elided = True
    else:
        words = " ".join(line.text.lower().split())
        device.sentence = next((one for one in SENTENCES if one in words), device.sentence)


def _take_link(device: Device, number: int, text: str, at_end: bool) -> None:
    rate = RATE.match(text)
    if rate:
        device.rates.append(float(rate[1]))
    elif "inactive" in text.lower():
        device.inactive.append(number)
    elif at_end:
        device.cut = True


def _status(devices: list[Device], paste: Paste) -> Reading:
    links = tuple(_links(device) for device in devices)
    problems = tuple(_problems(devices))
    return Reading(
        format=Format.NVLINK_STATUS,
        line=devices[0].line.number,
        standing=Standing.PARTIAL if problems else Standing.OK,
        problems=problems,
        signs=frozenset(_signs(devices, links)),
        gpu_count=len(devices),
        gpu_names=tuple(device.name for device in devices),
        nvlinks=links,
        nvlink_supported=_supported(links),
    )


def _links(device: Device) -> NvlinkStatus:
    silent = device.sentence == IN_MIG_MODE or not device.of_status or device.elided
    rate = device.rates[0] if device.rates else None
    return NvlinkStatus(
        gpu=device.gpu,
        name=device.name,
        active=None if silent else len(device.rates),
        inactive=None if silent else tuple(device.inactive),
        all_inactive=device.sentence == ALL_INACTIVE or _none_active(device),
        supported=None if silent else device.sentence != NO_NVLINK,
        gb_s=rate,
    )


def _none_active(device: Device) -> bool:
    return bool(device.inactive) and not device.rates


def _supported(links: tuple[NvlinkStatus, ...]) -> bool | None:
    known = [link.supported for link in links if link.supported is not None]
    return any(known) if known else None


def _problems(devices: list[Device]) -> Iterator[Problem]:
    for device in devices:
        if device.sentence == IN_MIG_MODE:
            expected = "a GPU outside MIG mode: its links are not told"
            yield Problem(Trouble.MIG_MODE, device.line.number, expected=expected)
        elif device.cut or device.elided or not device.of_status:
            expected = f"the links of GPU {device.gpu}"
            yield Problem(Trouble.TRUNCATED, device.line.number, expected=expected)


def _signs(devices: list[Device], links: tuple[NvlinkStatus, ...]) -> Iterator[Sign]:
    if any(device.sentence == IN_MIG_MODE for device in devices):
        yield Sign.MIG_MODE
    if any(device.cut or device.elided or not device.of_status for device in devices):
        yield Sign.INCOMPLETE
    if any(link.inactive or link.all_inactive for link in links):
        yield Sign.INACTIVE_LINKS
    off = [link for link in links if link.active == 0]
    if len(off) == 1 and len(links) > 2:
        yield Sign.GPU_OFF_NVLINK
    if len({device.name for device in devices}) > 1:
        yield Sign.MIXED_MODELS


def _plain(devices: list[Device]) -> Reading:
    instances = tuple(
        MigInstance(device.gpu, profile=profile)
        for device in devices
        for profile in device.profiles
    )
    signs = {Sign.MIG_MODE} if instances else set()
    if len({device.name for device in devices}) > 1:
        signs.add(Sign.MIXED_MODELS)
    return Reading(
        format=Format.SMI_LIST,
        line=devices[0].line.number,
        signs=frozenset(signs),
        gpu_count=len(devices),
        gpu_names=tuple(device.name for device in devices),
        mig_enabled=True if instances else None,
        mig_instances=instances,
    )
