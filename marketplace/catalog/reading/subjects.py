"""Whether a line is about a GPU machine or only mentions one."""

from __future__ import annotations

import re

from evaluator.gpus import UNREAD
from marketplace.catalog.reading.counts import WORD
from marketplace.catalog.reading.names import label_of
from marketplace.catalog.text import bounded, has_mixed_scripts

_OPENING = re.compile(
    r"^\W{0,6}(?:HYPERLINK\W.{0,60}?)?"
    rf"(?:(?:\d{{1,15}}\s?[x×*✕]?|[x×]|{WORD}|nvidia|amd|intel|geforce|tesla|quadro"
    r"|instinct|radeon|hgx|dgx|gpus?|accelerators?|node|server|machine|instance|cloud|dedicated|bare[\s-]metal|nodes?|of"
    r"|with|gpu\s(?:model|type|server)|n\d|gpu|vm|standard|pro|performance|workstation|full|half|\d/\d{1,2}|0?\.\d{1,2}x?"
    r"|[a-z]{1,2}\d{0,2}|systems?|compute|ai|the|new|½|¼|up|to|from)(?![a-z])[\s:|_./()×–—-]{0,4}){0,8}$",
    re.I,
)
_CPU_ONLY = re.compile(
    r"\bcpu[\s-](?:only|server|instance|node|optimi[sz]ed)|\bno\sgpu|\bcompute[\s-]optimi[sz]ed|\bgeneral[\s-]purpose", re.I
)  # fmt: skip
_GPU_WORDS = re.compile(
    r"\bgpus?\b|\bnvidia\b|\bgeforce\b|\brtx\b|\bgtx\b|\btesla\b|\binstinct\b|\bradeon\b|\bquadro\b|\bvram\b|\bhbm\w?\b|\bgddr",
    re.I,
)  # fmt: skip
_COUNTED = re.compile(r"^\W{0,3}(\d{1,4})\s?[x×]\s?(?!\d)(\S{1,20})")
_CPU_MAKERS = re.compile(r"intel|xeon|amd|epyc|ryzen|core|vcpu|cpu|gb|tb|nvme|ssd", re.I)


def leads_with_gpu(text: str, parts: tuple[str, ...] = ()) -> bool:
    """ "8 x NVIDIA H100" begins with the machine; "Earn $500 for every H100" only speaks of one."""
    words = bounded(text)
    if words.endswith("?"):
        return False
    if _leads(words):
        return True
    return any(_leads(bounded(part)) for part in parts[:6] if len(part) < 120)


def _leads(words: str) -> bool:
    label = label_of(words)
    if label is UNREAD:
        return False
    at = words.find(label.words)
    return at >= 0 and bool(_OPENING.match(words[:at]))


def speaks_of_gpus(text: str) -> bool:
    """Whether a record without a known model is a GPU machine all the same: a new or odd name."""
    words = bounded(text)
    if _CPU_ONLY.search(words):
        return False
    if _GPU_WORDS.search(words):
        return True
    counted = _COUNTED.match(words)
    return bool(counted and not _CPU_MAKERS.match(counted[2]))


def is_disguised(text: str) -> bool:
    """A word of mixed scripts: look-alike letters that must not pass for a model."""
    return any(has_mixed_scripts(word) for word in bounded(text).split())
