"""A vision tower beside the text model, where the config gives its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluator.config_layers import MOST_LAYERS, MOST_WIDTH
from evaluator.fields import Fields

GATED_TOWERS = ("pixtral",)
"""Towers whose MLP has three matrices and whose parts have no bias."""
OUTER = "architectures of the whole model"
"""Where the class of the whole model is kept beside that of its text model."""
RGB = 3
FRAMES, MERGED = 2, 2
"""Qwen's towers look at two frames at once and join two by two patches, where they do not say."""


def tower_params(keys: Fields) -> int | None:
    """Parameters of the vision tower and of its projection into the text model.

    None where a size is missing, or the tower is built in another way than those listed here.
    """
    tower = keys.table("vision_config")
    if tower is None:
        return None
    text = keys.integer("hidden_size", 1, MOST_WIDTH) or 0
    if tower.has("depth"):
        counted = QWEN_TOWERS.get(_family(keys, tower))
        return counted(tower, text) if counted else None
    projection = PROJECTIONS.get(_outer(keys), _one_projection)
    return _plain_tower(tower, lambda hidden: projection(keys, tower, hidden, text))


def _outer(keys: Fields) -> str:
    """The class of the whole model."""
    listed = keys.texts(OUTER) or keys.texts("architectures")
    return listed[0] if listed else keys.text("architecture") or ""


def _one_projection(keys: Fields, tower: Fields, hidden: int, text: int) -> int:
    return hidden * text


def _two_projections(keys: Fields, tower: Fields, hidden: int, text: int) -> int:
    """LLaVA 1.5 (arXiv 2310.03744, section 3.2): an MLP of two matrices with biases."""
    return (hidden + 1) * text + (text + 1) * text


def _merged_projections(keys: Fields, tower: Fields, hidden: int, text: int) -> int:
    """Mistral Small 3.1 joins two by two patches, a norm before, and has no biases."""
    return _merge(tower) * hidden * hidden + hidden + hidden * text + text * text


def _shuffled_projections(keys: Fields, tower: Fields, hidden: int, text: int) -> int:
    """InternVL (arXiv 2404.16821, section 3.1) joins patches, a norm before an MLP of two."""
    ratio = keys.number("downsample_ratio", low=0.01, high=1) or 0.5
    wide = round(hidden / ratio**2)
    return 2 * wide + (wide + 1) * text + (text + 1) * text


def _joined_projection(keys: Fields, tower: Fields, hidden: int, text: int) -> int:
    """Idefics 3 (arXiv 2408.12637, section 3): joined patches, one matrix without a bias."""
    return int((keys.integer("scale_factor", 1, 64) or 2) ** 2) * hidden * text


Projection = Callable[[Fields, Fields, int, int], int]
PROJECTIONS: Mapping[str, Projection] = {
    "LlavaForConditionalGeneration": _two_projections,
    "LlavaNextForConditionalGeneration": _two_projections,
    "Mistral3ForConditionalGeneration": _merged_projections,
    "InternVLChatModel": _shuffled_projections,
    "Idefics3ForConditionalGeneration": _joined_projection,
    "SmolVLMForConditionalGeneration": _joined_projection,
}


def _plain_tower(tower: Fields, projection: Callable[[int], int]) -> int | None:
    """A plain vision transformer and its projection.

    After "An Image is Worth 16x16 Words" (arXiv 2010.11929, section 3.1), with biases, as in CLIP
    and SigLIP.
    """
    hidden = tower.integer("hidden_size", 1, MOST_WIDTH)
    layers = tower.integer("num_hidden_layers", 1, MOST_LAYERS)
    inner = tower.integer("intermediate_size", 1, MOST_WIDTH)
    patch = tower.integer("patch_size", 1, MOST_WIDTH)
    if not (hidden and layers and inner and patch):
        return None
    gated = tower.text("model_type") in GATED_TOWERS
    layer = 4 * hidden * hidden + (3 if gated else 2) * hidden * inner
    layer += 2 * hidden if gated else 9 * hidden + inner
    ends = RGB * patch * patch * hidden + _positions(tower, patch, gated) * hidden + 3 * hidden
    return layers * layer + ends + projection(hidden)


def _positions(tower: Fields, patch: int, gated: bool) -> int:
    """One learned vector for each patch of the largest image; gated towers rotate instead."""
    image = tower.integer("image_size", 1, MOST_WIDTH) or 0
    return 0 if gated else int((image // patch) ** 2)


def _family(keys: Fields, tower: Fields) -> str:
    """Towers of one family may name none of their own: then the outer model says which."""
    return tower.text("model_type") or CLASSES.get(_outer(keys), "")


CLASSES: Mapping[str, str] = {
    "Qwen2VLForConditionalGeneration": "qwen2_vl",
    "Qwen2_5_VLForConditionalGeneration": "qwen2_5_vl",
    "Qwen3VLForConditionalGeneration": "qwen3_vl",
    "Qwen3VLMoeForConditionalGeneration": "qwen3_vl_moe",
    "Qwen3_5ForConditionalGeneration": "qwen3_5",
    "Qwen3_5MoeForConditionalGeneration": "qwen3_5_moe",
}


def _qwen2(tower: Fields, text: int) -> int | None:
    """Qwen2-VL: plain MLP of `mlp_ratio` widths, layer norms with bias."""
    hidden, ratio = tower.integer("embed_dim", 1, MOST_WIDTH), tower.integer("mlp_ratio", 1, 64)
    ends = _patches(tower, hidden)
    if not (hidden and ratio and ends):
        return None
    mlp = 2 * ratio * hidden * hidden + (ratio + 1) * hidden
    layers = _layers(tower, hidden, mlp, norms=4)
    return layers + ends + 2 * hidden + _merger(tower, hidden, text)


def _qwen25(tower: Fields, text: int) -> int | None:
    """Qwen2.5-VL: gated MLP with biases, norms without."""
    hidden, inner = _widths(tower)
    ends, out = _patches(tower, hidden), tower.integer("out_hidden_size", 1, MOST_WIDTH) or text
    if not (hidden and inner and ends):
        return None
    layers = _layers(tower, hidden, 3 * hidden * inner + 2 * inner + hidden, norms=2)
    return layers + ends + hidden + _merger(tower, hidden, out)


def _qwen3(tower: Fields, text: int) -> int | None:
    """Qwen3-VL and Qwen3.5: learned positions, and a further merger for each layer of deepstack."""
    hidden, inner = _widths(tower)
    ends, out = _patches(tower, hidden), tower.integer("out_hidden_size", 1, MOST_WIDTH) or text
    places = tower.integer("num_position_embeddings", 1, MOST_WIDTH)
    if not (hidden and inner and ends and places):
        return None
    layers = _layers(tower, hidden, 2 * hidden * inner + inner + hidden, norms=4)
    merger, wide = _merger(tower, hidden, out), 2 * hidden * _merge(tower)
    taps = _taps(tower)
    if taps is None:
        return None
    return layers + ends + (places + 3) * hidden + merger + taps * (wide + merger)


def _taps(tower: Fields) -> int | None:
    """Layers of deepstack. Qwen3.5 has none; None where Qwen3-VL does not list its own."""
    listed = tower.raw("deepstack_visual_indexes")
    if listed is None:
        return 0 if (tower.text("model_type") or "").startswith("qwen3_5") else None
    if not isinstance(listed, list | tuple) or len(listed) > MOST_LAYERS:
        raise tower.refuse("deepstack_visual_indexes", "a list of layers")
    return len(listed)


def _widths(tower: Fields) -> tuple[int | None, int | None]:
    return (
        tower.integer("hidden_size", 1, MOST_WIDTH),
        tower.integer("intermediate_size", 1, MOST_WIDTH),
    )


def _patches(tower: Fields, hidden: int | None) -> int:
    """The first convolution over a patch of some frames, without bias. 0 without a patch size."""
    patch = tower.integer("patch_size", 1, MOST_WIDTH) or 0
    frames = tower.integer("temporal_patch_size", 1, MOST_WIDTH) or FRAMES
    return RGB * frames * patch * patch * (hidden or 0)


def _layers(tower: Fields, hidden: int, mlp: int, norms: int) -> int:
    """Attention with biases in every layer; `norms` vectors of the width."""
    depth = tower.integer("depth", 1, MOST_LAYERS) or 0
    return depth * (4 * hidden * hidden + 4 * hidden + mlp + norms * hidden)


def _merge(tower: Fields) -> int:
    """Patches that are joined to one token."""
    return int((tower.integer("spatial_merge_size", 1, 64) or MERGED) ** 2)


def _merger(tower: Fields, hidden: int, out: int) -> int:
    wide = hidden * _merge(tower)
    return wide * wide + wide + wide * out + out


QWEN_TOWERS: Mapping[str, Callable[[Fields, int], int | None]] = {
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen25,
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
}
"""By `model_type`. The sizes of the published classes; three of them give the published totals of
Qwen2-VL 7B, Qwen2.5-VL 7B and Qwen3-VL 8B to the parameter."""
