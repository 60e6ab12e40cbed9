"""Stock words, badges, schema.org states and free counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from evaluator.machine import Availability
from marketplace.catalog.reading.numbers import read_integer
from marketplace.catalog.text import bounded


@dataclass(frozen=True, slots=True)
class Stock:
    """State, free machines where a number is printed, and the words."""

    state: Availability = Availability.UNKNOWN
    quantity: int | None = None
    words: str = ""


UNSAID = Stock()
A = Availability
_PERIOD = r"\d{1,3}\s?(?:[-–]\s?\d{1,3}\s?)?(?:hours?|days?|weeks?|months?|tagen?|wochen?|jours?|semaines?|dni)"
_STATES: tuple[tuple[Availability, str], ...] = (
    (A.SOLD_OUT, r"(?:temporarily\s|currently\s)?(?:sold[\s-]?out|out[\s-]of[\s-]stock|unavailable|not\savailable"
                 r"|no\s(?:stock|capacity|longer\savailable)|discontinued|fully\sbooked|ausverkauft|nicht\sverfügbar"
                 r"|vergriffen|épuisé|indisponible|(?:en\s)?rupture(?:\sde\sstock)?|agotado|sin\s(?:stock|existencias)|esaurito"
                 r"|non\sdisponibile|esgotado|indisponível|niedostępn\w{1,3}|brak(?:\sw\smagazynie)?|uitverkocht|slutsåld|utsolgt|udsolgt|loppu"
                 r"|0\s(?:available|free|left|in\sstock)|none\s(?:available|left)|完売|在庫なし|売り切れ|缺货)"),
    (A.WAITLIST, r"(?:join\s(?:the\s|our\s)?)?wait(?:ing)?[\s-]?list(?:ed)?|notify\sme|get\snotified|warteliste"
                 r"|liste\sd['’]attente|join\squeue"),
    (A.PREORDER, r"pre[\s-]?orders?|pre[\s-]?sale|vorbestell\w{0,6}|précommande|reserve\snow|coming\ssoon"
                 r"|preventa|予約"),
    (A.LEAD_TIME, rf"(?:(?:available|ships?|delivery|deploys?|ready|setup|lieferbar|verfügbar|disponible|dostępn\w)"
                  rf"\s(?:in|within|after|from|sous|dans|za|time:?)\s(?:about\s|ca\.\s)?){_PERIOD}"
                  rf"|{_PERIOD}(?:\slead[\s-]time|\sdelivery)?(?=\W{{0,3}}$)"
                  rf"|(?:lead[\s-]time|lieferzeit|délai)\s?:?\s?(?:{_PERIOD})?|back[\s-]?order(?:ed)?|(?:available\s(?:from\s|in\s)?)?q[1-4]\s?(?:20)\d\d"
                  r"|available\s(?:from|on|as\sof)\s.{3,20}"),
    (A.LIMITED, r"(?:only|last|just|nur|noch)\s\d{1,3}(?:\s(?:left|remaining|available|units?|verfügbar|free|machines?|servers?|in\sstock))?"
                r"|\d{1,2}\s(?:left|remaining)|limited(?:\s(?:availability|stock|capacity|supply|quantity))?|low\s(?:stock|availability)"
                r"|few\s(?:left|remaining|available)|almost\s(?:gone|sold\sout)|selling\sfast|begrenzt|wenige\sverfügbar"
                r"|limitedavailability|stock\slimité|scarce|low"),
    (A.ON_REQUEST, r"(?:price\s|available\s|availability\s|preis\s)?(?:up)?on\s(?:request|demand\srequest|inquiry|enquiry)"
                   r"|(?:please\s)?(?:contact|ask|call|email)\s(?:us|sales|for\s.{3,30}|our\s.{3,20})|talk\sto\s(?:us|sales)"
                   r"|(?:request|get|ask\sfor)\s(?:a\s)?(?:quote|price|pricing|access)|enquire(?:\s.{2,20})?"
                   r"|auf\sanfrage|sur\s(?:demande|devis)|bajo\s(?:petición|consulta)|su\srichiesta|na\szapytanie"
                   r"|op\saanvraag|sob\sconsulta|a\sconsultar|by\sarrangement|ask|custom\spricing"),
    (A.AVAILABLE, r"(?:\d{1,5}\+?\s)?(?:in[\s-]?stock|available(?:\s(?:now|today|immediately|instantly))?|ready\s(?:now|to\s(?:deploy|rent))"
                  r"|instant(?:ly)?(?:\savailable|\sdeploy\w{0,5})?|immediate(?:ly)?|on\shand|free|online|active"
                  r"|sofort(?:\sverfügbar|\slieferbar)?|verfügbar|auf\slager|lieferbar|disponible(?:\simmédiatement)?|en\sstock"
                  r"|disponibile|disponível|em\sestoque|dostępn[yea]|beschikbaar|op\svoorraad|i\slager|tilgjengelig|high(?:\savailability)?|medium|在庫あり|有货)"),
)  # fmt: skip
_WHOLE = tuple(
    (state, re.compile(rf"^\W{{0,3}}(?:{words})(?:\W|$)", re.I)) for state, words in _STATES
)
_PLAIN_YES = {"yes": A.AVAILABLE, "true": A.AVAILABLE, "no": A.SOLD_OUT, "false": A.SOLD_OUT,
              "✓": A.AVAILABLE, "✔": A.AVAILABLE, "✗": A.SOLD_OUT, "✘": A.SOLD_OUT}  # fmt: skip
_SCHEMA = {
    "instock": A.AVAILABLE, "onlineonly": A.AVAILABLE, "instoreonly": A.ON_REQUEST,
    "limitedavailability": A.LIMITED, "outofstock": A.SOLD_OUT, "soldout": A.SOLD_OUT,
    "discontinued": A.SOLD_OUT, "preorder": A.PREORDER, "presale": A.PREORDER,
    "backorder": A.LEAD_TIME, "madetoorder": A.LEAD_TIME, "reserved": A.SOLD_OUT,
}  # fmt: skip
_LEFT = re.compile(
    r"(?<![\w.])(\d{1,5})\+?\s?(?:left|remaining|available|free|in[\s-]stock|units?|servers?|machines?|verfügbar)",
    re.I,
)
_ONLY = re.compile(r"\b(?:only|last|just|nur|noch)\s(\d{1,4})\b", re.I)
_LONGEST_BADGE = 48


def read_stock(text: str) -> Stock:
    """A badge such as "In stock" or "Only 2 left": the text has to begin with it and be short."""
    words = bounded(text)
    return _badge(words) if words and len(words) <= _LONGEST_BADGE else UNSAID


@lru_cache(maxsize=4096)
def _badge(words: str) -> Stock:
    for state, pattern in _WHOLE:
        if pattern.match(words) and not _is_other_subject(words):
            quantity = _quantity(words)
            return Stock(A.SOLD_OUT if quantity == 0 else state, quantity, words)
    return UNSAID


_OTHER_SUBJECT = re.compile(
    r"nv-?link|infiniband|\bgb\b|\bvcpu|support\b|trial|credit|egress|traffic|\bddos|cancel", re.I
)


def _is_other_subject(words: str) -> bool:
    """ "Free egress", "Available with InfiniBand" speak of something else than the machine."""
    return bool(_OTHER_SUBJECT.search(words))


def _quantity(words: str) -> int | None:
    match = _ONLY.search(words) or _LEFT.search(words)
    return int(match[1]) if match else None


def read_stock_field(value: str) -> Stock:
    """A cell under "Availability", "Stock" or "Free": states, yes and no, or a number of machines."""
    words = bounded(value)
    bare = words.lower().strip()
    number = read_integer(bare.rstrip("+"))
    if number is not None:
        return Stock(_state_of(number), max(0, number), words) if number >= 0 else UNSAID
    schema = re.sub(r"^https?://schema\.org/", "", bare).replace("_", "").replace("-", "")
    if schema.replace(" ", "") in _SCHEMA:
        return Stock(_SCHEMA[schema.replace(" ", "")], None, words)
    if bare in _PLAIN_YES:
        return Stock(_PLAIN_YES[bare], None, words)
    return read_stock(words)


def _state_of(free: int) -> Availability:
    if free == 0:
        return A.SOLD_OUT
    return A.LIMITED if free == 1 else A.AVAILABLE
