"""What a curator knows about one source: where its rows are and what its words mean.

A profile is stored as JSON. Without one a page is read as any other; every key narrows that:

rows           selector of the cards, the table rows or the tables: "article.plan", "table.prices"
path           keys down to the list in embedded or plain JSON: "props.pageProps.plans"
fields         attribute to selector below a row ("td:nth-child(2)", ".price", "a@href"), or to a
               key of a JSON object or a CSV column
labels         what a label of the page means: {"capacity": "quantity"}
basis, currency, unit   of every price that does not say it itself
expected_count how many listings the source has; fewer than half are not published
required       what at least half of the listings must say, else nothing is published
fingerprint    of the structure that the profile was made for; another one is not published
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from evaluator.prices import Basis, TimeUnit
from marketplace.catalog.offers import PriceContext
from marketplace.catalog.reading.labels import Attribute
from marketplace.catalog.selectors import InvalidSelector, to_xpath

ATTRIBUTES = {one.value: one for one in Attribute}
UNITS = {one.value: one for one in TimeUnit}
BASES = {one.value: one for one in Basis}
REQUIRED = (
    "gpu_model", "gpu_count", "vram_bytes_per_gpu", "region", "quotes", "vcpus", "ram_bytes",
    "local_storage_bytes",
)  # fmt: skip
MOST_KEYS, LONGEST_KEY = 60, 200


class InvalidProfile(ValueError):
    """One message for each mistake: key, what was read, what was expected."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(" ".join(messages))
        self.messages = messages


@dataclass(frozen=True, slots=True)
class Profile:
    """See the module. An empty text or mapping means that the page decides."""

    rows: str = ""
    path: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Attribute] = field(default_factory=dict)
    basis: Basis = Basis.UNKNOWN
    currency: str | None = None
    unit: TimeUnit | None = None
    expected_count: int | None = None
    required: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def context(self) -> PriceContext:
        """What holds for prices that do not say it themselves."""
        return PriceContext(self.currency, self.unit, self.basis)

    def as_json(self) -> dict[str, Any]:
        """The stored form, without what is not set."""
        plain: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        plain["labels"] = {label: one.value for label, one in self.labels.items()}
        plain["basis"] = "" if self.basis is Basis.UNKNOWN else self.basis.value
        plain["unit"] = self.unit.value if self.unit else ""
        plain["fields"], plain["required"] = dict(self.fields), list(self.required)
        return {name: value for name, value in plain.items() if value}


NO_PROFILE = Profile()


def read_profile(document: Any) -> Profile:
    """A stored profile. Raises InvalidProfile with every mistake in it."""
    if not isinstance(document, dict):
        raise InvalidProfile([f"profile: read {type(document).__name__}, expected an object."])
    messages = [said for name, value in document.items() for said in _mistakes(name, value)]
    if document.get("rows") and document.get("path"):
        messages.append("rows and path: both are set, expected one of them.")
    messages = messages or list(_bad_selectors(document))
    if messages:
        raise InvalidProfile(messages)
    return Profile(**{name: _MEANINGS.get(name, _same)(value) for name, value in document.items()})


def _same(value: Any) -> Any:
    return value


_MEANINGS: Mapping[str, Callable[[Any], Any]] = {
    "labels": lambda given: {name.lower().strip(): ATTRIBUTES[one] for name, one in given.items()},
    "basis": lambda given: BASES[given or "unknown"],
    "currency": lambda given: given or None,
    "unit": lambda given: UNITS[given] if given else None,
    "required": tuple,
}


# --- what may be wrong

Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_KEY and value.isprintable()


def _is_map(value: Any, known: Callable[[str], bool]) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_KEYS
        and all(_is_text(name) and _is_text(one) for name, one in value.items())
        and all(known(name) for name in value)
    )


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and 0 < value < 10_000_000)


def _is_required(value: Any) -> bool:
    return isinstance(value, list) and all(one in REQUIRED for one in value)


_ANY = ", ".join(ATTRIBUTES)
_CHECKS: Mapping[str, tuple[Check, str]] = {
    "rows": (_is_text, "a selector"),
    "path": (_is_text, "keys joined by dots"),
    "fields": (lambda given: _is_map(given, ATTRIBUTES.__contains__),
               f"an object from any of {_ANY} to a selector or key"),
    "labels": (lambda given: _is_map(given, str.isprintable)
               and all(one in ATTRIBUTES for one in given.values()),
               f"an object from a label to any of {_ANY}"),
    "basis": (lambda given: given == "" or given in BASES, f"one of {', '.join(BASES)}"),
    "currency": (lambda given: given in ("", None) or (_is_text(given) and len(given) == 3
                 and given.isalpha() and given.isupper()), "three letters such as USD"),
    "unit": (lambda given: given in ("", None) or given in UNITS, f"one of {', '.join(UNITS)}"),
    "expected_count": (_is_count, "a whole number above 0"),
    "required": (_is_required, f"a list of any of {', '.join(REQUIRED)}"),
    "fingerprint": (_is_text, "a text"),
}  # fmt: skip


def _mistakes(name: str, value: Any) -> Iterator[str]:
    if name not in _CHECKS:
        yield f"{name}: unknown key, expected one of {', '.join(_CHECKS)}."
        return
    is_right, expected = _CHECKS[name]
    try:
        right = is_right(value)
    except TypeError:
        # A list or an object where a word belongs cannot be looked up.
        right = False
    if not right:
        yield f"{name}: read {str(value)[:80]!r}, expected {expected}."


def _bad_selectors(document: Mapping[str, Any]) -> Iterator[str]:
    """Fields are selectors only where the rows are elements."""
    given = {"rows": document["rows"]} if document.get("rows") else {}
    if given:
        chosen = document.get("fields", {}).items()
        given |= {f"fields.{name}": selector for name, selector in chosen}
    for name, selector in given.items():
        try:
            if bare := selector.partition("@")[0]:
                to_xpath(bare)
        except InvalidSelector as invalid:
            yield f"{name}: {invalid}."
