"""A hundred thousand strings like those of price lists, and none breaks a reader."""

from __future__ import annotations

from random import Random

from marketplace.catalog.base import Entry
from marketplace.catalog.normalise import MOST_GPUS, normalise
from marketplace.catalog.offers import settle
from marketplace.catalog.reading.counts import read_count
from marketplace.catalog.reading.labels import Attribute
from marketplace.catalog.reading.money import Locale
from marketplace.catalog.reading.prices import read_rates
from marketplace.catalog.reading.sizes import find_sizes
from marketplace.catalog.records import Cell, Record

STRINGS, ROWS = 100_000, 5_000
PIECES = (  # noqa: SIM905  one word after the other is what it is
    "$ € £ ₹ ¥ CHF AED zł Kč kr USD EUR us$ % / - – . , ' ’ : ; ( ) [ ] × x X * ✕ ½ ¼ − + ~ ≈ < > | \\ "
    "8 16 0 00 1.5 2,49 1.234,56 1’234.50 99999999999999999999 1e309 NaN inf -1 -0 .5 5. 1,23,456 ٣ ８ ² "
    "GB GiB TB MiB G MB bytes VRAM RAM NVMe SSD DDR5 HBM3e vCPU cores each total per GPU node server "
    "machine hour hr h month mo Monat mois Std. semaine day year second term 3-year reserved spot from "
    "ab à partir de desde od was now save setup fee cap capped at up to first then incl. excl. VAT TVA "
    "NVIDIA H100 A100 L40S RTX 4090 MI300X GH200 HGX SXM5 PCIe NVLink eight octo acht huit ocho dual "
    "quad nodes of with in stock sold out waitlist \u200b \u202e \ufeff \u00a0 \u202f \x00 \x85 \n \t 🜛 Н1ОО"
).split(" ")  # fmt: skip
LANGUAGES = ("en", "de", "fr", "es", "pl", "pt-BR", "en-IN", "ar")


def strings(seed: int, number: int) -> list[tuple[str, str]]:
    """Text and language. Seeded: a failure comes back."""
    random = Random(seed)
    return [
        (
            random.choice(("", " ")).join(random.choices(PIECES, k=random.randint(1, 9))),
            random.choice(LANGUAGES),
        )
        for _ in range(number)
    ]


def test_no_string_breaks_a_reader_or_gives_an_impossible_number() -> None:
    """A minus that is printed is read, so that the row is refused; no price comes of it."""
    for text, language in strings(20261130, STRINGS):
        found = read_rates(text, "", Locale(language, None), bare=True)
        assert all(rate.amount.is_finite() for rate in found), text
        assert all(quote.amount > 0 for quote in settle(found, 8).quotes), text
        sizes = find_sizes(text)
        assert all(size.total_bytes >= 0 and size.each_bytes >= 0 for size in sizes), text
        count = read_count(text)
        assert count.nodes >= 1, text
        assert count.gpus is None or type(count.gpus) is int, text


def test_no_row_of_such_strings_becomes_an_impossible_machine() -> None:
    texts = [text for text, _ in strings(7, 4 * ROWS)]
    for title, price, memory, host in zip(*[iter(texts)] * 4, strict=True):
        cells = (
            Cell(price, "price", Attribute.PRICE),
            Cell(memory, "vram", Attribute.VRAM),
            Cell(host, "ram", Attribute.RAM),
        )
        read = normalise([Record(sku="row", title=f"{title} NVIDIA H100", cells=cells)])
        if isinstance(read, Entry):
            assert all(0 < quote.amount < 10**10 + 1 for quote in read.quotes), (title, price)
            assert read.gpu_count is None or 0 < read.gpu_count <= MOST_GPUS, title
            assert read.vram_bytes_per_gpu is None or read.vram_bytes_per_gpu > 0, memory
            assert read.ram_bytes is None or read.ram_bytes > 0, host
