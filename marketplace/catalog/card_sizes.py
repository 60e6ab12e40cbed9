"""Published memory sizes of a card, and how near a figure must come to be one of them."""

from __future__ import annotations

from evaluator.gpus import GpuSpec, relatives_of, specs_of
from evaluator.units import GB, GIB, MIB

SAME_SIZE = 0.02
"""A machine-made figure this close to a published or driver-reported size counts as that size."""

COHERENT_HOST_GB = {"GH200": (480, 240, 120)}
"""LPDDR that is added to the GPU's own memory in marketing totals. It is host memory."""


def nearest_card(
    model: str, each_bytes: int, marketing: bool, tolerance: float
) -> tuple[int, GpuSpec | None]:
    """The bytes that are video memory, and the card whose size is nearest to them.

    Cards of the model and of its relatives compete. None when no size is within the tolerance.
    """
    cards = [spec for name in (model, *relatives_of(model)) for spec in specs_of(name)]
    for count in (each_bytes, *(each_bytes - lpddr for lpddr in host_bytes(model))):
        distance, place = min(
            (distance_to(spec, count, marketing), place) for place, spec in enumerate(cards)
        )
        if distance <= (tolerance if count == each_bytes else SAME_SIZE):
            return count, cards[place]
    return each_bytes, None


def distance_to(spec: GpuSpec, byte_count: int, marketing: bool = False) -> float:
    """Relative distance to the nearest published figure of the card."""
    return min(abs(byte_count - size) / size for size in sizes_of(spec, marketing))


def sizes_of(spec: GpuSpec, marketing: bool = False) -> list[int]:
    """Label as GB and GiB and the driver's figure, which print may give as GiB called GB."""
    mib = spec.driver_reported_mib
    reported = [mib * MIB, *([mib * GB // 1024] if marketing else [])] if mib else []
    return [spec.label_gb * GB, spec.label_gb * GIB, *reported]


def is_published(spec: GpuSpec, each_bytes: int, marketing: bool, rounding: int) -> bool:
    """A printed label has to name the number; a machine-made figure only has to be near."""
    if not marketing:
        return distance_to(spec, each_bytes) <= SAME_SIZE
    return abs(each_bytes - spec.label_gb * GB) <= rounding + GB // 100


def doubled_size(model: str, each_bytes: int) -> int | None:
    """Workshops double GDDR memory (RTX 4090 with 48 GB); stacked HBM cannot be changed."""
    return next(
        (
            2 * spec.label_gb * GB
            for spec in specs_of(model)
            if spec.memory_type.startswith("GDDR")
            for size in sizes_of(spec)
            if abs(each_bytes - 2 * size) <= 2 * size * SAME_SIZE
        ),
        None,
    )


def host_bytes(model: str | None) -> list[int]:
    """Sizes of host memory that may be counted into a total of this model."""
    return [size * GB for size in COHERENT_HOST_GB.get(model or "", ())]


def label_bytes(byte_count: int) -> int:
    """Binary counts near a whole GiB get its number as GB, as labels do: 49140 MiB is "48 GB"."""
    nearest = round(byte_count / GIB)
    binary = byte_count % GB != 0 and abs(byte_count - nearest * GIB) <= byte_count * SAME_SIZE
    return nearest * GB if binary and nearest else byte_count
