"""The keys of a serving or a training job, and what is assumed where they are absent."""

from __future__ import annotations

from typing import TypeVar

from evaluator.engines import doubt_of, engine, engines, is_listed, listed_name
from evaluator.fields import LARGEST, Fields
from evaluator.formats import KV_BYTES
from evaluator.jobs import (
    Assumption,
    Lora,
    Offload,
    Precision,
    Recompute,
    Schedule,
    ServingJob,
    TrainingJob,
)
from evaluator.recipes import canonical, optimizers, precisions, recipe

T = TypeVar("T")

LONGEST = 10**8
"""Tokens of one sequence: far above any published context."""
MOST_SEQUENCES = 10**6
LORA_TARGETS = (
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "in_proj",
    "out_proj",
)
"""Projections of attention, of MLPs and experts, and of layers that keep a state."""

REASONS = {
    "engine": "the engine with the most published measurements",
    "kv_dtype": "a cache of 16 bits, whatever the weights are",
    "input_tokens": "a prompt of a few pages",
    "output_tokens": "an answer of a few paragraphs",
    "concurrency": "one request at a time",
    "max_num_seqs": "the engine is told so; vLLM would reserve for 256 to 1,024 sequences",
    "max_model_len": "the engine is told so; vLLM would demand room for the model's full context",
    "optimizer": "the usual optimizer of language models",
    "precision": "16-bit weights and gradients, fp32 master copy and states: 16 bytes",
    "seq_len": "a common training length",
    "micro_batch": "the smallest batch",
    "recompute": "nothing is computed twice",
}
"""Why each default was chosen, by key."""


SERVING_KEYS = (
    "kv_dtype",
    "engine",
    "engine_version",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "memory_utilization",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "arrival_rate",
    "targets",
    "mla_kv",
    "window_kv",
    "adapters",
    "draft_params",
    "prefix_share",
)
TRAINING_KEYS = (
    "optimizer",
    "precision",
    "global_batch",
    "micro_batch",
    "seq_len",
    "recompute",
    "attention",
    "zero_stage",
    "sequence_parallel",
    "chunked_loss",
    "reduce_bucket_size",
    "lora",
    "offload",
    "schedule",
    "tokens_to_train",
    "deadline_hours",
    "dataset_bytes",
    "checkpoint_bytes",
)


class Defaults:
    """Takes a default where a key is absent and remembers that it did."""

    def __init__(self) -> None:
        self._used: list[Assumption] = []

    def take(self, key: str, value: T, reason: str) -> T:
        self._used.append(Assumption(key, str(value), reason))
        return value

    def fill(self, key: str, stated: T | None, default: T) -> T:
        return self.take(key, default, REASONS[key]) if stated is None else stated

    @property
    def used(self) -> tuple[Assumption, ...]:
        return tuple(self._used)


def set_aside(keys: Fields, names: tuple[str, ...], defaults: Defaults) -> None:
    """Known keys of the other kind of job are not read; the reader is told so."""
    for name in names:
        if keys.raw(name) is not None:
            defaults.take(name, "not used", "a key of the other kind of job")


def read_serving(keys: Fields, defaults: Defaults) -> ServingJob:
    usual = ServingJob()
    fill = defaults.fill
    targets = keys.table("targets")
    runs, version = _engine_name(keys), _version(keys)
    longest = keys.integer("max_model_len", 1, LONGEST)
    prompt, answer = _lengths(keys, defaults, longest)
    job = ServingJob(
        engine=fill("engine", runs, usual.engine),
        engine_version=version,
        kv_dtype=fill("kv_dtype", keys.choice("kv_dtype", list(KV_BYTES)), usual.kv_dtype),
        input_tokens=prompt,
        output_tokens=answer,
        concurrency=fill("concurrency", keys.integer("concurrency", 1, MOST_SEQUENCES), 1),
        memory_utilization=_utilization(keys, defaults, runs or usual.engine, version),
        max_model_len=longest,
        max_num_seqs=keys.integer("max_num_seqs", 1, MOST_SEQUENCES),
        max_num_batched_tokens=keys.integer("max_num_batched_tokens", 1, LONGEST),
        arrival_rate=keys.number("arrival_rate"),
        ttft_ms=targets.number("ttft_ms") if targets else None,
        tpot_ms=targets.number("tpot_ms") if targets else None,
        tokens_per_s=targets.number("tokens_per_s") if targets else None,
        mla_kv=keys.flag("mla_kv") is not False,
        window_kv=keys.flag("window_kv") is not False,
        lora=_lora(keys),
        adapters=keys.integer("adapters", 1, 10_000) or 1,
        draft_params=keys.integer("draft_params", 1, LARGEST) or 0,
        prefix_share=_prefix_share(keys),
    )
    if targets:
        targets.finish()
    if job.max_num_seqs is None:
        fill("max_num_seqs", None, f"the concurrency, {job.concurrency}")
    if job.max_model_len is None:
        fill("max_model_len", None, f"input_tokens + output_tokens, {job.sequence_tokens}")
    _doubt_engine(job, defaults)
    _check_length(keys, job)
    set_aside(keys, tuple(key for key in TRAINING_KEYS if key != "lora"), defaults)
    return job


def _engine_name(keys: Fields) -> str | None:
    """A listed engine under its own name, however it is spelt."""
    stated = keys.text("engine")
    return listed_name(stated) if stated and is_listed(stated) else stated


def _utilization(keys: Fields, defaults: Defaults, name: str, version: str) -> float | None:
    """What an engine takes where nothing is stated: its default, or None where the card decides."""
    stated = keys.number("memory_utilization", low=0.01, high=1.0)
    if stated is not None:
        return stated
    runs = engine(name, version)
    if runs.leaves or runs.fraction_of_ranks:
        by = "the card and the plan" if runs.leaves else "the tensor ranks"
        defaults.take("memory_utilization", f"by {by}", f"the rule of {runs.words}")
        return None
    reason = f"the default of {runs.words}" if runs.fraction else "no such setting is known"
    return defaults.take("memory_utilization", runs.fraction or 0.9, reason)


def _doubt_engine(job: ServingJob, defaults: Defaults) -> None:
    """Says where the figures of an engine are those of another one, or of another version."""
    if not is_listed(job.engine):
        reason = f"no figures of {job.engine} are published"
        defaults.take("engine figures", "those of vllm", reason)
    elif not job.engine_version and len(engines()[listed_name(job.engine)]) > 1:
        defaults.take("engine_version", engine(job.engine).words, "the usual range of versions")
    if doubt := doubt_of(job.engine, job.engine_version):
        used = engine(job.engine, job.engine_version)
        defaults.take("engine figures", used.words, doubt)


def _version(keys: Fields) -> str:
    version = keys.text("engine_version") or ""
    if not version.isascii():
        raise keys.refuse("engine_version", "a version in plain characters, such as 0.8.5")
    return version


def _prefix_share(keys: Fields) -> tuple[float, float]:
    """The least and the most of a request that is shared with others; nothing where not stated."""
    table = keys.table("prefix_share")
    if table is None:
        return (0.0, 0.0)
    least, most = table.count("low", high=1), table.count("high", high=1)
    table.finish()
    if least > most:
        raise keys.refuse("prefix_share", "low and high, shares from 0 to 1 in this order")
    return (least, most)


def _lengths(keys: Fields, defaults: Defaults, longest: int | None) -> tuple[int, int]:
    """Prompt and answer; what is assumed of them stays within a stated `max_model_len`."""
    usual = ServingJob()
    room = longest or LONGEST
    stated = keys.integer("input_tokens", 1, LONGEST)
    answer = keys.integer("output_tokens", 0, LONGEST)
    assumed = min(usual.output_tokens, room // 5, max(0, room - (stated or 0)))
    answer = defaults.fill("output_tokens", answer, assumed)
    prompt = max(1, min(usual.input_tokens, room - answer))
    return defaults.fill("input_tokens", stated, prompt), answer


def _check_length(keys: Fields, job: ServingJob) -> None:
    if job.max_model_len is not None and job.max_model_len < job.sequence_tokens:
        wanted = f"at least input_tokens + output_tokens = {job.sequence_tokens}"
        raise keys.refuse("max_model_len", wanted)


def _global_batch(keys: Fields, micro: int) -> int | None:
    """A whole number of micro-batches: no plan runs a part of one."""
    found = keys.integer("global_batch", micro, 10**9)
    if found is not None and found % micro:
        raise keys.refuse("global_batch", f"a multiple of micro_batch, {micro}")
    return found


def read_training(keys: Fields, defaults: Defaults, weights_format: str) -> TrainingJob:
    fill = defaults.fill
    optimizer = fill("optimizer", keys.choice("optimizer", optimizers()), "adamw")
    recompute = fill("recompute", keys.choice("recompute", list(Recompute)), "none")
    micro = fill("micro_batch", keys.integer("micro_batch", 1, MOST_SEQUENCES), 1)
    lora = _lora(keys)
    job = TrainingJob(
        optimizer=canonical(optimizer),
        precision=_precision(keys, defaults, optimizer),
        seq_len=fill("seq_len", keys.integer("seq_len", 1, LONGEST), 4096),
        micro_batch=micro,
        global_batch=_global_batch(keys, micro),
        recompute=Recompute(recompute),
        lora=lora,
        zero_stage=keys.integer("zero_stage", 1, 3) or 3,
        fused_attention=keys.choice("attention", ("flash", "unfused")) != "unfused",
        sequence_parallel=keys.flag("sequence_parallel") is not False,
        chunked_loss=keys.flag("chunked_loss") is True,
        bucket_elements=keys.integer("reduce_bucket_size", 0, 10**11),
        offload=Offload(keys.choice("offload", list(Offload)) or "none"),
        schedule=Schedule(keys.choice("schedule", list(Schedule)) or "1f1b"),
        tokens_to_train=keys.integer("tokens_to_train", 1, LARGEST),
        deadline_hours=keys.number("deadline_hours"),
        dataset_bytes=keys.integer("dataset_bytes", 0, LARGEST * 1000),
        checkpoint_bytes=keys.integer("checkpoint_bytes", 0, LARGEST),
    )
    if lora is None and weights_format not in ("bf16", "fp16", "fp32"):
        raise keys.refuse("weights_format", "bf16, fp16 or fp32, or a frozen base with lora")
    set_aside(keys, SERVING_KEYS, defaults)
    return job


def _precision(keys: Fields, defaults: Defaults, optimizer: str) -> Precision:
    """A word, or the four byte counts of a recipe of one's own."""
    if isinstance(keys.raw("precision"), str):
        word = keys.choice("precision", precisions(optimizer)) or "mixed"
        return recipe(optimizer, word)
    table = keys.table("precision")
    if table is None:
        word = precisions(optimizer)[0]
        defaults.fill("precision", None, word)
        return recipe(optimizer, word)
    names = ("param_bytes", "grad_bytes", "master_bytes", "optimizer_bytes")
    found = {name: table.count(name, high=64) for name in names}
    table.finish()
    return Precision(**found)


def _lora(keys: Fields) -> Lora | None:
    table = keys.table("lora")
    if table is None:
        return None
    usual = Lora()
    lora = Lora(
        rank=table.integer("rank", 1, 100_000) or usual.rank,
        targets=_targets(table) or usual.targets,
    )
    table.number("alpha")
    table.finish()
    return lora


def _targets(table: Fields) -> tuple[str, ...]:
    targets = table.texts("targets")
    if not set(targets) <= set(LORA_TARGETS):
        raise table.refuse("targets", f"names among {', '.join(LORA_TARGETS)}")
    return tuple(dict.fromkeys(targets))
