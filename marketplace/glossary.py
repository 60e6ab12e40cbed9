"""The words of the field, each in a sentence or two for someone who meets it for the first time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Term:
    """`also` are other spellings that a page may use. `see` are names of related terms."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


TERMS = (
    Term(
        "activations",
        "What the layers compute for the tokens at hand. Training keeps them for the backward "
        "pass, serving drops them at once.",
        see=("recompute",),
    ),
    Term(
        "all-gather",
        "A collective after which every GPU of a group has the parts of all others. Sharded "
        "training gathers each layer before it is used.",
        ("all-gathers",),
        ("sharding", "collective"),
    ),
    Term(
        "all-reduce",
        "A collective after which every GPU of a group has the sum of what all of them held. "
        "Tensor parallelism makes two in every layer.",
        ("all-reduces",),
        ("tensor parallel", "collective"),
    ),
    Term(
        "basis of a price",
        "Whether an amount buys a GPU or the whole machine. With eight GPUs the bill differs "
        "eightfold, so a price without its basis is never ranked.",
    ),
    Term(
        "benchmarked",
        "The highest grade of a fact: a benchmark such as nccl-tests ran on this machine and "
        "printed a rate.",
        see=("grade", "bus bandwidth"),
    ),
    Term(
        "bus bandwidth",
        "Bytes that each GPU sends in a collective, divided by its time: what nccl-tests prints "
        "as busbw. It can be compared between group sizes and with the speed of a link.",
        see=("collective",),
    ),
    Term(
        "claimed",
        "The link that a plan needs is declared, would be enough, and nobody has measured it.",
        see=("proven", "grade"),
    ),
    Term(
        "collective",
        "An exchange in which all GPUs of a group take part; it ends when the slowest has ended.",
        ("collectives",),
        ("all-reduce", "all-gather", "reduce-scatter"),
    ),
    Term(
        "conditional",
        "The plan would serve, and something is claimed, unknown or tight; the page names it.",
        see=("ready",),
    ),
    Term(
        "context parallel",
        "Every sequence is cut into parts, one for each GPU of a group, which pass keys and values "
        "round in every layer: for sequences too long for one GPU. CP 2 in the name of a plan.",
        ("context parallelism", "CP"),
        ("tensor parallel",),
    ),
    Term(
        "data parallel",
        "Every GPU, or group of GPUs, holds a copy of the model and trains on other data; the "
        "gradients are summed once per step. DP 4 in the name of a plan.",
        ("data parallelism", "DP"),
        ("sharding", "replica"),
    ),
    Term(
        "declared",
        "A catalog says so. Nothing that a catalog says gets a higher grade.",
        see=("grade",),
    ),
    Term(
        "decode step",
        "One more token for every running request. It reads all weights once, so it is bound by "
        "memory speed, and many requests share the read.",
        see=("prefill", "time per token"),
    ),
    Term(
        "expert parallel",
        "The experts of a mixture-of-experts model are dealt out over GPUs, and every token "
        "travels to its experts and back in every such layer. EP 8 in the name of a plan.",
        ("expert parallelism", "EP"),
    ),
    Term(
        "FSDP",
        "Fully sharded data parallel: parameters, gradients and optimizer states are divided over "
        "the GPUs and gathered layer by layer (ZeRO stage 3).",
        see=("sharding", "all-gather"),
    ),
    Term(
        "global batch",
        "Sequences that one optimizer step learns from, over all GPUs.",
        see=("micro-batch",),
    ),
    Term(
        "grade",
        "How well something is known: unknown, declared, measured, benchmarked. A GPU's name or "
        "form factor never raises the grade of a link.",
    ),
    Term(
        "interleaved",
        "Each GPU of a pipeline holds several short runs of layers instead of one long one: less "
        "time idles, and activations cross the links more often.",
        see=("pipeline parallel", "pipeline bubble"),
    ),
    Term(
        "KV cache",
        "Keys and values of all tokens so far, kept so that a new token need not read the text "
        "again. It grows with every token and every running request.",
        see=("prefill", "decode step"),
    ),
    Term(
        "LoRA",
        "Fine-tuning that trains two thin matrices beside each frozen one: gradients and "
        "optimizer states shrink to a fraction, the weights stay.",
    ),
    Term(
        "measured",
        "A tool on this machine showed it, such as nvidia-smi topo -m for the links.",
        see=("grade",),
    ),
    Term(
        "micro-batch",
        "Sequences that one GPU, or group of GPUs, works on at once. The activations grow with it.",
        ("micro-batches", "micro batch"),
        ("global batch", "activations"),
    ),
    Term(
        "NVLink",
        "A link made for GPUs, several times faster than PCIe. A card that could have it need not "
        "be joined by it in the machine that you rent.",
        see=("NVSwitch", "NVLink island"),
    ),
    Term(
        "NVLink island",
        "GPUs that reach each other over NVLink, while others are reached over PCIe. A group of "
        "a plan is only as fast as its slowest pair, so it should not leave an island.",
        see=("NVLink",),
    ),
    Term(
        "NVSwitch",
        "A switch that joins all GPUs of a machine over NVLink, each pair at full speed.",
        see=("NVLink",),
    ),
    Term(
        "optimizer states",
        "What the optimizer remembers for each trained parameter. With AdamW in mixed precision "
        "weights, gradients, master copy and states take 16 bytes a parameter.",
        see=("sharding",),
    ),
    Term(
        "PCIe",
        "The slot that every card sits in. Peer access lets two GPUs use it directly; without it "
        "everything takes a detour through host memory.",
        see=("peer access",),
    ),
    Term(
        "peer access",
        "Whether one GPU may read another's memory without the host: nvidia-smi topo -p2p r.",
    ),
    Term(
        "pipeline parallel",
        "The layers are cut into stages, one per GPU or group. Little moves between them, but "
        "stages wait for each other, and no single request gets faster. PP 4 in the name of a "
        "plan.",
        ("pipeline parallelism", "pipeline stages", "a pipeline", "PP"),
        ("pipeline bubble",),
    ),
    Term(
        "pipeline bubble",
        "The time in which stages of a pipeline idle while it fills and drains.",
        see=("pipeline parallel", "micro-batch"),
    ),
    Term(
        "plan",
        "How a workload is divided over GPUs: which of them hold which part, and what they must "
        "exchange. The narrowest that fits is tried first.",
    ),
    Term(
        "prefill",
        "Reading the prompt: all its tokens at once, bound by arithmetic.",
        see=("time to first token", "decode step"),
    ),
    Term(
        "proven",
        "The link that a plan needs was measured or benchmarked on this machine, and is enough.",
        see=("claimed", "grade"),
    ),
    Term(
        "ready",
        "The plan fits, its link is proven or not needed, and no item of the host fails.",
        see=("conditional",),
    ),
    Term(
        "recompute",
        "Throwing activations away and computing them again in the backward pass: less memory "
        "for about a third more work.",
        see=("activations",),
    ),
    Term(
        "reduce-scatter",
        "A collective after which each GPU has its part of the sum. Sharded training scatters "
        "the gradients this way.",
        ("reduce-scatters",),
        ("sharding", "collective"),
    ),
    Term(
        "replica",
        "A whole copy of the served model. Replicas share the requests and exchange nothing, so "
        "they need no link.",
        ("replicas",),
        ("data parallel",),
    ),
    Term(
        "sharding",
        "Dividing what every data parallel GPU would hold a copy of. It saves memory and moves "
        "every parameter several times per step.",
        ("sharded",),
        ("FSDP",),
    ),
    Term(
        "snapshot",
        "What a catalog said at one time. Listed is not available, and available is not reserved.",
    ),
    Term(
        "strong scaling",
        "The same work on more GPUs: how much sooner it ends.",
        see=("weak scaling",),
    ),
    Term(
        "tensor parallel",
        "Every layer is cut over the GPUs of a group, which sum their parts inside every layer: "
        "the memory is divided, each token gets faster, and all of it lives on the link. TP 8 in "
        "the name of a plan.",
        ("tensor parallelism", "tensor ranks", "TP"),
        ("tensor parallel degree", "all-reduce"),
    ),
    Term(
        "tensor parallel degree",
        "How many GPUs share every layer: TP 4 is a degree of four. It must divide the attention "
        "heads.",
        see=("tensor parallel",),
    ),
    Term(
        "time per token",
        "What a user waits from one token to the next: one decode step, and the prompts of "
        "others in between (TPOT).",
        see=("decode step", "time to first token"),
    ),
    Term(
        "time to first token",
        "What a user waits until the answer begins: queue, prefill and one decode step (TTFT).",
        see=("prefill",),
    ),
    Term(
        "usable memory",
        "What the driver reports, less what the engine leaves free. It is below the label: the "
        "label counts GB of 10^9 bytes, and some of it is reserved.",
        see=("VRAM",),
    ),
    Term(
        "VRAM",
        "The memory of one GPU. It is not pooled: two cards of 24 GiB hold nothing that needs "
        "40 GiB on one of them, unless a plan cuts it.",
        see=("plan", "usable memory"),
    ),
    Term(
        "weak scaling",
        "Work that grows with the GPUs: how much of each GPU's speed is left.",
        see=("strong scaling",),
    ),
)


def named(name: str) -> Term:
    return next(term for term in TERMS if term.name == name)


@cache
def spellings() -> dict[str, Term]:
    """Every spelling in small letters, longest first, so that a part never hides the whole."""
    every = {word.lower(): term for term in TERMS for word in (term.name, *term.also)}
    return dict(sorted(every.items(), key=lambda pair: -len(pair[0])))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, spellings()))})(?![\w-])", re.I)


def terms_in(text: str) -> Iterator[tuple[str, Term | None]]:
    """The text in pieces: each term's first occurrence with its term, all else with None."""
    done, told = 0, set()
    for found in _pattern().finditer(text):
        term = spellings()[found[0].lower()]
        if term.name in told:
            continue
        told.add(term.name)
        yield text[done : found.start()], None
        yield found[0], term
        done = found.end()
    yield text[done:], None
