"""All listings as columns, as the database has them: after a change only what differs is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import F, FloatField, QuerySet, TextField
from django.db.models.functions import Cast

from marketplace.bulk import (
    FEW,
    Amount,
    Digest,
    Moment,
    columns_of,
    found_in,
    in_parts,
    parts_of,
    uncollected,
)
from marketplace.models import Listing
from marketplace.words import Column, Told, Words

WORDS = {
    "title": F("title"),
    "sku": F("sku"),
    "gpu": F("gpu_model"),
    "provider": F("provider__slug"),
    "source": F("source__key"),
    "region": F("region"),
    "availability": F("availability"),
    "link": F("link"),
    "configuration": F("configuration"),
    "currency": F("machine_hour_currency"),
    "provider_name": F("provider__name"),
    "zone": F("zone"),
    "url": F("url"),
    "findings": Cast("findings", TextField()),
    "corrections": Cast("corrections", TextField()),
}
"""Documents are read as texts: nearly always they are the same in many rows."""
NUMBERS = {
    "gpus": F("gpu_count"),
    "vram": F("vram_bytes_per_gpu"),
    "vcpus": F("vcpus"),
    "ram": F("ram_bytes"),
    "disk": F("local_storage_bytes"),
    "quantity": F("quantity"),
    "amount": Amount("machine_hour_amount", FloatField()),
    "seen": Moment("last_seen"),
    "gone_at": Moment("gone_at"),
}
DIGEST = Digest.of(one for name, one in (WORDS | NUMBERS).items() if name != "seen")
"""When a listing was seen is asked of all: a sync moves it in rows that say the same as before."""


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """Rows in the order of their keys. Numbers are floats, NaN is unknown.

    `joined` counts rows that were read since all were: names may hold what stood there before.
    """

    keys: Column
    digests: Column
    words: Mapping[str, Words]
    numbers: Mapping[str, Column]
    joined: int = 0

    @property
    def gone(self) -> Column:
        return ~np.isnan(self.numbers["gone_at"])

    @classmethod
    def empty(cls) -> Stock:
        return _read([])

    @classmethod
    def whole(cls) -> Stock:
        return _read([Listing.objects.all()])

    @uncollected()
    def renewed(self) -> Stock:
        """As it stands now; the same where nothing differs."""
        if not len(self.keys):
            return Stock.whole()
        rows = Listing.objects.annotate(digest=DIGEST, seen=NUMBERS["seen"])
        keys, digests, seen = columns_of(rows, pk=np.int64, digest=np.int64, seen=float)
        at, same = found_in((self.keys, self.digests), (keys, digests))
        new = int(np.count_nonzero(~same))
        if new > len(keys) * FEW or self.joined + new > len(keys):
            return Stock.whole()
        if len(keys) == len(self.keys) and not new:
            return self._seen_at(seen)
        those = [Listing.objects.filter(pk__in=part) for part in in_parts(keys[~same])]
        return self._with(at[same], seen[same], _read(those))

    def _seen_at(self, seen: Column) -> Stock:
        if np.array_equal(seen, self.numbers["seen"]):
            return self
        return replace(self, numbers={**self.numbers, "seen": seen})

    def _with(self, rows: Column, seen: Column, other: Stock) -> Stock:
        """Some rows, seen at other times, among those of another stock."""
        keys = np.append(self.keys[rows], other.keys)
        order = np.argsort(keys, kind="stable")
        held = {name: column[rows] for name, column in self.numbers.items()} | {"seen": seen}
        numbers = {name: np.append(held[name], other.numbers[name])[order] for name in held}
        words = {
            name: one.joined(rows, other.words[name], order) for name, one in self.words.items()
        }
        digests = np.append(self.digests[rows], other.digests)[order]
        return Stock(keys[order], digests, words, numbers, self.joined + len(other.keys))


@uncollected()
def _read(queries: list[QuerySet[Listing]]) -> Stock:
    """Row by row no longer than a part of them is read: all at once would take much memory."""
    named = {f"of_{name}": value for name, value in (WORDS | NUMBERS).items()}
    words = {name: Told() for name in WORDS}
    numbers: dict[str, list[Column]] = {name: [NOTHING] for name in NUMBERS}
    keys, digests = [NOTHING.astype(np.int64)], [NOTHING.astype(np.int64)]
    for query in queries:
        rows = query.order_by("pk").annotate(digest=DIGEST, **named)
        for part in parts_of(rows.values_list("pk", "digest", *named)):
            key, digest, *columns = zip(*part, strict=True)
            keys.append(np.array(key, dtype=np.int64))
            digests.append(np.array(digest, dtype=np.int64))
            held = dict(zip((*WORDS, *NUMBERS), columns, strict=True))
            for name, told in words.items():
                told.add(held[name])
            for name, parts in numbers.items():
                parts.append(np.array(held[name], dtype=float))
    return Stock(
        np.concatenate(keys),
        np.concatenate(digests),
        {name: Words.told(told) for name, told in words.items()},
        {name: np.concatenate(parts) for name, parts in numbers.items()},
    )


NOTHING = np.array([], dtype=float)
