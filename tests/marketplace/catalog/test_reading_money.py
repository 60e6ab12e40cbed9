"""What printed amounts mean, in the languages and habits of real price lists."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.catalog.reading.money import Locale, find_money, read_declared_currency
from marketplace.catalog.reading.numbers import read_integer, read_number

# text, language, amount, currency ("?" is doubtful), whether the amount is doubtful
AMOUNTS = [
    ("$22.40 / hour", "en", "22.40", "USD", False),
    ("US$1,234/mo", "en", "1234", "USD", False),
    ("USD 2.89", "en", "2.89", "USD", False),
    ("2.89 USD", "de", "2.89", "USD", False),
    ("$2.89 USD/hr", "es", "2.89", "USD", False),
    ("$.44/hr", "en", ".44", "USD", False),
    ("$1,950 per day", "en", "1950", "USD", False),
    ("$1,250,000.50", "en", "1250000.50", "USD", False),
    ("$1.234/hr", "en", "1.234", "USD", False),
    ("12.50 $/h", "es", "12.50", "?", False),
    ("12.50 $/h", "en", "12.50", "?", False),
    ("$1.60/hr", "en-CA", "1.60", "?", False),
    ("$3.20 per hour", "en-AU", "3.20", "?", False),
    ("CA$1.60", "en", "1.60", "CAD", False),
    ("C$4", "en", "4", "CAD", False),
    ("A$3.10", "en", "3.10", "AUD", False),
    ("NZ$3.10", "en", "3.10", "NZD", False),
    ("S$2.10/hr", "en-SG", "2.10", "SGD", False),
    ("HK$18.20/hr", "en", "18.20", "HKD", False),
    ("R$ 12,50 por hora", "pt-BR", "12.50", "BRL", False),
    ("MX$38.50/hora", "es-MX", "38.50", "MXN", False),
    ("1.234,56 € / Monat", "de", "1234.56", "EUR", False),
    ("2,49 €/Std.", "de", "2.49", "EUR", False),
    ("1 950,00 € HT / mois", "fr", "1950.00", "EUR", False),
    ("1\u202f950,00\u00a0€", "fr", "1950.00", "EUR", False),
    ("€ 1.250,00 per maand", "nl", "1250.00", "EUR", False),
    ("2.990 € per month", "en", "2990", "EUR", True),
    ("€1.234", "de", "1234", "EUR", True),
    ("1,234 €", "de", "1.234", "EUR", True),
    ("12,50 EUR/kk", "fi", "12.50", "EUR", False),
    ("€0.526/hr", "en", "0.526", "EUR", False),
    ("£1,450 per month", "en-GB", "1450", "GBP", False),
    ("95p per hour", "en-GB", "0.95", "GBP", False),
    ("90¢/hr", "en", "0.9", "USD", False),
    ("CHF 1’234.50 / Monat", "de", "1234.50", "CHF", False),
    ("CHF 1'234.- / Monat", "de-CH", "1234", "CHF", False),
    ("₹1,23,456.78 / month", "en-IN", "123456.78", "INR", False),
    ("Rs. 1,23,456/- per month", "en-IN", "123456", "INR", False),
    ("₹2.5 lakh per month", "en-IN", "250000", "INR", False),
    ("AED 82.50 per machine", "en-AE", "82.50", "AED", False),
    ("Dhs. 1,950 per day", "en-AE", "1950", "AED", False),
    ("12.50 د.إ / ساعة", "ar", "12.50", "AED", False),
    ("SAR 9.50 per hour", "en", "9.50", "SAR", False),
    ("1.950 zł/mies.", "pl", "1950", "PLN", True),
    ("1 250 Kč / měsíc", "cs", "1250", "CZK", False),
    ("1 250 Ft/óra", "hu", "1250", "HUF", False),
    ("1 234 kr/mån", "sv", "1234", "SEK", False),
    ("12,50 kr/time", "da", "12.50", "DKK", False),
    ("kr 12,50", "nb", "12.50", "NOK", False),
    ("kr 12.50", "en", "12.50", "?", False),
    ("250 ₽/час", "ru", "250", "RUB", False),
    ("₺95,50/saat", "tr", "95.50", "TRY", False),
    ("¥3,800/時間", "ja", "3800", "JPY", False),
    ("月額 98,000円", "ja", "98000", "JPY", False),
    ("¥18.5/小时", "zh", "18.5", "CNY", False),
    ("¥18.5/hour", "en", "18.5", "?", False),
    ("₩3,800/시간", "ko", "3800", "KRW", False),
    ("R 45.50 per hour", "en-ZA", "45.50", "ZAR", False),
    ("$1e-9/hr", "en", "1E-9", "USD", False),
    ("RTX 4090 950 €/Monat", "de", "950", "EUR", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "language", "amount", "currency", "doubtful"), AMOUNTS)
def test_an_amount_means(
    text: str, language: str, amount: str, currency: str, doubtful: bool
) -> None:
    money = next(find_money(text, Locale(language)))
    assert money.amount == Decimal(amount)
    assert money.currency == (None if currency == "?" else currency)
    assert money.ambiguous_currency == (currency == "?")
    assert money.ambiguous_amount == doubtful


@pytest.mark.parametrize(
    "text", ["", "80 GB", "8x H100", "224 vCPU", "1e9", "$", "€ per hour", "2.99", "GPU 0", "$NaN"]
)
def test_no_amount_is_read_without_a_sign(text: str) -> None:
    assert list(find_money(text)) == []


@pytest.mark.parametrize(
    ("note", "currency"),
    [
        ("All prices in US dollars per GPU per hour", "USD"),
        ("Montreal – all dollar prices in Canadian dollars", "CAD"),
        ("Alle Preise in Euro zzgl. MwSt.", "EUR"),
        ("Prices are in AED", "AED"),
        ("Rates in GBP, excluding VAT", "GBP"),
        ("Prices exclude VAT.", None),
        ("Our data centres are NVSwitch-ready.", None),
        ("Prices in USD or EUR", None),
    ],
)
def test_a_note_declares_a_currency(note: str, currency: str | None) -> None:
    assert read_declared_currency(note) == currency


def test_a_declared_currency_settles_a_bare_dollar() -> None:
    money = next(find_money("$1.60/hr", Locale("en-CA", "CAD")))
    assert (money.currency, money.ambiguous_currency) == ("CAD", False)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("208", 208), ("1,024", 1024), ("1 024", 1024), ("56.0", 56), ("-3", -3),
        ("2.5", None), ("abc", None), ("", None), ("1,2", None), ("8x", None),
    ],
)  # fmt: skip
def test_a_whole_number_is(text: str, number: int | None) -> None:
    assert read_integer(text) == number


@given(st.text(max_size=200))
def test_no_text_gives_an_endless_amount(text: str) -> None:
    assert all(money.amount.is_finite() for money in find_money(text))


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_an_american_amount_comes_back_as_printed(amount: Decimal) -> None:
    number = read_number(f"{amount:,}")
    assert number is not None
    assert number.value == amount
