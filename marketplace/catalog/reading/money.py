"""Amounts of money in running text: what was printed, its currency, and where it stood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from marketplace.catalog.reading.numbers import NUMBER, Number, read_number

_CERTAIN = {
    "US$": "USD", "USD": "USD", "U$S": "USD", "US DOLLAR": "USD", "US DOLLARS": "USD",
    "CA$": "CAD", "C$": "CAD", "CAD": "CAD", "CAD$": "CAD", "CDN$": "CAD",
    "A$": "AUD", "AU$": "AUD", "AUD": "AUD", "NZ$": "NZD", "NZD": "NZD",
    "S$": "SGD", "SG$": "SGD", "SGD": "SGD", "HK$": "HKD", "HKD": "HKD",
    "NT$": "TWD", "TWD": "TWD", "MX$": "MXN", "MXN": "MXN", "R$": "BRL", "BRL": "BRL",
    "€": "EUR", "EUR": "EUR", "EURO": "EUR", "EUROS": "EUR", "£": "GBP", "GBP": "GBP",
    "₹": "INR", "INR": "INR", "RS.": "INR", "RS": "INR",
    "AED": "AED", "DHS.": "AED", "DHS": "AED", "DH": "AED", "DH.": "AED", "د.إ": "AED",
    "SAR": "SAR", "ر.س": "SAR", "QAR": "QAR", "KWD": "KWD", "BHD": "BHD", "OMR": "OMR",
    "CHF": "CHF", "SFR.": "CHF", "FR.": "CHF",
    "ZŁ": "PLN", "PLN": "PLN", "KČ": "CZK", "CZK": "CZK", "HUF": "HUF", "FT": "HUF",
    "SEK": "SEK", "NOK": "NOK", "DKK": "DKK", "ISK": "ISK",
    "₽": "RUB", "RUB": "RUB", "РУБ": "RUB", "РУБ.": "RUB", "₴": "UAH", "UAH": "UAH",
    "₺": "TRY", "TRY": "TRY", "TL": "TRY", "₪": "ILS", "ILS": "ILS", "ZAR": "ZAR", "R": "ZAR",
    "JP¥": "JPY", "JPY": "JPY", "円": "JPY", "CN¥": "CNY", "CNY": "CNY", "RMB": "CNY",
    "元": "CNY", "₩": "KRW", "KRW": "KRW", "원": "KRW", "฿": "THB", "THB": "THB",
    "₫": "VND", "VND": "VND", "RP": "IDR", "IDR": "IDR", "RM": "MYR", "MYR": "MYR",
    "₱": "PHP", "PHP": "PHP", "RON": "RON", "LEI": "RON", "BGN": "BGN", "лв": "BGN",
}  # fmt: skip
_SUBUNITS = {"P": "GBP", "¢": "USD", "HALALAS": "SAR", "FILS": "AED"}
_DOUBTFUL = ("$", "¥", "￥", "KR", "KR.")
_WHOLE_ONLY = frozenset({"JPY", "KRW", "VND", "IDR", "HUF", "ISK"})
"""Currencies whose prices have no decimals, so a separator groups thousands."""
_TRAILING_STYLE = frozenset(
    ["EUR", "PLN", "CZK", "SEK", "NOK", "DKK", "HUF", "RON", "BGN", "RUB", "UAH", "TRY"]
)
"""Printed after the number they follow continental habits whatever the page's language is."""

DOLLARS = {
    "canadian": "CAD", "australian": "AUD", "singapore": "SGD", "hong kong": "HKD",
    "new zealand": "NZD", "us": "USD", "u.s.": "USD", "american": "USD", "united states": "USD",
}  # fmt: skip
_NAMES = {
    "euro": "EUR", "euros": "EUR", "pounds": "GBP", "sterling": "GBP", "rupees": "INR",
    "dirhams": "AED", "dirham": "AED", "yen": "JPY", "zloty": "PLN", "swiss francs": "CHF",
    "swedish kronor": "SEK", "norwegian kroner": "NOK", "danish kroner": "DKK", "yuan": "CNY",
    "kanadischen dollar": "CAD", "us-dollar": "USD", "riyals": "SAR",
}  # fmt: skip


def _pattern(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_LEADING = (
    rf"(?P<lead>(?<![A-Za-z])(?:{_pattern((*_CERTAIN, *_DOUBTFUL))}))\s?(?P<minus>-?)\s?"
    rf"(?P<first>{NUMBER})(?P<closing>\s?(?:USD|CAD|AUD|SGD|NZD|HKD)\b)?"
)
_TRAILING = (
    rf"(?<![\w.,'’])(?P<minus2>-?)(?P<second>{NUMBER})\s?"
    rf"(?P<trail>(?:{_pattern((*_CERTAIN, *_DOUBTFUL, '¢'))}|p(?=\s*(?:per|/|an|$|\)))|halalas?|fils)"
    r"(?![A-Za-z]))"
)
_MONEY = re.compile(f"{_LEADING}|{_TRAILING}", re.I)
_BARE = re.compile(rf"(?<![\w.,'’])(?P<minus>-?)(?P<first>{NUMBER})(?![\w%])")
_LAKH = re.compile(r"\s?(lakhs?|lacs?|crores?|k|thousand)\b", re.I)
_MULTIPLES = {
    "l": Decimal(100_000),
    "c": Decimal(10_000_000),
    "k": Decimal(1000),
    "t": Decimal(1000),
}


@dataclass(frozen=True, slots=True)
class Money:
    """An amount at `start` to `end` of a text. `currency` None is unknown or not certain."""

    amount: Decimal
    currency: str | None
    start: int
    end: int
    words: str
    ambiguous_amount: bool = False
    ambiguous_currency: bool = False


@dataclass(frozen=True, slots=True)
class Locale:
    """What surrounds an amount: language of the text, and a currency that a note declares."""

    language: str = ""
    currency: str | None = None


def find_money(text: str, locale: Locale = Locale()) -> Iterator[Money]:
    """Amounts with a currency sign or code, in order."""
    for match in _MONEY.finditer(text):
        found = _money(match, text, locale)
        if found:
            yield found


def find_bare_amounts(text: str, locale: Locale = Locale()) -> Iterator[Money]:
    """Numbers without a sign, for a column or field that is known to hold prices."""
    for match in _BARE.finditer(text):
        number = _read(match["first"], locale, None, trailing=False)
        if number:
            value = -number.value if match["minus"] else number.value
            yield Money(value, locale.currency, match.start(), match.end(), match[0],
                        number.ambiguous)  # fmt: skip


def _money(match: re.Match[str], text: str, locale: Locale) -> Money | None:
    symbol = (match["lead"] or match["trail"]).upper()
    trailing = match["lead"] is None
    if match["closing"]:
        symbol = match["closing"].strip().upper()
    currency, doubtful = _currency(symbol, trailing, text[match.end() :], locale)
    number = _read(match["second"] if trailing else match["first"], locale, currency or symbol,
                   trailing=trailing)  # fmt: skip
    if number is None:
        return None
    amount, end = _scaled(number.value, symbol, text, match.end())
    if match["minus"] or match["minus2"]:
        amount = -amount
    words = text[match.start() : end].strip()
    return Money(amount, currency, match.start(), end, words, number.ambiguous, doubtful)


def _scaled(value: Decimal, symbol: str, text: str, end: int) -> tuple[Decimal, int]:
    if symbol in _SUBUNITS or symbol.startswith("HALALA"):
        return value / 100, end
    multiple = _LAKH.match(text, end)
    if multiple:
        return value * _MULTIPLES[multiple[1][0].lower()], multiple.end()
    return value, end


def _read(raw: str, locale: Locale, currency: str | None, *, trailing: bool) -> Number | None:
    european = currency in _WHOLE_ONLY or (trailing and currency in _TRAILING_STYLE)
    number = read_number(raw, locale.language, european=european)
    if number and currency in _WHOLE_ONLY and number.ambiguous:
        return Number(read_number(re.sub(r"[.,]", "", raw)).value)  # type: ignore[union-attr]
    return number


def _currency(symbol: str, trailing: bool, after: str, locale: Locale) -> tuple[str | None, bool]:
    """The currency, and whether the sign leaves it open."""
    if symbol in _SUBUNITS:
        return _SUBUNITS[symbol], False
    if symbol.startswith("HALALA"):
        return "SAR", False
    if symbol == "R":
        # A letter alone is the rand only where South Africa is meant.
        return ("ZAR", False) if locale.language.lower().endswith("-za") else (None, True)
    if symbol in _CERTAIN:
        return _CERTAIN[symbol], False
    language = locale.language.lower().replace("_", "-")
    if symbol == "$":
        return _dollar(language, trailing, locale.currency)
    if symbol in ("¥", "￥"):
        return _yen_or_yuan(language, after, locale.currency)
    return _crown(language, locale.currency)


def _dollar(language: str, trailing: bool, declared: str | None) -> tuple[str | None, bool]:
    """ "$" is the US dollar where English is written without naming another country."""
    if declared in (*DOLLARS.values(), "MXN", "TWD"):
        return declared, False
    plain = language in ("", "en", "en-us")
    return ("USD", False) if plain and not trailing else (None, True)


def _yen_or_yuan(language: str, after: str, declared: str | None) -> tuple[str | None, bool]:
    if declared in ("JPY", "CNY"):
        return declared, False
    if language.startswith("ja") or "時間" in after[:8]:
        return "JPY", False
    return ("CNY", False) if language.startswith("zh") else (None, True)


def _crown(language: str, declared: str | None) -> tuple[str | None, bool]:
    if declared in ("SEK", "NOK", "DKK", "ISK"):
        return declared, False
    by_language = {"sv": "SEK", "nb": "NOK", "nn": "NOK", "no": "NOK", "da": "DKK"}
    found = by_language.get(language.split("-")[0])
    return found, found is None


_DECLARES = re.compile(
    r"\b(?:prices?|rates?|amounts?|dollars?|currency|preise?|prix|billed|usd)\b", re.I
)
_CODES = re.compile(
    rf"(?<![A-Za-z])({_pattern(tuple(one for one in _CERTAIN if one != 'R'))})(?![A-Za-z])", re.I
)


@lru_cache(maxsize=2048)
def read_declared_currency(text: str) -> str | None:
    """The currency that a note gives to all prices under it, such as "All prices in EUR"."""
    lowered = text.lower()
    for country, code in DOLLARS.items():
        if re.search(rf"(?<!\w){re.escape(country)}[ -](?:dollars?|\$)", lowered):
            return code
    for name, code in _NAMES.items():
        if re.search(rf"\b{name}\b", lowered) and _DECLARES.search(text):
            return code
    codes = {_CERTAIN[match[1].upper()] for match in _CODES.finditer(text)}
    return codes.pop() if len(codes) == 1 and _DECLARES.search(text) else None


@lru_cache(maxsize=2048)
def read_currency(text: str) -> str | None:
    """A field that holds nothing but a currency: "USD", "€", "EUR (net)"."""
    match = _CODES.search(text)
    return _CERTAIN[match[1].upper()] if match else read_declared_currency(text)
