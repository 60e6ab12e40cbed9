"""Whether what was read from a page is what a case expects. Pure comparison, field by field."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from evaluator.findings import Code
from evaluator.prices import Quote, TimeUnit, machine_per_hour
from evaluator.units import gb
from marketplace.catalog.base import Entry

LISTING_CODES = frozenset({
    Code.BASIS_UNKNOWN, Code.PRICE_MISSING, Code.NO_ON_DEMAND_PRICE, Code.PRICE_FROM,
    Code.NOT_HOURLY, Code.TAX_INCLUDED, Code.TIERED_PRICE, Code.CURRENCY_AMBIGUOUS,
    Code.AMOUNT_AMBIGUOUS, Code.VRAM_AMBIGUOUS, Code.VRAM_TOTAL_DIVIDED, Code.VRAM_NONSTANDARD,
    Code.FORM_FACTOR_ONLY, Code.LINK_PAIRS_ONLY, Code.LINK_SCOPE_UNKNOWN, Code.IMPLAUSIBLE_LINK,
    Code.CONFLICTING_VALUES, Code.MULTI_NODE, Code.FRACTIONAL_GPU, Code.AVAILABILITY_UNKNOWN,
})  # fmt: skip
"""The warnings of a listing that cases count; others may be added freely."""

PAGE_CODES = frozenset({
    Code.LAYOUT_CHANGED, Code.CHALLENGE_PAGE, Code.PAGE_TRUNCATED, Code.COUNT_MISMATCH,
    Code.PAGINATION_LOOP, Code.DUPLICATE_LISTING, Code.MALFORMED_STRUCTURED_DATA,
    Code.HIDDEN_TEXT_IGNORED, Code.ENCODING_REPLACED, Code.STALE_PAGE,
})  # fmt: skip
SPARE_WARNINGS = 1
"""At most one warning more than expected is right."""
TOLERANCE_GB = 0.5

_NOT_BY_THE_HOUR = frozenset({TimeUnit.WEEK, TimeUnit.MONTH, TimeUnit.TERM})
_NUMERIC = ("vram_gb_per_gpu", "ram_gb", "local_storage_gb")
_PLAIN = ("gpu_model", "gpu_count", "nodes", "form_factor", "link", "link_evidence",
          "availability", "region", "vcpus")  # fmt: skip
_OFFER = ("model", "amount", "currency", "unit", "basis", "machine_per_hour")


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the reading is not right: "id.field", expected, read."""

    where: str
    expected: Any
    read: Any

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected!r}, read {self.read!r}"


def described(entry: Entry) -> dict[str, Any]:
    """An entry in the words of a case file."""
    single = entry.gpu_count == 1
    link = entry.link.value if entry.link else "unknown"
    return {
        "gpu_model": entry.gpu_model, "gpu_count": entry.gpu_count, "nodes": entry.nodes,
        "vram_gb_per_gpu": _in_gb(entry.vram_bytes_per_gpu), "form_factor": entry.form_factor,
        "link": "n/a" if single else link,
        "link_evidence": "n/a" if single else "declared" if entry.link else "unknown",
        "availability": entry.availability.value, "region": entry.region or None,
        "vcpus": entry.vcpus, "ram_gb": _in_gb(entry.ram_bytes),
        "local_storage_gb": _in_gb(entry.local_storage_bytes),
        "offers": [described_offer(quote, entry.gpu_count) for quote in entry.quotes],
    }  # fmt: skip


def _in_gb(byte_count: int | None) -> float | None:
    return None if byte_count is None else gb(byte_count)


def described_offer(quote: Quote, gpu_count: int | None) -> dict[str, Any]:
    """A quote in the words of a case file: what cannot be booked by the hour has no hourly rate."""
    hourly = None if quote.unit in _NOT_BY_THE_HOUR else machine_per_hour(quote, gpu_count)
    return {
        "model": quote.purchase.value, "amount": str(quote.amount), "currency": quote.currency,
        "unit": quote.unit.value, "basis": quote.basis.value,
        "machine_per_hour": None if hourly is None else str(hourly),
    }  # fmt: skip


def compare_row(row: Mapping[str, Any], entry: Entry) -> Iterator[Difference]:
    """Every field of an expected row that the entry has otherwise and that no accept allows."""
    read, accept = described(entry), row.get("accept", {})
    accept = accept if isinstance(accept, dict) else {}
    for name in (*_PLAIN, *_NUMERIC):
        wanted = [row.get(name, 1 if name == "nodes" else None), *_listed(accept.get(name))]
        compared = name in row or name == "nodes"
        if compared and not any(_equal(name, one, read[name]) for one in wanted):
            yield Difference(f"{row['id']}.{name}", wanted[0], read[name])
    if "offers" in row:
        yield from _compare_offers(row, accept, read["offers"], single=entry.gpu_count == 1)
    codes = {one.code for one in entry.findings} & LISTING_CODES
    yield from compare_warnings(
        f"{row['id']}.warnings", row.get("warnings", ()), codes,
        accept.get("warnings_may_add", ()), accept.get("warnings_may_lack", ()),
    )  # fmt: skip


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _equal(name: str, wanted: Any, read: Any) -> bool:
    if name in _NUMERIC and wanted is not None and read is not None:
        return abs(float(wanted) - float(read)) <= TOLERANCE_GB
    return bool(wanted == read)


def _compare_offers(
    row: Mapping[str, Any], accept: Mapping[str, Any], read: Sequence[Mapping[str, Any]],
    *, single: bool,
) -> Iterator[Difference]:  # fmt: skip
    """Offers in any order: each expected one takes the read one that fits it."""
    left = list(read)
    for number, offer in enumerate(row["offers"]):
        allowed = {
            name: [offer.get(name), *_listed_values(accept, f"offers.{number}.{name}")]
            for name in _OFFER
        }
        match = next((one for one in left if _offer_fits(allowed, one, single)), None)
        if match is None:
            wanted = {name: offer.get(name) for name in _OFFER}
            yield Difference(f"{row['id']}.offers.{number}", wanted, [dict(one) for one in left])
        else:
            left.remove(match)
    if left and len(read) > len(row["offers"]):
        yield Difference(f"{row['id']}.offers", "no further offer", [dict(one) for one in left])


def _listed_values(accept: Mapping[str, Any], key: str) -> list[Any]:
    """What else is right, null included: `[null]` accepts an unknown value."""
    if key not in accept:
        return []
    return accept[key] if isinstance(accept[key], list) else [accept[key]]


def _offer_fits(allowed: Mapping[str, list[Any]], read: Mapping[str, Any], single: bool) -> bool:
    return all(
        any(_offer_field(name, one, read[name], single) for one in values)
        for name, values in allowed.items()
    )


def _offer_field(name: str, wanted: Any, read: Any, single: bool) -> bool:
    if name in ("amount", "machine_per_hour"):
        return _same_amount(wanted, read)
    if name == "basis" and single:
        # One GPU is the whole machine: a rate per GPU and a rate per machine say the same.
        return wanted == read or {wanted, read} <= {"machine", "gpu"}
    return bool(wanted == read)


def _same_amount(wanted: Any, read: Any) -> bool:
    if wanted is None or read is None:
        return wanted is read
    try:
        return abs(Decimal(str(wanted)) - Decimal(str(read))) < Decimal("0.000001")
    except InvalidOperation:
        return False


def compare_warnings(
    where: str, expected: Iterable[str], read: Collection[Code],
    may_add: Iterable[str] = (), may_lack: Iterable[str] = (),
) -> Iterator[Difference]:  # fmt: skip
    """Each expected warning is reported, and at most one more."""
    wanted, reported = set(expected), {code.value for code in read}
    missing = wanted - reported - set(may_lack)
    surplus = reported - wanted - set(may_add)
    if missing or len(surplus) > SPARE_WARNINGS:
        yield Difference(where, sorted(wanted), sorted(reported))


def compare_ids(
    where: str, expected: Iterable[str], read: Iterable[str],
    may_add: Collection[str] = (), may_lack: Collection[str] = (),
) -> Iterator[Difference]:  # fmt: skip
    wanted, found = set(expected), set(read)
    if (wanted - found - set(may_lack)) or (found - wanted - set(may_add)):
        yield Difference(where, sorted(wanted), sorted(found))


def fates(row: Mapping[str, Any]) -> frozenset[str]:
    """What else may become of a row: "quarantined", "absent", "listed"."""
    accept = row.get("accept", {})
    words = [accept] if isinstance(accept, str) else accept if isinstance(accept, list) else []
    return frozenset(str(word) for word in words)
