"""Regions as catalogs write them: "Frankfurt, DE", "eu-central-1", "Oslo (Norway)"."""

from __future__ import annotations

import re

from marketplace.catalog.text import bounded

_CODES = frozenset(
    [
        "AD",
        "AE",
        "AF",
        "AG",
        "AL",
        "AM",
        "AO",
        "AR",
        "AT",
        "AU",
        "AZ",
        "BA",
        "BB",
        "BD",
        "BE",
        "BF",
        "BG",
        "BH",
        "BI",
        "BJ",
        "BN",
        "BO",
        "BR",
        "BS",
        "BT",
        "BW",
        "BY",
        "BZ",
        "CA",
        "CD",
        "CF",
        "CG",
        "CH",
        "CI",
        "CL",
        "CM",
        "CN",
        "CO",
        "CR",
        "CU",
        "CV",
        "CY",
        "CZ",
        "DE",
        "DJ",
        "DK",
        "DM",
        "DO",
        "DZ",
        "EC",
        "EE",
        "EG",
        "ER",
        "ES",
        "ET",
        "FI",
        "FJ",
        "FM",
        "FR",
        "GA",
        "GB",
        "GD",
        "GE",
        "GH",
        "GM",
        "GN",
        "GQ",
        "GR",
        "GT",
        "GW",
        "GY",
        "HK",
        "HN",
        "HR",
        "HT",
        "HU",
        "ID",
        "IE",
        "IL",
        "IN",
        "IQ",
        "IR",
        "IS",
        "IT",
        "JM",
        "JO",
        "JP",
        "KE",
        "KG",
        "KH",
        "KI",
        "KM",
        "KN",
        "KP",
        "KR",
        "KW",
        "KZ",
        "LA",
        "LB",
        "LC",
        "LI",
        "LK",
        "LR",
        "LS",
        "LT",
        "LU",
        "LV",
        "LY",
        "MA",
        "MC",
        "MD",
        "ME",
        "MG",
        "MH",
        "MK",
        "ML",
        "MM",
        "MN",
        "MO",
        "MR",
        "MT",
        "MU",
        "MV",
        "MW",
        "MX",
        "MY",
        "MZ",
        "NA",
        "NE",
        "NG",
        "NI",
        "NL",
        "NO",
        "NP",
        "NR",
        "NZ",
        "OM",
        "PA",
        "PE",
        "PG",
        "PH",
        "PK",
        "PL",
        "PR",
        "PS",
        "PT",
        "PW",
        "PY",
        "QA",
        "RO",
        "RS",
        "RU",
        "RW",
        "SA",
        "SB",
        "SC",
        "SD",
        "SE",
        "SG",
        "SI",
        "SK",
        "SL",
        "SM",
        "SN",
        "SO",
        "SR",
        "SS",
        "ST",
        "SV",
        "SY",
        "SZ",
        "TD",
        "TG",
        "TH",
        "TJ",
        "TL",
        "TM",
        "TN",
        "TO",
        "TR",
        "TT",
        "TV",
        "TW",
        "TZ",
        "UA",
        "UG",
        "UK",
        "US",
        "UY",
        "UZ",
        "VA",
        "VC",
        "VE",
        "VN",
        "VU",
        "WS",
        "YE",
        "ZA",
        "ZM",
        "ZW",
        "EU",
    ]
)
"""ISO 3166-1 alpha-2, with UK and EU, which catalogs use as well."""
_STATES = frozenset(
    [
        "AL",
        "AK",
        "AZ",
        "AR",
        "CA",
        "CO",
        "CT",
        "DC",
        "DE",
        "FL",
        "GA",
        "HI",
        "IA",
        "ID",
        "IL",
        "IN",
        "KS",
        "KY",
        "LA",
        "MA",
        "MD",
        "ME",
        "MI",
        "MN",
        "MO",
        "MS",
        "MT",
        "NC",
        "ND",
        "NE",
        "NH",
        "NJ",
        "NM",
        "NV",
        "NY",
        "OH",
        "OK",
        "OR",
        "PA",
        "RI",
        "SC",
        "SD",
        "TN",
        "TX",
        "UT",
        "VA",
        "VT",
        "WA",
        "WI",
        "WV",
        "WY",
        "ON",
        "QC",
        "BC",
        "AB",
        "NSW",
        "VIC",
        "QLD",
    ]
)
_COUNTRIES = frozenset(
    ["germany", "france", "norway", "sweden", "finland", "denmark", "iceland", "netherlands", "belgium", "austria", "switzerland", "italy", "spain", "portugal", "poland", "czechia", "ireland", "england", "scotland", "estonia", "latvia", "lithuania", "greece", "romania", "bulgaria", "hungary", "croatia", "slovenia", "slovakia", "luxembourg", "ukraine", "turkey", "israel", "egypt", "kenya", "nigeria", "morocco", "india", "japan", "korea", "china", "taiwan", "singapore", "malaysia", "indonesia", "thailand", "vietnam", "philippines", "australia", "canada", "mexico", "brazil", "chile", "argentina", "colombia", "peru", "usa", "uae", "qatar", "bahrain", "kuwait", "oman", "deutschland", "schweiz", "österreich", "frankreich", "polska", "suisse", "norge", "sverige", "texas", "virginia", "oregon", "california", "ohio", "iowa", "nevada", "arizona", "georgia", "utah", "washington", "quebec", "ontario"]
) | {
    "united states", "united kingdom", "saudi arabia", "south africa", "south korea", "new zealand",
    "hong kong", "czech republic", "united arab emirates", "new york", "north carolina", "new jersey",
}  # fmt: skip
_CITIES = frozenset(
    ["frankfurt", "berlin", "munich", "düsseldorf", "hamburg", "nuremberg", "falkenstein", "paris", "marseille", "strasbourg", "gravelines", "london", "slough", "manchester", "amsterdam", "rotterdam", "brussels", "zurich", "zürich", "geneva", "vienna", "milan", "rome", "arezzo", "madrid", "barcelona", "lisbon", "warsaw", "prague", "helsinki", "oslo", "stockholm", "copenhagen", "reykjavik", "dublin", "tallinn", "riga", "vilnius", "athens", "sofia", "bucharest", "budapest", "istanbul", "dubai", "riyadh", "jeddah", "doha", "manama", "mumbai", "delhi", "noida", "hyderabad", "bangalore", "bengaluru", "chennai", "pune", "singapore", "tokyo", "osaka", "seoul", "taipei", "jakarta", "bangkok", "sydney", "melbourne", "auckland", "toronto", "montreal", "montréal", "vancouver", "ashburn", "dallas", "chicago", "seattle", "phoenix", "atlanta", "miami", "denver", "houston", "portland", "johannesburg", "nairobi", "lagos", "cairo", "stavanger", "luleå", "bergen", "bordeaux", "lyon", "wroclaw", "kraków", "krakow"]
) | {
    "los angeles", "san jose", "new york", "santa clara", "las vegas", "salt lake city", "abu dhabi",
    "são paulo", "sao paulo", "tel aviv", "mexico city", "hong kong", "kansas city",
}  # fmt: skip

_CITY_COUNTRY = re.compile(
    r"(?P<city>[A-ZÀ-ŽĀ-ž][\w.’' -]{1,38}?)\s?[,/]\s?(?P<rest>[A-Z]{2,3}\b|[A-Z][A-Za-z .]{2,28})(?:,\s?[A-Z][A-Za-z ]{1,24})?"
)
_BRACKETED = re.compile(
    r"(?P<city>[A-ZÀ-Ž][\w.’' -]{1,38}?)\s?\((?P<rest>[A-Za-z][A-Za-z .]{1,28})\)"
)
_ZONE_CODE = re.compile(
    r"(?:[a-z]{2}|us|eu|ap|asia|europe|canada|northamerica|me|sa|af|uk|global)"
    r"(?:-(?:gov|north|south|east|west|central|[a-z]{2,12})){0,3}-?\d{1,2}[a-z]?|[A-Z]{2,4}-?\d{1,2}|[a-z]{3}\d{1,2}",
)
_LABEL = re.compile(
    r"^\s*(?:regions?|locations?|data\s?cent(?:er|re)s?|dc|sites?|standorte?|lieu|hosted\sin|located\sin"
    r"|available\sin|📍|🌍|region)\s?[:\s–-]\s*(?P<place>\S.{1,80})$", re.I,
)  # fmt: skip


def read_place(text: str) -> str | None:
    """A line or badge that is a place and nothing else, or says "Region: ...". None otherwise."""
    words = bounded(text).strip(" .·|•📍🌍🇩🇪🇳🇴🇺🇸")
    if not words or len(words) > 100:
        return None
    labelled = _LABEL.match(words)
    if labelled:
        place = labelled["place"].strip()
        return place if _is_place(place) or ":" in words else None
    return words if _is_place(words) else None


def _is_place(words: str) -> bool:
    lowered = words.lower()
    if lowered in _CITIES or lowered in _COUNTRIES:
        return True
    for pattern in (_CITY_COUNTRY, _BRACKETED):
        match = pattern.fullmatch(words)
        if match:
            return _is_country(match["rest"]) or match["city"].lower() in _CITIES
    return bool(_ZONE_CODE.fullmatch(words)) and not _looks_like_hardware(words)


def _is_country(words: str) -> bool:
    return words in _CODES or words in _STATES or words.lower() in _COUNTRIES


def _looks_like_hardware(words: str) -> bool:
    return bool(
        re.match(r"(?:ddr|sxm|gen|pci|epyc|xeon|nv|gpu|cpu|rtx|hbm|mi|gh|gb|ip)\d?", words, re.I)
    ) or (
        bool(re.fullmatch(r"[A-Z]{1,4}-?\d{1,3}", words))
        and words[0] in "ABHLTV"
        and words[1:2].isdigit()
    )


def read_place_field(value: str) -> str:
    """A cell under "Region": whatever it says, unless it says nothing."""
    words = bounded(value)[:120]
    return (
        "" if words.lower() in ("", "-", "–", "—", "n/a", "null", "none", "any", "tbd") else words
    )
