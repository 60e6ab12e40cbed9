"""Every warning code: severity, sentence with named gaps, remedy, and the grade that clears it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from string import Formatter
from typing import Any

from evaluator.catalog_meanings import CATALOG_MEANINGS
from evaluator.facts import Grade
from evaluator.meanings import ASK_MEMORY, EVIDENCE_MEANINGS, Meaning, Severity
from evaluator.meanings import ASK_TOPOLOGY as _ASK_TOPOLOGY
from evaluator.meanings import blocker as _block
from evaluator.meanings import info as _info
from evaluator.meanings import warning as _warn


class Code(Enum):
    """The only list of warnings. The value names the code outside: API, cases, stored rows."""

    # --- a listing, as its catalog describes it
    BASIS_UNKNOWN = "basis_unknown"
    PRICE_MISSING = "price_missing"
    NO_ON_DEMAND_PRICE = "no_on_demand_price"
    PRICE_FROM = "price_from"
    NOT_HOURLY = "not_hourly"
    TAX_INCLUDED = "tax_included"
    TIERED_PRICE = "tiered_price"
    CURRENCY_AMBIGUOUS = "currency_ambiguous"
    CURRENCY_UNKNOWN = "currency_unknown"
    UNIT_UNKNOWN = "unit_unknown"
    AMOUNT_AMBIGUOUS = "amount_ambiguous"
    VRAM_AMBIGUOUS = "vram_ambiguous"
    VRAM_UNKNOWN = "vram_unknown"
    VRAM_TOTAL_DIVIDED = "vram_total_divided"
    VRAM_UNIT_CORRECTED = "vram_unit_corrected"
    VRAM_NONSTANDARD = "vram_nonstandard"
    FORM_FACTOR_ONLY = "form_factor_only"
    LINK_PAIRS_ONLY = "link_pairs_only"
    LINK_SCOPE_UNKNOWN = "link_scope_unknown"
    IMPLAUSIBLE_LINK = "implausible_link"
    CONFLICTING_VALUES = "conflicting_values"
    MULTI_NODE = "multi_node"
    FRACTIONAL_GPU = "fractional_gpu"
    AVAILABILITY_UNKNOWN = "availability_unknown"
    GPU_UNKNOWN = "gpu_unknown"
    FINDING_OUTDATED = "finding_outdated"
    # --- a row that is not believed
    VRAM_IMPOSSIBLE = "vram_impossible"
    VALUE_OUT_OF_RANGE = "value_out_of_range"
    DUPLICATE_KEY = "duplicate_key"
    ROW_UNREADABLE = "row_unreadable"
    PRICE_JUMPED = "price_jumped"
    PRICE_TERMS_CHANGED = "price_terms_changed"
    PRICE_OUTLYING = "price_outlying"
    # --- a page or a feed
    LAYOUT_CHANGED = "layout_changed"
    STRUCTURE_CHANGED = "structure_changed"
    CHALLENGE_PAGE = "challenge_page"
    PAGE_TRUNCATED = "page_truncated"
    COUNT_MISMATCH = "count_mismatch"
    PAGINATION_LOOP = "pagination_loop"
    DUPLICATE_LISTING = "duplicate_listing"
    MALFORMED_STRUCTURED_DATA = "malformed_structured_data"
    HIDDEN_TEXT_IGNORED = "hidden_text_ignored"
    ENCODING_REPLACED = "encoding_replaced"
    STALE_PAGE = "stale_page"
    # --- a plan on a machine
    SNAPSHOT_NOT_RESERVATION = "snapshot_not_reservation"
    TOPOLOGY_NOT_VERIFIED = "topology_not_verified"
    LINK_UNKNOWN = "link_unknown"
    LINK_CLAIMED = "link_claimed"
    LINK_UNBENCHMARKED = "link_unbenchmarked"
    LINK_INSUFFICIENT = "link_insufficient"
    LINK_CONTRADICTED = "link_contradicted"
    GROUP_LEAVES_ISLAND = "group_leaves_island"
    NO_PEER_ACCESS = "no_peer_access"
    LINK_CROSSES_SOCKETS = "link_crosses_sockets"
    TOPOLOGY_FLATTENED = "topology_flattened"
    TOPOLOGY_PARTIAL = "topology_partial"
    GPU_LINK_FAULTY = "gpu_link_faulty"
    NARROW_SLOT = "narrow_slot"
    GPU_SLOW = "gpu_slow"
    PAIR_SLOW = "pair_slow"
    FABRIC_MANAGER_DOWN = "fabric_manager_down"
    SLICED_GPU = "sliced_gpu"
    SHM_SMALL = "shm_small"
    SHM_FAILED = "shm_failed"
    LINK_SUSPECTED = "link_suspected"
    FABRIC_OVER_TCP = "fabric_over_tcp"
    FABRIC_STAGED = "fabric_staged"
    OWN_EVIDENCE = "own_evidence"
    EVIDENCE_MISMATCH = "evidence_mismatch"
    MEASURED_ELSEWHERE = "measured_elsewhere"
    FABRIC_UNKNOWN = "fabric_unknown"
    FABRIC_CLAIMED = "fabric_claimed"
    DOES_NOT_FIT = "does_not_fit"
    TIGHT_FIT = "tight_fit"
    MEMORY_UNKNOWN = "memory_unknown"
    ACTIVATIONS_WIDE = "activations_wide"
    GPU_AMBIGUOUS = "gpu_ambiguous"
    IDLE_GPUS = "idle_gpus"
    PLAN_INDIVISIBLE = "plan_indivisible"
    PLAN_UNSUPPORTED = "plan_unsupported"
    HOST_RAM_SMALL = "host_ram_small"
    HOST_UNKNOWN = "host_unknown"
    NOT_AVAILABLE = "not_available"
    NOT_RANKED = "not_ranked"
    # --- a workload
    MODEL_KEYS_IGNORED = "model_keys_ignored"
    ARCHITECTURE_UNKNOWN = "architecture_unknown"
    NO_ADAPTERS = "no_adapters"

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self]


MEANINGS: Mapping[Code, Meaning] = {
    **{
        Code(value): meaning for value, meaning in {**EVIDENCE_MEANINGS, **CATALOG_MEANINGS}.items()
    },
    Code.SNAPSHOT_NOT_RESERVATION: _info(
        "Seen {age} ago in a catalog: a snapshot, not a reservation.",
        "Ask the provider to hold the machine; its word that it is reserved clears it.",
    ),
    Code.TOPOLOGY_NOT_VERIFIED: _warn(
        "How the {gpu_count} GPUs are joined is not verified.", _ASK_TOPOLOGY, Grade.MEASURED
    ),
    Code.LINK_UNKNOWN: _warn(
        "{plan} lives on the link between the GPUs, and nothing is known about it.",
        _ASK_TOPOLOGY,
        Grade.MEASURED,
    ),
    Code.LINK_CLAIMED: _warn(
        "{plan} needs {link}, which the provider claims and nobody has measured.",
        _ASK_TOPOLOGY,
        Grade.MEASURED,
    ),
    Code.LINK_UNBENCHMARKED: _warn(
        "{plan} would run over {link}; whether that is enough, only a benchmark tells.",
        "Ask for `{command}`; {rate} clears it.",
        Grade.BENCHMARKED,
    ),
    Code.LINK_INSUFFICIENT: _block(
        "{plan} needs more than {link} carries: {reason}.",
        "Use a plan that waits less for the link, or show that `{command}` reaches {rate}.",
        Grade.BENCHMARKED,
    ),
    Code.LINK_CONTRADICTED: _block(
        "The evidence contradicts the declared link: {reason}.",
        "Have the machine mended or replaced; `nvidia-smi topo -m` and a benchmark as declared "
        "clear it.",
        Grade.BENCHMARKED,
    ),
    Code.FABRIC_UNKNOWN: _warn(
        "{plan} spans {nodes} machines, and nothing is known about the network between them.",
        "Ask for a two-node `all_reduce_perf -b 1G -e 8G -f 2`.",
        Grade.BENCHMARKED,
    ),
    Code.FABRIC_CLAIMED: _warn(
        "{plan} spans {nodes} machines over {fabric}, which the provider claims.",
        "Ask for a two-node `all_reduce_perf -b 1G -e 8G -f 2`.",
        Grade.BENCHMARKED,
    ),
    Code.DOES_NOT_FIT: _block(
        "{needed} are needed on {rank}, {usable} are usable.",
        "{change}",
        clears="A plan, a workload or a GPU whose need stays below what is usable clears it.",
    ),
    Code.TIGHT_FIT: _warn(
        "It fits at {typical} and not at {high}; {usable} are usable.",
        "Pin what one step on one GPU was seen to take, or leave more room; a high end below what "
        "is usable clears it.",
    ),
    Code.MEMORY_UNKNOWN: _warn(
        "Memory per GPU is not known, so no plan can be judged.",
        ASK_MEMORY,
        Grade.DECLARED,
    ),
    Code.ACTIVATIONS_WIDE: _info(
        "Activations are a wide estimate: {low} to {high}.",
        "Measure one step on one GPU; its figure, pinned in the workload, clears it.",
    ),
    Code.GPU_AMBIGUOUS: _warn(
        "The label may mean {cards}; the smallest and slowest of them is judged.",
        ASK_MEMORY,
        Grade.MEASURED,
    ),
    Code.IDLE_GPUS: _info(
        "{idle} of {gpu_count} GPUs stay idle under this plan.",
        "Rent fewer GPUs, or put other work on them; a plan over all of them clears it.",
    ),
    Code.PLAN_INDIVISIBLE: _block(
        "{quantity} cannot be divided by {degree}.",
        "{change}",
        clears="A degree that divides it clears it.",
    ),
    Code.PLAN_UNSUPPORTED: _block(
        "{what} is not supported by {who}.",
        "{change}",
        clears="An engine or a format that supports it clears it.",
    ),
    Code.HOST_RAM_SMALL: _warn(
        "Host RAM {ram} is below {needed}: {reason}.",
        "Ask for more RAM, or count the longer start; a stated size of {needed} clears it.",
    ),
    Code.HOST_UNKNOWN: _info(
        "Not stated: {items}.", "Ask the provider for each of them.", Grade.DECLARED
    ),
    Code.NOT_AVAILABLE: _warn(
        "The catalog says {availability}.",
        "Ask when the whole machine is free; a catalog that calls it available clears it.",
    ),
    Code.NOT_RANKED: _info(
        "Shown but not ranked: {reason}.",
        "Ask for the part of the price that is missing; a price with all five parts in the "
        "currency of the budget clears it.",
    ),
    Code.MODEL_KEYS_IGNORED: _info(
        "Keys of the model config that were not used: {keys}.",
        "Check that none of them changes size or cache; a config without them clears it.",
    ),
    Code.ARCHITECTURE_UNKNOWN: _warn(
        "The architecture {architecture} is not known: its size or its cache cannot be computed.",
        "Add total_params; if all its layers are plain attention, leave out its name and own "
        "keys. A size that can be computed clears it.",
    ),
    Code.NO_ADAPTERS: _warn(
        "No layer of {model} has any of the LoRA targets {targets}: the budget holds no adapter.",
        "Name projections that the model has, as in_proj and out_proj of layers that keep a "
        "state; a target that is found clears it.",
    ),
}


__all__ = ["MEANINGS", "Code", "Finding", "MissingGap", "Severity", "finding", "gaps_of"]


class MissingGap(ValueError):
    """A finding was made without a word that its sentence needs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A code with the words for its gaps. Build it with `finding`, which checks the gaps."""

    code: Code
    gaps: tuple[tuple[str, str], ...] = field(default=())

    @property
    def severity(self) -> Severity:
        return self.code.meaning.severity

    @property
    def sentence(self) -> str:
        return self.code.meaning.sentence.format(**dict(self.gaps))

    @property
    def remedy(self) -> str:
        return self.code.meaning.remedy.format(**dict(self.gaps))

    @property
    def clearing(self) -> str:
        """What makes it go; empty where the remedy says so itself."""
        return self.code.meaning.clearing

    def as_dict(self) -> dict[str, Any]:
        """For storage. `from_dict` gives the same finding back."""
        return {"code": self.code.value, "gaps": dict(self.gaps)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Finding:
        return finding(Code(stored["code"]), **stored["gaps"])


@cache
def gaps_of(code: Code) -> frozenset[str]:
    """Names of the words that a code's sentence and remedy leave open."""
    texts = (code.meaning.sentence, code.meaning.remedy)
    return frozenset(name for text in texts for _, name, _, _ in Formatter().parse(text) if name)


def recall(stored: Mapping[str, Any]) -> Finding:
    """A finding from storage. One of another version is told as such, never dropped as no doubt."""
    try:
        return Finding.from_dict(stored)
    except (KeyError, TypeError, ValueError):
        return finding(Code.FINDING_OUTDATED, words=str(stored.get("code", "something"))[:60])


def finding(code: Code, **gaps: object) -> Finding:
    """A finding whose sentence can be printed. Raises MissingGap, naming the missing words."""
    missing = gaps_of(code) - gaps.keys()
    if missing:
        raise MissingGap(f"{code.value} needs {', '.join(sorted(missing))}")
    return Finding(code, tuple(sorted((name, str(value)) for name, value in gaps.items())))
