"""The key-value cache: bytes per token and per sequence on one GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evaluator.budgets import Component
from evaluator.formats import KV_BYTES
from evaluator.jobs import ServingJob
from evaluator.partition import RankClass, kv_heads_per_rank
from evaluator.plans import Plan
from evaluator.ranges import Number, Range, larger, smaller
from evaluator.shapes import Latent, ModelShape

BLOCK_TOKENS = 16
"""Engines hand out the cache in blocks of this many tokens (vLLM's default block size)."""
PREFILL_CHUNK = 2048
"""Tokens of one prefill step that a window layer holds besides its window, where not stated."""
STATE_BYTES = 4
"""States are kept in fp32: 82 slots of 45 such layers took 7.42 GiB on each of two ranks."""
LOGGED = Range(0.998, 1.0, 1.005)
"""Logs print the cache with three digits, and engines round it to whole blocks per layer group."""
WHOLE_HEAD_SIZES = (64, 128, 256)
"""Engines that store latent attention as full heads pad keys and values to one of these."""


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """What one model stores under one job; fields may be arrays with one number for each model.

    A layer keeps `per_head` elements for each of `heads` KV heads, divided over tensor ranks, and
    `whole` elements on every rank. Of `layers` layers `windowed` keep the last `window` tokens
    only. Layers that keep a state have `elements` numbers of it for each sequence.
    """

    heads: Number
    per_head: Number
    whole: Number
    layers: Number
    windowed: Number
    window: Number
    elements: Number


@lru_cache(maxsize=4096)
def cache_sizes(shape: ModelShape, job: ServingJob) -> CacheSizes:
    heads, per_head, whole = _elements(shape, job)
    windowed = shape.window if shape.window and job.window_kv else None
    chunk = job.max_num_batched_tokens or PREFILL_CHUNK
    return CacheSizes(
        heads=heads,
        per_head=per_head,
        whole=whole,
        layers=shape.layers,
        windowed=windowed.layers if windowed else 0,
        window=windowed.tokens + chunk if windowed else 0,
        elements=shape.recurrence.elements if shape.recurrence else 0,
    )


def _elements(shape: ModelShape, job: ServingJob) -> tuple[int, int, int]:
    """KV heads, elements of each, elements on every rank: keys and values, or the latent."""
    attention = shape.attention
    if attention.latent is None:
        return attention.kv_heads, 2 * attention.head_dim, 0
    if job.mla_kv:
        return 0, 0, attention.latent.kv_rank + attention.latent.rope_dim
    return attention.heads, _whole_head(attention.latent, job.engine), 0


def _whole_head(latent: Latent, engine: str) -> int:
    """Key and value elements of one head where the engine knows no latent attention."""
    key, value = latent.nope_dim + latent.rope_dim, latent.value_dim
    if engine == "llama.cpp":
        return key + value
    return 2 * next((size for size in WHOLE_HEAD_SIZES if size >= key), key)


def layer_token_bytes(sizes: CacheSizes, job: ServingJob, plan: Plan) -> Number:
    """Bytes that one layer stores for one token on one GPU."""
    here = kv_heads_per_rank(sizes.heads, plan.tp) * sizes.per_head
    return (here + sizes.whole) * KV_BYTES[job.kv_dtype]


def layers_with_cache(sizes: CacheSizes, rank: RankClass) -> tuple[Number, Number]:
    """Layers of a stage that keep every token, and layers that keep a window: a share that is
    rounded down, since more of the others takes more room."""
    windowed = smaller(rank.cached, sizes.windowed * rank.layers // sizes.layers)
    return rank.cached - windowed, windowed


def bytes_per_token(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> float:
    """Cache bytes of one more token on one GPU, while the sequence is shorter than any window."""
    sizes = cache_sizes(shape, job)
    return float(layer_token_bytes(sizes, job, plan) * sum(layers_with_cache(sizes, rank)))


def sequence_bytes(
    shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass, tokens: int
) -> float:
    """Cache bytes of one sequence of `tokens` on one GPU, whole blocks, windows respected."""
    return float(one_sequence(cache_sizes(shape, job), job, plan, rank, tokens))


def one_sequence(
    sizes: CacheSizes, job: ServingJob, plan: Plan, rank: RankClass, tokens: int
) -> Number:
    full, windowed = layers_with_cache(sizes, rank)
    kept = full * whole_blocks(tokens) + windowed * whole_blocks(smaller(tokens, sizes.window))
    return layer_token_bytes(sizes, job, plan) * kept + state_bytes(sizes, plan, rank)


def state_bytes(sizes: CacheSizes, plan: Plan, rank: RankClass) -> Number:
    """What linear and state-space layers keep of one sequence on one GPU, however long it is."""
    return rank.recurrent * -(-sizes.elements // plan.tp) * STATE_BYTES


def whole_blocks(tokens: Number) -> Number:
    return -(-tokens // BLOCK_TOKENS) * BLOCK_TOKENS


def sequences_per_replica(job: ServingJob, plan: Plan) -> Number:
    """Copies of the attention share the requests, be they engines of their own or ranks of one."""
    return -(-job.concurrency // (plan.replicas * plan.dp))


def cache_bytes(sizes: CacheSizes, job: ServingJob, plan: Plan, rank: RankClass) -> Range:
    """The cache of all wanted requests at their full length, or what the engine insists on."""
    sequences = sequences_per_replica(job, plan)
    wanted = sequences * one_sequence(sizes, job, plan, rank, job.sequence_tokens)
    least = _least_bytes(sizes, job, plan, rank)
    return _cache_range(job, sequences, larger(wanted, least), least)


def _least_bytes(sizes: CacheSizes, job: ServingJob, plan: Plan, rank: RankClass) -> Number:
    """vLLM refuses to start where one sequence of `max_model_len` does not fit, llama.cpp sets the
    room of all of them aside at once; others limit their requests."""
    if job.engine not in ("vllm", "llama.cpp") or job.max_model_len is None:
        return 0
    at_once = sequences_per_replica(job, plan) if job.engine == "llama.cpp" else 1
    return at_once * one_sequence(sizes, job, plan, rank, job.max_model_len)


def _cache_range(job: ServingJob, sequences: Number, size: Number, least: Number) -> Range:
    """A declared shared prefix is kept once: all requests but one go without it."""
    low, high = (
        larger(least, size * (1 - share * (1 - 1 / sequences)))
        for share in reversed(job.prefix_share)
    )
    return Range(low * LOGGED.low, (low + high) / 2, high * LOGGED.high)


def kv_component(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> Component:
    sizes = cache_sizes(shape, job)
    least = _least_bytes(sizes, job, plan, rank)
    least_words = f"{least:,.0f} bytes" if least else "not asked for"
    insists = "all sequences" if job.engine == "llama.cpp" else "one sequence"
    shared = " to ".join(f"{share:.0%}" for share in dict.fromkeys(job.prefix_share))
    return Component(
        name="kv_cache",
        bytes=cache_bytes(sizes, job, plan, rank),
        formula=_formula(shape, job),
        inputs=(
            ("sequences per replica", str(sequences_per_replica(job, plan))),
            ("tokens per sequence", str(job.sequence_tokens)),
            ("shared with other sequences", shared),
            (f"{insists} of max_model_len", least_words),
            ("state of a sequence", f"{state_bytes(sizes, plan, rank):,.0f} bytes"),
            ("bytes per token", f"{bytes_per_token(shape, job, plan, rank):.0f}"),
            ("kv_dtype", job.kv_dtype),
            ("tp", str(plan.tp)),
        ),
        source="memory layout of the attention kind; whole blocks of 16 tokens",
    )


def _formula(shape: ModelShape, job: ServingJob) -> str:
    if shape.attention.latent and job.mla_kv:
        return "sequences x tokens x layers x (latent + rope) x bytes, on every tensor rank"
    windows = ", window layers only their window" if shape.window and job.window_kv else ""
    return f"sequences x tokens x layers x 2 x ceil(KV heads / tp) x head size x bytes{windows}"
