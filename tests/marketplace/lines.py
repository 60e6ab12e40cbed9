"""A catalog of the plainest kind: one machine a line, for tests of what happens after reading.

sku|region|GPU|count|GB each|USD per machine-hour
?sku|region          a row that is not believed
next /address
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from evaluator.findings import Code, finding
from evaluator.prices import Basis, Quote, TimeUnit
from evaluator.units import GB
from marketplace.catalog.base import Batch, Entry, Page, Quarantined, UnreadablePage


class LinesAdapter:
    def __init__(self, before_reading: Callable[[], None] = lambda: None) -> None:
        self.before_reading = before_reading

    def next_page(self, page: Page) -> str | None:
        named = [line[5:] for line in _lines(page) if line.startswith("next ")]
        return named[0] if named else None

    def read(self, pages: Sequence[Page]) -> Batch:
        self.before_reading()
        lines = [line for page in pages for line in _lines(page)]
        rows = [line.split("|") for line in lines if "|" in line]
        numbers = [n for n, page in enumerate(pages) for line in _lines(page) if "|" in line]
        if not rows:
            raise UnreadablePage(finding(Code.LAYOUT_CHANGED))
        return Batch(
            entries=tuple(
                _entry(row, number)
                for row, number in zip(rows, numbers, strict=True)
                if not row[0].startswith("?")
            ),
            quarantined=tuple(_doubted(row) for row in rows if row[0].startswith("?")),
            left_out={"cpu_only": lines.count("cpu")} if "cpu" in lines else {},
        )


def _lines(page: Page) -> Iterator[str]:
    return iter(page.body.decode().splitlines())


def _entry(row: list[str], page: int) -> Entry:
    sku, region, model, count, vram, price = row
    amount = Decimal(price) if price else None
    quote = amount and Quote(amount, "USD", TimeUnit.HOUR, Basis.MACHINE, words=f"${price}")
    return Entry(
        sku=sku,
        region=region,
        title=f"{count}x {model}",
        gpu_model=model,
        gpu_count=int(count),
        vram_bytes_per_gpu=int(vram) * GB if vram else None,
        quotes=(quote,) if quote else (),
        words={"gpu": model},
        page=page,
    )


def _doubted(row: list[str]) -> Quarantined:
    reason = finding(Code.VRAM_IMPOSSIBLE, words="12 GB", gpu_model="H100")
    return Quarantined(row[0].removeprefix("?"), reason, row[1])
