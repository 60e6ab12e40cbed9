"""Which driver, CUDA, framework and card go together, from the dated tables of data/software.toml.

Only a minimum that a table states makes a fail; what no table speaks of stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from evaluator.checklist import Asked, HostItem, HostWord, weakest
from evaluator.facts import Grade
from evaluator.held import is_amd
from evaluator.jobs import Workload
from evaluator.machine import Machine
from evaluator.releases import (
    Row,
    Stack,
    Version,
    driver_said,
    first_cuda,
    first_nccl,
    formats_of,
    lowest_driver,
    own_driver,
    reaches,
    release_of,
    releases_of,
    said,
    stack_of,
    tables,
    version_of,
)
from evaluator.rocm import rocm_items

Capabilities = tuple[Version, ...]


def capabilities_of(machine: Machine) -> Capabilities:
    """Of every card that the label may mean; an empty one where none is published."""
    return _capabilities(tuple(spec.compute_capability for spec in machine.specs))


@lru_cache(maxsize=1024)
def _capabilities(texts: tuple[str | None, ...]) -> Capabilities:
    return tuple(map(version_of, texts))


def software_items(workload: Workload, machine: Machine) -> Iterator[HostItem]:
    """Driver and CUDA, the card against the engine, and the number formats."""
    if is_amd(machine):
        yield from rocm_items(workload, machine)
        return
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
    nccl = max((first_nccl(card) for card in cards), default=())
    if not reaches(version_of(versions[2]), nccl):
        remedy = f"Use an image with NCCL {said(nccl)} or newer: the job's own copy counts."
        words = f"NCCL {versions[2]} is older than the card, which needs {said(nccl)}."
        return DRIVER.unknown(words, grade, remedy)
    beside = _by_family(driver, cuda) + _without_switch(version_of(versions[2]), cards)
    return DRIVER.passes(f"{_named(versions)} go together{beside}.", grade)


def _named(versions: tuple[str, ...]) -> str:
    names = ("driver", "CUDA", "NCCL")
    parts = [f"{name} {text}" for name, text in zip(names, versions, strict=True)]
    words = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return words[0].upper() + words[1:]


def _by_family(driver: Version, cuda: Version) -> str:
    """Below the toolkit's own driver a release runs with some of its features left out."""
    own = own_driver(cuda)
    return "" if not own or reaches(driver, own) else ", by minor version compatibility"


def _without_switch(nccl: Version, cards: Capabilities) -> str:
    """Cards whose switches could add up all-reduces, under an NCCL that does not let them."""
    rows = (
        row for row in tables()["switch_reduce"] if cards and reaches(min(cards), row.capability)
    )
    needed = next((row.nccl for row in rows if not reaches(nccl, row.nccl)), ())
    return f"; switches add up all-reduces from NCCL {said(needed)} on" if needed else ""


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
