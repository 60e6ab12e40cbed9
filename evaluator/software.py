"""Which driver, CUDA, framework and card go together, from the dated tables of data/software.toml.

Only a minimum that a table states makes a fail; what no table speaks of stays unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from evaluator.checklist import Asked, HostItem, HostWord, weakest
from evaluator.facts import Grade
from evaluator.jobs import Workload
from evaluator.machine import Machine

Version = tuple[int, ...]
TRAINER = "pytorch"
"""Every training stack that is named here stands on it."""


def version_of(text: str | None) -> Version:
    """Numbers of a version in order: (570, 26) for "570.26". Empty where none can be read."""
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def reaches(have: Version, need: Version) -> bool:
    """Compared as far as both are stated: branch 570 reaches 570.26."""
    common = min(len(have), len(need))
    return have[:common] >= need[:common]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. Versions as tuples; empty is not stated."""

    name: str = ""
    since: Version = ()
    cuda: Version = ()
    driver: Version = ()
    capability: Version = ()
    native: Version = ()
    engines: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    date: str = ""


WORDS = frozenset({"name", "source", "date", "engines"})


@cache
def tables() -> Mapping[str, tuple[Row, ...]]:
    """Every table of the file by its name, rows in file order."""
    text = files("evaluator").joinpath("data/software.toml").read_text("utf-8")
    return {name: tuple(map(_row, rows)) for name, rows in tomllib.loads(text).items()}


def _row(entry: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {
        key: value if key in WORDS else version_of(value) for key, value in entry.items()
    }
    return Row(**values)


def releases_of(engine: str) -> tuple[Row, ...]:
    """Newest first. Empty for an engine that no table speaks of."""
    return tuple(row for row in tables()["engine"] if row.name == engine.lower())


def release_of(engine: str, version: str) -> Row | None:
    """The row that a stated version falls under; the newest where none is stated."""
    stated = version_of(version)
    rows = releases_of(engine)
    return next((row for row in rows if not stated or reaches(stated, row.since)), None)


def lowest_driver(cuda: Version) -> Version:
    """The driver from which on a CUDA release runs at all. Empty where no table says."""
    rows = tables()["family"]
    return next((row.driver for row in rows if cuda[:1] == row.cuda), ())


def own_driver(cuda: Version) -> Version:
    """The driver that came with a toolkit; that of its major release where it is not listed."""
    rows = tables()["toolkit"]
    listed = next((row.driver for row in rows if cuda[:2] == row.cuda), ())
    return listed or lowest_driver(cuda)


def first_cuda(capability: Version) -> Version:
    """The CUDA release that first knew a card. Empty where every one in use does."""
    rows = [row for row in tables()["card"] if reaches(capability, row.capability)]
    newest = max(rows, key=lambda row: row.capability, default=Row())
    return newest.cuda if newest.capability[:1] == capability[:1] else ()


def said(version: Version) -> str:
    return ".".join(map(str, version))


def driver_said(version: Version) -> str:
    """NVIDIA writes the later parts of a driver with two digits: 580.65.06."""
    return ".".join(f"{part:02d}" for part in version)


# --- what a workload runs on


@dataclass(frozen=True, slots=True)
class Stack:
    """The framework or engine of a workload and its version as stated, "" where it is not."""

    engine: str
    version: str = ""

    @property
    def words(self) -> str:
        return f"{self.engine} {self.version}".strip()


def stack_of(workload: Workload) -> Stack:
    job = workload.serving
    return _stack(job.engine, job.engine_version) if job else _stack(TRAINER, "")


@lru_cache(maxsize=1024)
def _stack(engine: str, version: str) -> Stack:
    return Stack(engine.lower(), version)


def formats_of(workload: Workload) -> tuple[str, ...]:
    """Number formats that the job computes with or keeps: weights, then the cache."""
    return _formats(workload.weights_format, workload.serving.kv_dtype if workload.serving else "")


@lru_cache(maxsize=1024)
def _formats(weights: str, cache_format: str) -> tuple[str, ...]:
    held = "cache in fp8" if cache_format.startswith("fp8") else cache_format
    found = (weights.partition(":")[0], held)
    return tuple(dict.fromkeys(name for name in found if name and name != "auto"))


Capabilities = tuple[Version, ...]


def capabilities_of(machine: Machine) -> Capabilities:
    """Of every card that the label may mean; an empty one where none is published."""
    return _capabilities(tuple(spec.compute_capability for spec in machine.specs))


@lru_cache(maxsize=1024)
def _capabilities(texts: tuple[str | None, ...]) -> Capabilities:
    return tuple(map(version_of, texts))


def software_items(workload: Workload, machine: Machine) -> Iterator[HostItem]:
    """Driver and CUDA, the card against the engine, and the number formats."""
    stack, cards = stack_of(workload), capabilities_of(machine)
    grade = machine.gpu_model.grade
    facts = (machine.driver_version, machine.cuda_version, machine.nccl_version)
    yield driver_item(tuple(fact.value or "" for fact in facts), weakest(*facts), stack, cards)
    yield card_item(cards, stack, grade)
    yield format_item(cards, stack, formats_of(workload), grade)


DRIVER = Asked(
    "driver, CUDA, NCCL",
    ("driver_version", "cuda_version", "nccl_version"),
    "Ask for `nvidia-smi` (`rocm-smi` on AMD) and for the NCCL version of the image.",
)


@lru_cache(maxsize=4096)
def driver_item(
    versions: tuple[str, ...], grade: Grade, stack: Stack, cards: Capabilities
) -> HostItem:
    """Driver, CUDA and NCCL as stated against what the card, the image and the engine need."""
    driver, cuda = version_of(versions[0]), version_of(versions[1])
    if any(cards) and not all(cards):
        return DRIVER.unknown("The label may mean cards of which no capability is published.")
    if cards and not any(cards):
        return DRIVER.unknown("The tables speak of CUDA, and these cards are of another maker.")
    needs = list(_driver_needs(cuda, stack, cards))
    needed = max((need for need, _ in needs), default=())
    if not driver:
        wanted = f" {driver_said(needed)} or newer is needed." if needed else ""
        return DRIVER.unknown(f"The driver is not stated.{wanted}")
    missed = [(need, why) for need, why in needs if not reaches(driver, need)]
    if missed:
        need, why = max(missed)
        wanted = driver_said(need)
        remedy = f"Have driver {wanted} or newer installed, or use an image for an older CUDA."
        return DRIVER.fails(f"Driver {versions[0]}, and {why} needs {wanted}.", grade, remedy)
    absent = [name for name, text in zip(("CUDA", "NCCL"), versions[1:], strict=True) if not text]
    if absent:
        return DRIVER.unknown(f"Driver {versions[0]} will do; {absent[0]} is not stated.", grade)
    return DRIVER.passes(f"{_named(versions)} go together{_by_family(driver, cuda)}.", grade)


def _named(versions: tuple[str, ...]) -> str:
    names = ("driver", "CUDA", "NCCL")
    parts = [f"{name} {text}" for name, text in zip(names, versions, strict=True)]
    words = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return words[0].upper() + words[1:]


def _by_family(driver: Version, cuda: Version) -> str:
    """Below the toolkit's own driver a release runs with some of its features left out."""
    own = own_driver(cuda)
    return "" if not own or reaches(driver, own) else ", by minor version compatibility"


def _driver_needs(
    cuda: Version, stack: Stack, cards: Capabilities
) -> Iterator[tuple[Version, str]]:
    if need := lowest_driver(cuda):
        yield need, f"CUDA {said(cuda)}"
    release = release_of(stack.engine, stack.version) if stack.version else None
    if release and (need := lowest_driver(release.cuda)):
        yield need, f"{stack.words}, built for CUDA {said(release.cuda)},"
    first = min((first_cuda(card) for card in cards), default=())
    if first and (need := own_driver(first)):
        yield need, "the card"


ASK_CARD = "Ask for `nvidia-smi -L`, or `rocm-smi` on AMD."
CARD = Asked("GPU against the engine", ("gpu_model",), ASK_CARD)


@lru_cache(maxsize=4096)
def card_item(cards: Capabilities, stack: Stack, grade: Grade) -> HostItem:
    """Compute capability against the lowest that the engine's releases take."""
    rows = releases_of(stack.engine)
    if not cards or not all(cards):
        return CARD.unknown("The compute capability of the card is not published.")
    if not rows:
        return CARD.unknown(f"No table says which GPUs {stack.engine} takes.", grade)
    row = release_of(stack.engine, stack.version) or rows[-1]
    low = min(cards)
    if reaches(low, row.capability):
        words = f"Compute capability {said(low)}; {stack.engine} takes {said(row.capability)} up."
        return CARD.passes(words, grade)
    words = f"Compute capability {said(low)}, and {stack.engine} asks for {said(row.capability)}."
    if reaches(max(cards), row.capability):
        return CARD.unknown(f"{words} The label may mean another card.", grade)
    older = [one for one in rows if reaches(low, one.capability)]
    if older and not stack.version:
        pin = f"Pin {stack.engine} below {said(row.since)}, which still takes the card."
        return CARD.unknown(words, grade, pin)
    remedy = f"Take a card of {said(row.capability)} or newer, or another engine."
    return CARD.fails(words, grade, remedy)


FORMAT = Asked("number formats", ("gpu_model",), ASK_CARD)


@lru_cache(maxsize=4096)
def format_item(
    cards: Capabilities, stack: Stack, formats: tuple[str, ...], grade: Grade
) -> HostItem:
    """Whether the tensor cores compute in the job's formats, or the engine unpacks them."""
    if not cards or not all(cards):
        return FORMAT.unknown("The compute capability of the card is not published.")
    found = [_format(cards, stack, row, grade) for row in _rows_of(formats)]
    if not found:
        return FORMAT.passes(f"{', '.join(formats)} need no special support.", grade)
    order = (WORST_LAST[item.word] for item in found)
    return max(zip(order, found, strict=True), key=lambda pair: pair[0])[1]


WORST_LAST = {HostWord.PASS: 0, HostWord.UNKNOWN: 1, HostWord.FAIL: 2}


def _rows_of(formats: Iterable[str]) -> list[Row]:
    rows = {row.name: row for row in tables()["format"]}
    return [rows[name] for name in formats if name in rows]


def _format(cards: Capabilities, stack: Stack, row: Row, grade: Grade) -> HostItem:
    low, taken = min(cards), version_of(row.engines.get(stack.engine))
    if row.native and reaches(low, row.native):
        return FORMAT.passes(f"{row.name} on tensor cores of capability {said(low)}.", grade)
    if taken and reaches(low, taken):
        words = f"{stack.engine} unpacks {row.name} on the way: it saves memory, not arithmetic."
        return FORMAT.passes(words, grade)
    asked = f"{row.name} asks for capability {said(taken or row.native)}, the card has {said(low)}."
    if taken and not reaches(max(cards), taken):
        remedy = f"Take 16-bit weights, or a card of capability {said(taken)} or newer."
        return FORMAT.fails(asked, grade, remedy)
    remedy = "Run in fp16 (`--dtype half`)." if row.name == "bf16" else ASK_ENGINE
    return FORMAT.unknown(asked, grade, remedy)


ASK_ENGINE = (
    "Start the engine on one such card: whether it unpacks the format, its version decides."
)
