"""A model shape from a Hugging Face config.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evaluator.config_hybrids import Hybrid, is_hybrid, read_hybrid
from evaluator.config_keys import ALIASES, NEUTRAL_KEYS, PER_LAYER_KEYS, even, is_listed
from evaluator.config_layers import (
    MOST_LAYERS,
    MOST_WIDTH,
    cached_layers,
    expert_count,
    read_experts,
    read_recurrence,
    read_window,
    refuse_uneven_lists,
    strange_layers,
)
from evaluator.config_mixed import mean_format
from evaluator.config_mosaic import unnested
from evaluator.config_original import translated
from evaluator.config_quantised import (
    checkpoint_format,
    checkpoint_group,
    described_groups,
    kept_modules,
)
from evaluator.config_shared import is_shared, with_shared_blocks
from evaluator.config_towers import OUTER, tower_params
from evaluator.families import FAMILIES, PLAIN, STATE_KEYS, UNCOVERED_KEYS, Family, family_key
from evaluator.fields import Fields, InvalidWorkload
from evaluator.findings import Code, Finding, finding
from evaluator.parameters import computed_params
from evaluator.shapes import (
    Attention,
    Experts,
    Latent,
    ModelShape,
    Norms,
    QkNorm,
)

MOST_KEYS = 5_000
"""Twenty times the longest published config: a file of megabytes is something else."""

VISION, AUDIO = TOWERS = ("vision_config", "audio_config")
"""Models beside the text model: without their sizes, or `total_params`, the sum would be up to a
tenth too low."""

GENERATORS = re.compile(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration|ForImageTextToText)$")
"""Classes that end in an output head. Others, such as classifiers and drafts, hold other parts."""

NESTED = ("text_config", "llm_config")
EMPTY_MEANS_NONE = ("ssm_cfg", "quantization_config")
NEEDED_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


NAMELESS = "model"
"""What a model is called whose file names it nowhere."""


def read_model(
    document: Mapping[str, Any], path: str = "model", *, whole: bool = False
) -> tuple[ModelShape, list[Finding]]:
    """The shape that a config.json describes, and findings on what was not understood.

    `total_params` may stand beside the published keys. A nested `text_config` is read in place
    of the outer keys. With `whole` a missing size of a known family is refused; without it such a
    model has no number of parameters. Raises InvalidWorkload.
    """
    stated = even(Fields(document, path).document)
    _refuse_loose_parts(Fields(stated, path))
    flat = _flatten(unnested(translated(stated, path), path))
    if len(flat) > MOST_KEYS:
        raise InvalidWorkload(
            path, f"{len(flat):,} keys", f"a config of at most {MOST_KEYS:,} keys"
        )
    uneven = {key for key in PER_LAYER_KEYS if is_listed(flat.get(key))}
    keys = Fields({key: value for key, value in flat.items() if key not in uneven}, path)
    if not uneven:
        _refuse_strangers(keys)
    name = keys.text("name") or keys.text("_name_or_path") or NAMELESS
    architecture = _architecture(keys)
    family = _family(architecture)
    tower = next((key for key in TOWERS if flat.get(key) and not keys.has("total_params")), None)
    seen = tower_params(keys) if tower == VISION and not flat.get(AUDIO) else None
    hybrid = read_hybrid(keys, architecture, routed=expert_count(keys) > 0) if family else None
    lacking = is_hybrid(architecture) and hybrid is None
    uncovered = bool(uneven or (tower and seen is None) or lacking)
    uncovered = uncovered or family is None or _uncovered(keys, family, hybrid, whole=whole)
    feeds = hybrid is None or bool(hybrid.dense_layers())
    shape = _shape(keys, family or PLAIN, name, architecture, computable=not uncovered, feeds=feeds)
    shape = hybrid.layered(shape) if hybrid else shape
    if not uneven and (seen or not tower):
        shape = _counted(keys, shape, seen or 0)
    shape = with_shared_blocks(keys, shape) if is_shared(architecture) else shape
    if groups := described_groups(keys):
        shape = replace(shape, checkpoint_format=mean_format(shape, groups))
    orderless = lacking and shape.cached_layers is None
    if uneven or orderless or not _cache_follows(keys, family):
        shape = replace(shape, dimensioned=False)
    beside = f" with a {tower}" if tower else ""
    return shape, _findings(keys, shape, (architecture or name) + beside)


def _counted(keys: Fields, shape: ModelShape, seen: int) -> ModelShape:
    """With the parameters of a tower beside the text model. A stated total stands."""
    text = computed_params(shape)
    if keys.has("total_params") or text is None or not seen:
        return shape
    return replace(shape, given_params=text + seen)


def _family(architecture: str) -> Family | None:
    """None for a family that is not listed, and for a class with another head than a decoder's."""
    if not architecture:
        return PLAIN
    return FAMILIES.get(family_key(architecture)) if _may_generate(architecture) else None


def _cache_follows(keys: Fields, family: Family | None) -> bool:
    """A decoder caches keys and values of every layer. Of a family that is not listed this is
    believed only where heads and sizes are stated and no key is left that might change it."""
    if keys.flag("is_encoder_decoder"):
        return False
    stated = keys.has("num_key_value_heads") and keys.has("intermediate_size")
    return family is not None or (stated and not _ignored(keys))


def _flatten(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Text keys outrank outer ones; the older names of some families become today's."""
    text = document.get(NESTED[0]) or document.get(NESTED[1])
    merged = dict(document)
    if isinstance(text, Mapping):
        merged = {**document, OUTER: document.get("architectures"), **text}
    for key in NESTED:
        merged.pop(key, None)
    for old, new in ALIASES.items():
        if old in merged and merged.get(new) in (None, merged[old]):
            merged[new] = merged.pop(old)
    for key in (key for key in EMPTY_MEANS_NONE if merged.get(key) == {}):
        merged.pop(key)
    return merged


def _refuse_loose_parts(keys: Fields) -> None:
    for part in NESTED:
        keys.table(part)


def _refuse_strangers(keys: Fields) -> None:
    """A file that is no model config at all is refused as a whole."""
    if keys.has("total_params") or any(map(keys.has, ("hidden_size", "num_hidden_layers"))):
        return
    expected = "a Hugging Face config.json with hidden_size and num_hidden_layers"
    if keys.has("tokenizer_class") or keys.has("chat_template"):
        raise InvalidWorkload(keys.path, "a tokenizer config", expected)
    raise InvalidWorkload(keys.path, ", ".join(keys.keys()[:6]) or "no keys", expected)


def _architecture(keys: Fields) -> str:
    """The class name where there is one, since `model_type` of a nested part is less exact."""
    keys.raw(OUTER)
    listed = keys.texts("architectures")
    named = keys.text("architecture") or (listed[0] if listed else None)
    model_type = keys.text("model_type")
    if named and (family_key(named) in FAMILIES or not _may_generate(named)):
        return named
    return model_type or named or ""


def _may_generate(named: str) -> bool:
    other_head = re.search(r"For[A-Z]|Model$", named) and not GENERATORS.search(named)
    return not other_head


def _uncovered(keys: Fields, family: Family, hybrid: Hybrid | None, *, whole: bool) -> bool:
    """Layers of a kind that the formulas leave out, or too few keys to compute from."""
    extra = any(map(keys.has, UNCOVERED_KEYS if hybrid else (*UNCOVERED_KEYS, *STATE_KEYS)))
    odd = keys.flag("is_encoder_decoder") is True or _projected(keys)
    if (hybrid is None and strange_layers(keys)) or extra or odd:
        return True
    sized = {"num_attention_heads": family.heads, "vocab_size": family.vocab}
    missing = [key for key in NEEDED_KEYS if not (keys.has(key) or sized.get(key))]
    if missing and whole and not keys.has("total_params"):
        raise keys.refuse(missing[0], "a whole number, or total_params for the whole model")
    return bool(missing)


def _projected(keys: Fields) -> bool:
    """OPT-350M alone: an embedding narrower than the layers, and norms after them."""
    width = keys.integer("word_embed_proj_dim", 1, MOST_WIDTH)
    narrow = width is not None and width != keys.raw("hidden_size")
    return narrow or keys.flag("do_layer_norm_before") is False


def _shape(
    keys: Fields, family: Family, name: str, architecture: str, *, computable: bool, feeds: bool
) -> ModelShape:
    layers = keys.integer("num_hidden_layers", 1, MOST_LAYERS) or 1
    hidden = keys.integer("hidden_size", 1, MOST_WIDTH) or 1
    refuse_uneven_lists(keys, layers)
    linear_bias = _all_biased(keys)
    experts = read_experts(keys, family, layers)
    return ModelShape(
        name=name,
        hidden=hidden,
        layers=layers,
        vocab=_vocab(keys, family),
        attention=_attention(keys, family, hidden),
        mlp_size=_mlp_size(
            keys, family, hidden, required=computable and feeds and not _all_routed(experts, layers)
        ),
        gated=_first(keys.flag("gated_mlp"), family.gated),
        mlp_bias=_first(keys.flag("mlp_bias"), keys.flag("use_bias"), family.mlp_bias)
        or linear_bias,
        head_bias=_first(keys.flag("lm_head_bias"), family.head_bias),
        tied=_first(keys.flag("tie_word_embeddings"), family.tied),
        norms=_norms(keys, family, linear_bias),
        learned_positions=_positions(keys, family),
        experts=experts,
        window=read_window(keys, family, layers),
        recurrence=read_recurrence(keys, layers, hidden),
        architecture=architecture,
        computable=computable,
        dimensioned=_dimensioned(keys, family),
        cached_layers=cached_layers(keys, layers),
        given_params=keys.integer("total_params", 1),
        kept_16bit=kept_modules(keys),
        checkpoint_format=checkpoint_format(keys),
        checkpoint_group=checkpoint_group(keys),
        source=keys.text("source", 2000) or "",
    )


def _all_biased(keys: Fields) -> bool:
    """`bias` is Falcon's word for it."""
    return _stated_flag(keys, ("linear_bias", "bias")) is True


def _dimensioned(keys: Fields, family: Family) -> bool:
    """Layers and heads are there, so that the cache follows."""
    stored = keys.has("num_key_value_heads") and keys.has("head_dim")
    heads = keys.has("num_attention_heads") or family.heads is not None
    return keys.has("num_hidden_layers") and (heads or stored)


def _first(*values: bool | None) -> bool:
    return next(value for value in values if value is not None)


def _vocab(keys: Fields, family: Family) -> int:
    stated = keys.integer("vocab_size", 1, MOST_WIDTH) or family.vocab or 1
    return keys.integer("padded_vocab_size", 1, MOST_WIDTH) or stated


def _attention(keys: Fields, family: Family, hidden: int) -> Attention:
    stated = keys.integer("num_attention_heads", 1, MOST_WIDTH) or family.heads
    heads = stated or keys.integer("num_key_value_heads", 1, MOST_WIDTH) or 1
    kv_heads = _kv_heads(keys, family, heads)
    if heads % kv_heads:
        raise keys.refuse("num_key_value_heads", f"a divisor of the {heads} attention heads")
    latent = _latent(keys)
    stated_bias = keys.flag("attention_bias")
    linear_bias = _all_biased(keys)
    output = keys.flag("attention_out_bias")
    if output is None:
        output = stated_bias and family.attention_bias_on_output
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(keys, family, hidden, heads, latent),
        latent=latent,
        qkv_bias=_first(keys.flag("qkv_bias"), stated_bias, linear_bias or family.qkv_bias),
        output_bias=_first(output, linear_bias or family.output_bias),
        qk_norm=_qk_norm(keys, family),
        sinks=family.sinks,
    )


def _kv_heads(keys: Fields, family: Family, heads: int) -> int:
    if keys.flag("multi_query") and not keys.flag("new_decoder_architecture"):
        return 1
    return keys.integer("num_key_value_heads", 1, MOST_WIDTH) or family.kv_heads or heads


def _head_dim(keys: Fields, family: Family, hidden: int, heads: int, latent: Latent | None) -> int:
    stated = keys.integer("head_dim", 1, MOST_WIDTH) or family.head_dim
    if stated:
        return stated
    if latent:
        return latent.nope_dim + latent.rope_dim
    if hidden > 1 and hidden % heads:
        raise keys.refuse("num_attention_heads", f"a divisor of hidden_size {hidden}, or head_dim")
    return max(1, hidden // heads)


def _latent(keys: Fields) -> Latent | None:
    rank = keys.integer("kv_lora_rank", 1, MOST_WIDTH)
    if rank is None:
        return None
    sizes = {}
    for key in ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"):
        sizes[key] = keys.integer(key, 1, MOST_WIDTH)
        if sizes[key] is None:
            raise keys.refuse(key, "a whole number, as kv_lora_rank is given")
    rope, nope, value = (size or 0 for size in sizes.values())
    return Latent(rank, rope, nope, value, keys.integer("q_lora_rank", 1, MOST_WIDTH))


def _qk_norm(keys: Fields, family: Family) -> QkNorm:
    stated = _stated_flag(keys, ("qk_norm", "use_qk_norm", "qk_layernorm"))
    if stated is None:
        return family.qk_norm
    return family.qk_norm_form if stated else QkNorm.NONE


def _stated_flag(keys: Fields, names: tuple[str, ...]) -> bool | None:
    return next((value for name in names if (value := keys.flag(name)) is not None), None)


def _norms(keys: Fields, family: Family, linear_bias: bool) -> Norms:
    return Norms(
        per_layer=_norms_per_layer(keys, family),
        bias=family.norm_bias or (linear_bias and keys.has("learned_positions")),
        of_embedding=family.embedding_norm,
        final=family.final_norm,
    )


def _norms_per_layer(keys: Fields, family: Family) -> int:
    """Attention and MLP that run side by side may share one norm (Falcon, StableLM 2 12B)."""
    stated = keys.integer("norms_per_layer", 0, 8)
    beside = keys.integer("num_ln_in_parallel_attn", 1, 2)
    if stated is not None:
        return stated
    if keys.flag("parallel_attn") is False:
        return max(family.norms_per_layer, 2)
    if keys.flag("use_parallel_residual") and family.parallel_shares_norm:
        return 1
    wide = keys.flag("new_decoder_architecture") is True
    return beside or (max(family.norms_per_layer, 2) if wide else family.norms_per_layer)


def _mlp_size(keys: Fields, family: Family, hidden: int, *, required: bool) -> int:
    names = ("intermediate_size_mlp", "shared_intermediate_size")
    dense = next((size for name in names if (size := keys.integer(name, 1, MOST_WIDTH))), None)
    stated = keys.integer("intermediate_size", 1, MOST_WIDTH)
    if not (dense or stated) and family.inner_multiple:
        return family.inner_multiple * hidden
    if not (dense or stated) and required:
        raise keys.refuse("intermediate_size", "the inner size of the MLP as a whole number")
    return dense or stated or 0


def _all_routed(experts: Experts | None, layers: int) -> bool:
    return experts is not None and not experts.dense_layers


def _positions(keys: Fields, family: Family) -> int:
    stated = keys.integer("learned_positions", 0, MOST_WIDTH)
    longest = keys.integer("max_position_embeddings", 1, 10**9) or 0
    if stated is not None or family.extra_positions is None:
        return stated or 0
    return longest + family.extra_positions


def _findings(keys: Fields, shape: ModelShape, architecture: str) -> list[Finding]:
    found = []
    if not shape.computable and shape.given_params is None:
        found.append(finding(Code.ARCHITECTURE_UNKNOWN, architecture=architecture))
    if ignored := _ignored(keys):
        found.append(
            finding(Code.MODEL_KEYS_IGNORED, keys=", ".join(key[:40] for key in ignored[:40]))
        )
    return found


def _ignored(keys: Fields) -> list[str]:
    """Keys that nothing read and that may matter."""
    return [key for key in keys.unread() if key not in NEUTRAL_KEYS]
