"""One base unit for each quantity: bytes, bytes/s in one direction, hours, decimal money."""

from decimal import Decimal

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
MB, GB, TB = 10**6, 10**9, 10**12

SECONDS_PER_HOUR = 3600
HOURS_PER_DAY = Decimal(24)
HOURS_PER_WEEK = Decimal(168)
HOURS_PER_MONTH = Decimal(730)
"""A billing month of 8760 / 12 hours; a monthly rate is never shown as hourly without saying so."""


def gib(byte_count: float) -> float:
    """Bytes in GiB (2^30)."""
    return byte_count / GIB


def gb(byte_count: float) -> float:
    """Bytes in GB (10^9)."""
    return byte_count / GB
