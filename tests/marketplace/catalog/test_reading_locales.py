"""Prices, counts and sizes as eight countries write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from marketplace.catalog.reading.counts import read_count
from marketplace.catalog.reading.money import Locale
from marketplace.catalog.reading.prices import read_rates
from marketplace.catalog.reading.sizes import find_sizes

# locale: text, amount, currency, unit, basis
PRICES = [
    ("de", "24,90 € pro Stunde und Server", "24.90", "EUR", "hour", "machine"),
    ("de", "2.499,00 € / Monat je Server", "2499.00", "EUR", "month", "machine"),
    ("de", "3,12 €/GPU/Std.", "3.12", "EUR", "hour", "gpu"),
    ("fr", "21,60 € HT / heure par serveur", "21.60", "EUR", "hour", "machine"),
    ("fr", "2 350,00 € par mois et par serveur", "2350.00", "EUR", "month", "machine"),
    ("fr", "2,49 € par carte et par heure", "2.49", "EUR", "hour", "gpu"),
    ("es", "6,40 € por hora y servidor", "6.40", "EUR", "hour", "machine"),
    ("es", "1.890,00 € al mes por servidor", "1890.00", "EUR", "month", "machine"),
    ("es", "2,05 € por tarjeta y hora", "2.05", "EUR", "hour", "gpu"),
    ("it", "5,90 € per server all'ora", "5.90", "EUR", "hour", "machine"),
    ("it", "1.450,00 € al mese", "1450.00", "EUR", "month", "unknown"),
    ("pt-BR", "R$ 98,50 por servidor por hora", "98.50", "BRL", "hour", "machine"),
    ("pt-BR", "R$ 12.400,00 por mês", "12400.00", "BRL", "month", "unknown"),
    ("pl", "89,90 zł za godzinę", "89.90", "PLN", "hour", "unknown"),
    ("pl", "14 500,00 zł / mies.", "14500.00", "PLN", "month", "unknown"),
    ("nl", "€ 18,75 per uur per server", "18.75", "EUR", "hour", "machine"),
    ("nl", "€ 1.250,00 per maand", "1250.00", "EUR", "month", "unknown"),
    ("en-IN", "₹1,640 per hour per server", "1640", "INR", "hour", "machine"),
    ("en-IN", "₹9,85,000 / month", "985000", "INR", "month", "unknown"),
]

COUNTS = [
    ("8 × NVIDIA H100 SXM 80 Go", 8),
    ("4x NVIDIA L40S, je 48 GB", 4),
    ("2 tarjetas NVIDIA A100 80 GB", 2),
    ("HGX H100 — 8x H100 SXM5 80GB", 8),
    ("DGX A100 (8 x A100 80GB)", 8),
    ("HGX H200", None),
    ("NVIDIA L4 24 Go", 1),
    ("4 Grafikkarten NVIDIA RTX 4090", 4),
    ("zwei NVIDIA RTX 6000 Ada", 2),
    ("quatre NVIDIA L40S", 4),
    ("dos NVIDIA A10", 2),
    ("ocho GPU H100", 8),
]

SIZES = [
    ("80 Go", 80),
    ("2 To", 2000),
    ("1,8 TB", 1800),
    ("15,36 To NVMe", 15360),
    ("3,84 TB NVMe", 3840),
    ("512 Go DDR5", 512),
    ("1.5 TB", 1500),
    ("2,048 GB", 2048),
    ("2.048 GB DDR5", 2048),
    ("1024 GiB", 1100),
    ("64 ГБ", 64),
    ("2 x 1,92 TB NVMe", 3840),
]


@pytest.mark.parametrize(("language", "text", "amount", "currency", "unit", "basis"), PRICES)
def test_a_price_means_the_same_in_every_language(
    language: str, text: str, amount: str, currency: str, unit: str, basis: str
) -> None:
    (rate,) = read_rates(text, "", Locale(language, None), bare=True)
    assert rate.unit is not None
    said = (rate.amount, rate.currency, rate.unit.value, rate.basis.value)
    assert said == (Decimal(amount), currency, unit, basis)


@pytest.mark.parametrize(("text", "gpus"), COUNTS)
def test_a_count_is_found_wherever_it_stands(text: str, gpus: int | None) -> None:
    assert read_count(text).gpus == gpus


@pytest.mark.parametrize(("text", "gigabytes"), SIZES)
def test_a_size_is_read_in_every_spelling(text: str, gigabytes: int) -> None:
    (size,) = find_sizes(text)
    assert round(size.total_bytes / 10**9) == gigabytes
