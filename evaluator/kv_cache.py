"""The key-value cache: bytes per token and per sequence on one GPU."""

from __future__ import annotations

from evaluator.budgets import Component
from evaluator.formats import KV_BYTES
from evaluator.jobs import ServingJob
from evaluator.partition import RankClass, kv_heads_per_rank
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.shapes import Latent, ModelShape

BLOCK_TOKENS = 16
"""Engines hand out the cache in blocks of this many tokens (vLLM's default block size)."""
PREFILL_CHUNK = 2048
"""Tokens of one prefill step that a window layer holds besides its window, where not stated."""
LOGGED = Range(0.998, 1.0, 1.005)
"""Logs print the cache with three digits, and engines round it to whole blocks per layer group."""
WHOLE_HEAD_SIZES = (64, 128, 256)
"""Engines that store latent attention as full heads pad keys and values to one of these."""


def layer_token_bytes(shape: ModelShape, job: ServingJob, plan: Plan) -> float:
    """Bytes that one layer stores for one token on one GPU: keys and values, or the latent."""
    attention, element = shape.attention, KV_BYTES[job.kv_dtype]
    if attention.latent is None:
        heads = kv_heads_per_rank(attention.kv_heads, plan.tp)
        return 2 * heads * attention.head_dim * element
    if job.mla_kv:
        return (attention.latent.kv_rank + attention.latent.rope_dim) * element
    heads = kv_heads_per_rank(attention.heads, plan.tp)
    return heads * _whole_head(attention.latent, job.engine) * element


def _whole_head(latent: Latent, engine: str) -> int:
    """Key and value elements of one head where the engine knows no latent attention."""
    key, value = latent.nope_dim + latent.rope_dim, latent.value_dim
    if engine == "llama.cpp":
        return key + value
    return 2 * next((size for size in WHOLE_HEAD_SIZES if size >= key), key)


def layers_with_cache(shape: ModelShape, job: ServingJob, rank: RankClass) -> tuple[int, int]:
    """Layers of a stage that keep every token, and layers that keep a window. Shares round up."""
    cached = shape.layers if shape.cached_layers is None else shape.cached_layers
    windowed = shape.window.layers if shape.window and job.window_kv else 0
    here = -(-cached * rank.layers // shape.layers)
    window_here = windowed * rank.layers // shape.layers
    return here - window_here, window_here


def bytes_per_token(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> float:
    """Cache bytes of one more token on one GPU, while the sequence is shorter than any window."""
    return layer_token_bytes(shape, job, plan) * sum(layers_with_cache(shape, job, rank))


def sequence_bytes(
    shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass, tokens: int
) -> float:
    """Cache bytes of one sequence of `tokens` on one GPU, whole blocks, windows respected."""
    full, windowed = layers_with_cache(shape, job, rank)
    kept = full * whole_blocks(tokens) + windowed * _window_tokens(shape, job, tokens)
    return layer_token_bytes(shape, job, plan) * kept


def _window_tokens(shape: ModelShape, job: ServingJob, tokens: int) -> int:
    if shape.window is None:
        return 0
    chunk = job.max_num_batched_tokens or PREFILL_CHUNK
    return whole_blocks(min(tokens, shape.window.tokens + chunk))


def whole_blocks(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS) * BLOCK_TOKENS


def sequences_per_replica(job: ServingJob, plan: Plan) -> int:
    return -(-job.concurrency // plan.replicas)


def kv_component(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> Component:
    """The cache of all wanted requests at their full length, or what the engine insists on."""
    sequences, tokens = sequences_per_replica(job, plan), job.sequence_tokens
    wanted = sequences * sequence_bytes(shape, job, plan, rank, tokens)
    least = _least_bytes(shape, job, plan, rank)
    return Component(
        name="kv_cache",
        bytes=_cache_range(job, sequences, max(wanted, least), least),
        formula=_formula(shape, job),
        inputs=(
            ("sequences per replica", str(sequences)),
            ("tokens per sequence", str(tokens)),
            ("one sequence of max_model_len", f"{least:,.0f} bytes" if least else "not asked for"),
            ("bytes per token", f"{bytes_per_token(shape, job, plan, rank):.0f}"),
            ("kv_dtype", job.kv_dtype),
            ("tp", str(plan.tp)),
        ),
        source="memory layout of the attention kind; whole blocks of 16 tokens",
    )


def _least_bytes(shape: ModelShape, job: ServingJob, plan: Plan, rank: RankClass) -> float:
    """vLLM refuses to start where one sequence of `max_model_len` does not fit; others limit it."""
    if job.engine != "vllm" or job.max_model_len is None:
        return 0
    return sequence_bytes(shape, job, plan, rank, job.max_model_len)


def _cache_range(job: ServingJob, sequences: int, size: float, least: float) -> Range:
    """A declared shared prefix is kept once: all requests but one go without it."""
    spared = [share * (1 - 1 / sequences) for share in job.prefix_share]
    low, high = (max(least, size * (1 - share)) for share in reversed(spared))
    ends = (low * LOGGED.low, (low + high) / 2, high * LOGGED.high)
    return Range(*(float(round(end)) for end in ends))


def _formula(shape: ModelShape, job: ServingJob) -> str:
    if shape.attention.latent and job.mla_kv:
        return "sequences x tokens x layers x (latent + rope) x bytes, on every tensor rank"
    windows = ", window layers only their window" if shape.window and job.window_kv else ""
    return f"sequences x tokens x layers x 2 x ceil(KV heads / tp) x head size x bytes{windows}"
