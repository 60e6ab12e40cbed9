"""What a price buys: time unit, machine or GPU, purchase model and term, tax, "from", tiers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from evaluator.prices import Basis, Purchase, TimeUnit

_UNIT_WORDS: dict[TimeUnit, str] = {
    TimeUnit.SECOND: r"seconds?|secs?|(?<=/)s|(?<=/\s)s|sekunden?|secondes?|segundos?|secondo|秒",
    TimeUnit.HOUR: r"hours?|hrs?|h|hourly|hur|std|stunden?|stündlich|heures?|horas?|ora|ore"
    r"|uur|uren|godz(?:in[aęy])?|timmar?|timme|timer?|saat|час(?:а|ов)?|hodin[auy]?|óra|tunti|oră|ώρα"
    r"|時間|小时|小時|시간|ساعة",
    TimeUnit.DAY: r"days?|daily|(?<=/)d|tage?|täglich|jours?|d[ií]as?|giorn[oi]|dzień|dni|dag(?:en)?"
    r"|gün|день|日|天|يوم",
    TimeUnit.WEEK: r"weeks?|weekly|wk|wochen?|semaines?|semanas?|settiman[ae]|tydzień|weken|week|週|周",
    TimeUnit.MONTH: r"months?|monthly|pcm|mo|mth|mon|monate?|monatlich|mtl|mois|mes(?:es)?|mese|mesi"
    r"|mies(?:iąc|ięcznie)?|maand(?:en)?|måneder|måned|månad|mån|kk|kuukausi|měsíc[eů]?|hónap|maand|lună|m[eê]s|ay|месяц|мес"
    r"|ヶ月|か月|月額|月|달|شهر",
    TimeUnit.TERM: r"years?|yearly|yr|annum|annually|annual|jahre?|jährlich|(?<=/)an|(?<=par\s)an|ans|année|años?|anno|rok"
    r"|年",
}
_CONNECT = r"(?:/|per|an?|each|every|pro|je|par|por|za|al(?:la)?|à\s?l['’]|la|by\sthe|в|毎|每|the)"
_ALL_UNITS = "|".join(_UNIT_WORDS.values())
_CJK = r"[時間小时日天週周月年秒시달ヶか]"
_UNIT = re.compile(
    rf"(?<!\d)(?<!\d )(?<!\d-)(?<![a-zà-ž])(?:{_ALL_UNITS})(?![a-zà-ž])|(?<=gpu)h(?![a-z])|{_CJK}{{1,2}}",
    re.I,
)
_ONE_UNIT = re.compile(rf"(?:/|per)\s?1\s(?P<unit>{_ALL_UNITS})(?![a-z])", re.I)
_JOINED_UNIT = re.compile(rf"^\s*(?:{_CONNECT}\s?)?(?P<unit>{_ALL_UNITS})(?![a-zà-ž])", re.I)
_MINUTE = re.compile(r"(?<![a-z\d])(?<!\d )(?:minutes?|mins?)(?![a-z])", re.I)

_GPU_WORDS = (
    r"gpus?|cards?|accelerators?|devices?|chips?|karten?|grafikkarten?|cartes?|tarjetas?|gcds?"
)
_MACHINE_WORDS = (
    r"machines?|servers?|nodes?|instances?|vms?|systems?|box(?:es)?|hosts?|pods?|trays?|racks?"
    r"|bare[- ]metal|maschine|knoten|serveurs?|servidor(?:es)?|instanz(?:en)?|unit|configuration"
    r"|nœuds?|nodos?|nodi|máquinas?|macchin[ae]|maszyn[aęy]|serwer|хост|сервер"
)
_JOIN = r"(?:/|\bper\b|\bpro\b|\bje\b|\bpar\b|\bpor\b|\bfor\sthe\b|\bza\b|\beach\b|\bevery\b|\bwhole\b|\bprice_per\b|\bна\b|\bза\b|\bund\b|\band\b|\bet\b|\by\b|\be\b|\ben\b|\bi\b)"
_PER_GPU = re.compile(
    rf"{_JOIN}\s?(?:1\s|single\s|the\s|one\s|physical\s)?(?:{_GPU_WORDS})(?![a-z])"
    rf"|(?<![a-z\d])(?:{_GPU_WORDS})(?:[-\s/·]{{1,2}})?(?:hours?|hrs?|h|months?|mo|std|stunde)(?![a-z])"
    rf"|\bgpu(?:-|\s)?(?:price|rate)\b|(?:/|\bper\b)\s?gpu|\beach\s(?:{_GPU_WORDS})\b",
    re.I,
)
_PER_MACHINE = re.compile(
    rf"{_JOIN}\s?(?:1\s|whole\s|entire\s|full\s|complete\s|dedicated\s|the\s|\d{{1,2}}[-\s]?gpu\s)?"
    rf"(?:{_MACHINE_WORDS})(?![a-z])"
    rf"|(?<![a-z\d])(?:machine|server|node|instance|vm|system|host)(?:[-\s/]{{1,2}})"
    rf"(?:hours?|hrs?|h|months?|mo|price|rate)(?![a-z])"
    r"|\b(?:whole|entire|full|complete)\s(?:machine|server|node|system|box)\b"
    r"|\btotal\b(?!\s*(?:vram|memory|gpu))|\bfor\s(?:all\s)?(?:the\s)?\d{1,2}\s?(?:x\s)?gpus\b|\ball\s\d{1,2}\sgpus\b",
    re.I,
)
_PER_NODE = re.compile(r"(?:/|\bper\b)\s?(?:node|machine|server|host)(?![a-z])", re.I)

_SPOT = re.compile(
    r"\b(?:spot|interrupti?[bi]le|pre-?emptible|pre-?emptive|bid|auction|low[- ]priority)\b", re.I
)
_ON_DEMAND = re.compile(
    r"\bon[- ]?demand\b|\bpay[- ]?as[- ]?you[- ]?go\b|\bpayg\b|\bno (?:commitment|contract)\b"
    r"|\bflexible\b|\bauf abruf\b|\bà la demande\b", re.I,
)  # fmt: skip
_RESERVED = re.compile(
    r"\breserv(?:ed|ation|ations|e|iert)\b|\bcommit(?:ment|ted)?\b|\bcontract\b|\bsavings?[- ]plan\b"
    r"|\blong[- ]term\b|\bengagement\b|\blaufzeit\b|\bmindestlaufzeit\b|\bprepaid\b|\bterm\b", re.I,
)  # fmt: skip
_TERM = re.compile(
    r"(?<![\d.,])(?P<count>\d{1,3})[-\s+]{0,2}(?P<unit>months?|mos?|monate?n?|mois|meses|mesi|mies\w{0,8}"
    r"|years?|yrs?|y|jahre?n?|ans?|años?|weeks?|wochen?|days?|tage?)(?![a-z])"
    r"|(?P<word>\bannual(?:ly)?|\byearly|\bquarterly|\bper\squarter|/\s?quarter|\bbi-?weekly|\bfortnight(?:ly)?|\bone[- ]year|\bthree[- ]year|\bsix[- ]month)\b",
    re.I,
)
_TERM_WORDS = {"quarterly": "3 months", "per-quarter": "3 months", "/quarter": "3 months",
               "biweekly": "2 weeks", "bi-weekly": "2 weeks", "fortnight": "2 weeks",
               "fortnightly": "2 weeks", "/-quarter": "3 months", "annual": "1 year", "annually": "1 year", "yearly": "1 year", "one-year": "1 year",
               "three-year": "3 years", "six-month": "6 months"}  # fmt: skip

_FROM = re.compile(
    r"\b(?:from|starting(?:\s(?:at|from))?|starts\s(?:at|from)|as\slow\sas|ab|à\spartir\sde|dès|desde"
    r"|a\spartire\sda|od|vanaf|från|fra|minimum|min\.|at\sleast|low\sprice)\s*:?\s*$", re.I,
)  # fmt: skip
_FROM_LABEL = re.compile(r"\b(?:from|starting|low(?:est)?|min(?:imum)?)\b", re.I)
_CAP = re.compile(
    r"(?:never\smore\sthan|no\smore\sthan|capped\s(?:at|to)|cap(?:\sof|:)?|max(?:imum|\.)?(?:\sof|:)?"
    r"|at\smost|up\sto(?:\sa\smaximum\sof)?|höchstens|maximal|plafonné\sà|limited\sto)\s*:?\s*$", re.I,
)  # fmt: skip
_DERIVED = re.compile(
    r"(?:≈|~|∼|≙|=|\bapprox(?:\.|imately)?|\babout|\baround|\bca\.|\bcirca|\benv\.|\bequals?"
    r"|\bequivalent(?:\sto)?|\beffective(?:ly)?|\bi\.e\.|\bor\sjust|\bthat\sis|\bworks\sout\s(?:at|to))"
    r"\s*:?\s*$", re.I,
)  # fmt: skip
_OLD = re.compile(
    r"(?:\bwas|\bwere|\blist(?:\sprice)?|\bregular(?:ly)?|\binstead\sof|\bstatt|\bau\slieu\sde|\bbefore"
    r"|\bold\sprice|\boriginally|\brrp|\bmsrp|\bantes|\bsave|\bsaving|\bdiscount(?:\sof)?)"
    r"\s*:?\s*$", re.I,
)  # fmt: skip
_NOT_A_RATE_BEFORE = re.compile(
    r"\b(?:set-?up|one-?off|one-?time|deposit|einrichtung|activation|install(?:ation)?|credits?|earn"
    r"|refer|bonus|save|cashback|minimum\s(?:top-?up|balance|spend)|top-?up|egress|ingress|traffic"
    r"|bandwidth|storage|backup|snapshot|support|licen[cs]e|ip\s?v?4?|fee|gutschrift|kaution)"
    r"(?:\s[\w-]{1,12}){0,3}\s*:?\s*$", re.I,
)  # fmt: skip
_NOT_A_RATE_AFTER = re.compile(
    r"^\s*(?:set-?up|one-?off|one-?time|deposit|credits?\b|bonus|off\b|discount|free\scredit|einrichtung"
    r"|(?:/|per)\s?(?:gb|tb|gib|tib|ip|user|seat|request|image|token|1?m(?:illion)?\s?tokens?|1k|core"
    r"|vcpu|mbps|gbps)\b)", re.I,
)  # fmt: skip
_TIER = re.compile(
    r"\bfirst\s\d|\bthen\b|\bintro(?:ductory)?\b|\btrial\srate|\bthereafter\b|\bafter\s(?:the\s)?(?:first\s)?\d|\bafterwards\b|\bbeyond\b"
    r"|\bup\sto\s\d{1,5}\s?(?:h|hours?|hrs?)\b|\bdanach\b|\bpuis\b|\bernach\b|\bfor\sthe\sfirst\b"
    r"|\bover\s\d{1,5}\s?(?:h|hours?)\b", re.I,
)  # fmt: skip
_TAX = (
    r"(?:vat|tax(?:es)?|gst|mwst\.?|ust\.?|iva|tva|btw|moms|hst|sales\stax|mehrwertsteuer|nds|kdv)"
)
_TAX_IN = re.compile(
    rf"\b(?:incl(?:\.|uding|usive(?:\sof)?|udes?)?|inkl\.?|with|inc\.?|einschl(?:\.|ießlich)?|mit|con|avec"
    rf"|plus\sinclu)\s?(?:of\s)?(?:\d{{1,2}}(?:[.,]\d)?\s?%\s?)?{_TAX}|\bttc\b|\bbrutto\b|\bgross\b"
    rf"|{_TAX}\s(?:is\s)?incl", re.I,
)  # fmt: skip
_TAX_OUT = re.compile(
    rf"\b(?:excl(?:\.|uding|usive|udes?)?|ex\.?|exkl\.?|zzgl\.?|plus|without|ohne|net\sof|sans|before)\s?"
    rf"(?:\d{{1,2}}(?:[.,]\d)?\s?%\s?)?{_TAX}|\bht\b|\bnetto\b|\+\s?{_TAX}", re.I,
)  # fmt: skip
_CONFIGURED = re.compile(
    r"\b(?:configur\w{1,10}|selected\soptions?|chosen\soptions?|your\sselection|sum\sof\soptions|as\sconfigured"
    r"|options?\stotal|base\sprice|\badd-?ons?)\b", re.I,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tenure:
    """How a price is bought. `stated` is False where no word says so and on-demand is meant."""

    purchase: Purchase
    term: str = ""
    stated: bool = True


def read_unit(text: str) -> TimeUnit | None:
    """The first time unit of a rate's words: "/GPU/hr", "per month", "Std.", "hourly"."""
    one = _ONE_UNIT.search(text)
    match = _UNIT.search(text)
    if one and (match is None or one.start() <= match.start()):
        return _unit_of(one["unit"])
    return _unit_of(match[0]) if match else None


def read_joined_unit(text: str) -> TimeUnit | None:
    """Only a unit that follows at once: "$2.49/hr", not "$2.49 if rented for a month"."""
    match = _JOINED_UNIT.match(text)
    return _unit_of(match["unit"]) if match else None


_LETTERS = {"s": TimeUnit.SECOND, "d": TimeUnit.DAY, "an": TimeUnit.TERM}


def _unit_of(word: str) -> TimeUnit | None:
    if word.lower() in _LETTERS:
        return _LETTERS[word.lower()]
    for unit, words in _UNIT_WORDS.items():
        if re.fullmatch(words, word, re.I):
            return unit
    return None


def per_minute(text: str) -> bool:
    """A minute is no unit of ours: the amount is turned into an hour's."""
    return bool(_MINUTE.search(text)) and read_unit(text) is None


def read_basis(text: str) -> Basis:
    """GPU or machine where a word says so. The nearer of two wins: "/GPU-hr, whole nodes only"."""
    gpu, machine = _PER_GPU.search(text), _PER_MACHINE.search(text)
    if gpu and (machine is None or gpu.start() <= machine.start()):
        return Basis.GPU
    return Basis.MACHINE if machine else Basis.UNKNOWN


def says_per_node(text: str) -> bool:
    return bool(_PER_NODE.search(text))


def read_tenure(text: str) -> Tenure:
    """Spot, reserved with its term, or on-demand. A bare "1 year" names a reservation."""
    if _SPOT.search(text):
        return Tenure(Purchase.SPOT)
    term = read_term(text)
    if _ON_DEMAND.search(text):
        return Tenure(Purchase.ON_DEMAND)
    if _RESERVED.search(text):
        return Tenure(Purchase.RESERVED, term)
    return Tenure(Purchase.ON_DEMAND, term, stated=False)


def read_term(text: str) -> str:
    """ "12-month", "1 yr", "annual" as "12 months", "1 year"; empty when there is none."""
    match = _TERM.search(text)
    if match is None:
        return ""
    if match["word"]:
        return _TERM_WORDS[match["word"].lower().replace(" ", "-")]
    count, letter = int(match["count"]), match["unit"][0].lower()
    unit = {"m": "month", "y": "year", "j": "year", "a": "year", "w": "week", "s": "week"}.get(
        letter, "day"
    )
    return f"{count} {unit}" + ("" if count == 1 else "s")


def is_from(before: str) -> bool:
    return bool(_FROM.search(before[-40:]))


def says_from(label: str) -> bool:
    return bool(_FROM_LABEL.search(label))


def is_cap(before: str) -> bool:
    return bool(_CAP.search(before[-60:]))


def is_derived(before: str) -> bool:
    return bool(_DERIVED.search(before[-60:]))


def is_old(before: str) -> bool:
    return bool(_OLD.search(before[-40:]))


def is_no_rate(before: str, after: str) -> bool:
    """Set-up fees, deposits, credits, prices of storage or tokens: money, but no rent."""
    return bool(_NOT_A_RATE_BEFORE.search(before[-60:]) or _NOT_A_RATE_AFTER.search(after[:40]))


def is_tiered(text: str) -> bool:
    return bool(_TIER.search(text))


def is_configured(text: str) -> bool:
    """The sum of chosen options: a lowest price, like "from"."""
    return bool(_CONFIGURED.search(text))


def includes_tax(text: str) -> bool | None:
    """True or False where a word says so, else None."""
    if _TAX_OUT.search(text):
        return False
    return True if _TAX_IN.search(text) else None


MINUTES_PER_HOUR = Decimal(60)
