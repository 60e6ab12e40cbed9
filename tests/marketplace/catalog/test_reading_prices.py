"""What a price buys: unit, basis, purchase, term, and which amounts are no rent."""

from __future__ import annotations

import pytest

from marketplace.catalog.reading.money import Locale
from marketplace.catalog.reading.prices import Role, read_rates
from marketplace.catalog.reading.rates import includes_tax, read_basis, read_tenure, read_unit

UNITS = [
    ("/hr per machine", "hour"), ("/ hour", "hour"), ("per GPU per hour", "hour"), ("hourly", "hour"),
    ("/h", "hour"), ("/Std.", "hour"), ("pro Stunde", "hour"), ("par heure", "hour"), ("/時間", "hour"),
    ("za godzinę", "hour"), ("за час", "hour"), ("/ 1 hour", "hour"), ("an hour", "hour"), ("GPUh", "hour"),
    ("/GPU-hr", "hour"), ("/sec", "second"), ("per second", "second"), ("/GPU/s", "second"),
    ("per day", "day"), ("daily", "day"), ("/Tag", "day"), ("per week", "week"), ("/Woche", "week"),
    ("/mo", "month"), ("/month", "month"), ("Monthly", "month"), ("/ Monat", "month"), ("/mies.", "month"),
    ("€ HT / mois", "month"), ("/月", "month"), ("pcm", "month"), ("a year", "term"), ("per annum", "term"),
    ("/hr for the first 100 hours", "hour"), ("at 730 h", None), ("for 3 months", None),
    ("1-year reserved", None), ("per GPU", None), ("", None), ("server", None),
]  # fmt: skip

BASES = [
    ("/GPU/hr", "gpu"), ("per GPU", "gpu"), ("per card-hour", "gpu"), ("per accelerator", "gpu"),
    ("GPU-hour", "gpu"), ("GPUh", "gpu"), ("je GPU und Stunde", "gpu"), ("par carte", "gpu"),
    ("/GPU-month", "gpu"), ("per machine", "machine"), ("/node/hr", "machine"), ("per server", "machine"),
    ("for the whole machine", "machine"), ("per instance", "machine"), ("instance-hour", "machine"),
    ("/serveur/mois", "machine"), ("pro Server", "machine"), ("je Stunde und Server", "machine"),
    ("/hr total", "machine"), ("for all 8 GPUs", "machine"), ("/hr", "unknown"), ("per month", "unknown"),
    ("", "unknown"), ("per hour", "unknown"), ("640 GB total VRAM", "unknown"),
]  # fmt: skip

TENURES = [
    ("On-demand", "on_demand", ""), ("pay as you go", "on_demand", ""), ("Spot", "spot", ""),
    ("interruptible", "spot", ""), ("preemptible", "spot", ""), ("Reserved 3yr", "reserved", "3 years"),
    ("with a 12-month commitment", "reserved", "12 months"), ("1-yr reserved", "reserved", "1 year"),
    ("savings plan", "reserved", ""), ("36 mo contract", "reserved", "36 months"),
    ("1 year", "on_demand", "1 year"), ("annual", "on_demand", "1 year"),
    ("quarterly", "on_demand", "3 months"), ("", "on_demand", ""),
]  # fmt: skip

# text: (amount, unit, basis, purchase, term) of every rate
RATES: list[tuple[str, list[tuple[str, str | None, str, str, str]]]] = [
    ("$22.40 / hour per machine", [("22.40", "hour", "machine", "on_demand", "")]),
    ("$2.49 /GPU/hr", [("2.49", "hour", "gpu", "on_demand", "")]),
    ("$27.12 /node/hr", [("27.12", "hour", "machine", "on_demand", "")]),
    ("$0.000125 /sec", [("0.000125", "second", "unknown", "on_demand", "")]),
    ("$0.04/min", [("2.40", "hour", "unknown", "on_demand", "")]),
    ("€1.20 /hour, never more than €699.00 /month", [("1.20", "hour", "unknown", "on_demand", "")]),
    ("$2.40/hour (max $900/month)", [("2.40", "hour", "unknown", "on_demand", "")]),
    ("$18,250 /month per server (≈ $25.00/hr at 730 h)",
     [("18250", "month", "machine", "on_demand", "")]),
    ("$2407.8/mo ($3.583/hr)", [("2407.8", "month", "unknown", "on_demand", "")]),
    ("€2.73/hour (~€1,992/month)", [("2.73", "hour", "unknown", "on_demand", "")]),
    ("$1.45 /GPU/hr with a 12-month commitment", [("1.45", "hour", "gpu", "reserved", "12 months")]),
    ("3 months: $2,970 per server", [("2970", "term", "machine", "on_demand", "3 months")]),
    ("$389,400 a year", [("389400", "term", "unknown", "on_demand", "1 year")]),
    ("$900 quarterly", [("900", "term", "unknown", "on_demand", "3 months")]),
    ("$96 per week", [("96", "week", "unknown", "on_demand", "")]),
    ("one-off setup €79.00", []),
    ("€99 setup, then €900/month", [("900", "month", "unknown", "on_demand", "")]),
    ("Earn $500 credit for every 8 × H100 customer you bring.", []),
    ("$2.39/hr + $0.10/GB egress", [("2.39", "hour", "unknown", "on_demand", "")]),
    ("was $31.92 now $27.12 /node/hr", [("27.12", "hour", "machine", "on_demand", "")]),
    ("On-demand $2.99/hr Spot $1.40/hr Reserved 1 yr $2.15/hr",
     [("2.99", "hour", "unknown", "on_demand", ""), ("1.40", "hour", "unknown", "spot", ""),
      ("2.15", "hour", "unknown", "reserved", "1 year")]),
    ("$2.99/hr on-demand, $1.40/hr spot, $2.15/hr reserved (1 year)",
     [("2.99", "hour", "unknown", "on_demand", ""), ("1.40", "hour", "unknown", "spot", ""),
      ("2.15", "hour", "unknown", "reserved", "1 year")]),
    ("Reserve: $1.80/hr (12 mo), $1.50/hr (36 mo)",
     [("1.80", "hour", "unknown", "reserved", "12 months"),
      ("1.50", "hour", "unknown", "reserved", "36 months")]),
    ("$17.50/hr spot, $24/hr on-demand, per instance",
     [("17.50", "hour", "machine", "spot", ""), ("24", "hour", "machine", "on_demand", "")]),
    ("$2.39/hr (save 20% with annual billing)", [("2.39", "hour", "unknown", "on_demand", "")]),
    ("$2.10/hr billed monthly", [("2.10", "hour", "unknown", "on_demand", "")]),
    ("$20/hr, 8 x $2.50",
     [("20", "hour", "unknown", "on_demand", ""), ("2.50", "hour", "gpu", "on_demand", "")]),
    ("Pricing soon", []),
    ("on request", []),
]  # fmt: skip


@pytest.mark.parametrize(("words", "unit"), UNITS)
def test_a_unit_is_read_from(words: str, unit: str | None) -> None:
    read = read_unit(words)
    assert (read.value if read else None) == unit


@pytest.mark.parametrize(("words", "basis"), BASES)
def test_a_basis_is_read_from(words: str, basis: str) -> None:
    assert read_basis(words).value == basis


@pytest.mark.parametrize(("words", "purchase", "term"), TENURES)
def test_a_purchase_is_read_from(words: str, purchase: str, term: str) -> None:
    tenure = read_tenure(words)
    assert (tenure.purchase.value, tenure.term) == (purchase, term)


@pytest.mark.parametrize(("text", "expected"), RATES)
def test_rates_are_read_from(
    text: str, expected: list[tuple[str, str | None, str, str, str]]
) -> None:
    found = [rate for rate in read_rates(text) if rate.role is Role.RATE]
    assert [
        (
            str(rate.amount),
            rate.unit and rate.unit.value,
            rate.basis.value,
            rate.purchase.value,
            rate.term,
        )
        for rate in found
    ] == expected


@pytest.mark.parametrize(
    "text",
    ["from $0.89 /hr", "starting at $2.00/hr", "ab 0,89 €/Std.", "$1.90 – $3.20 /hr", "$1.99+/hr",
     "$1.99 to $3.99 an hour", "à partir de 2 € / heure", "Base price $2.00/hr, configure options"],
)  # fmt: skip
def test_a_lowest_price_is_marked(text: str) -> None:
    assert read_rates(text)[0].lowest


@pytest.mark.parametrize("text", ["$0.89 /hr", "$2.99/hr from our stock", "$2 per hour"])
def test_a_plain_price_is_no_lowest_price(text: str) -> None:
    assert not read_rates(text)[0].lowest


@pytest.mark.parametrize(
    "text",
    ["$0.99/hr for the first 100 hours, then $2.39/hr", "$2.50/hr up to 100 hours, $2.00/hr after",
     "$2.40/hr; first 50 hours free"],
)  # fmt: skip
def test_a_price_that_changes_with_use_is_tiered(text: str) -> None:
    assert all(rate.tiered for rate in read_rates(text))


@pytest.mark.parametrize(
    ("text", "included"),
    [("incl. 19% VAT", True), ("inkl. MwSt.", True), ("TTC", True), ("including GST", True),
     ("VAT included", True), ("all prices include 20% VAT", True), ("HT", False), ("excl. VAT", False),
     ("plus VAT", False), ("zzgl. MwSt.", False), ("+ 20% VAT", None), ("Prices exclude VAT", False),
     ("per hour", None)],
)  # fmt: skip
def test_tax_words(text: str, included: bool | None) -> None:
    assert includes_tax(text) is included


@pytest.mark.parametrize(
    ("text", "label", "amount", "unit", "basis"),
    [
        ("2.99", "Price per GPU-hour / On-demand", "2.99", "hour", "gpu"),
        ("2392", "price cents hour", "23.92", "hour", "unknown"),
        ("14.40", "Machine price (USD/h)", "14.40", "hour", "machine"),
        ("1.950,00", "Preis pro Monat (EUR)", "1950.00", "month", "unknown"),
        ("2.4", "pricing on demand per gpu hour", "2.4", "hour", "gpu"),
    ],
)  # fmt: skip
def test_a_bare_number_takes_the_words_of_its_header(
    text: str, label: str, amount: str, unit: str, basis: str
) -> None:
    (rate,) = read_rates(text, label, Locale("de" if "Preis" in label else "en"), bare=True)
    assert str(rate.amount) == amount
    assert rate.unit is not None
    assert (rate.unit.value, rate.basis.value) == (unit, basis)


@pytest.mark.parametrize("text", ["–", "n/a", "on request", "12 months", "ask", "", "-"])
def test_a_cell_without_an_amount_has_no_price(text: str) -> None:
    assert read_rates(text, "Spot", bare=True) == []
