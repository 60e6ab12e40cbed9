"""A vision tower beside the text model, where the config gives its sizes."""

from __future__ import annotations

from evaluator.config_layers import MOST_LAYERS, MOST_WIDTH
from evaluator.fields import Fields

GATED_TOWERS = ("pixtral",)
"""Towers whose MLP has three matrices and whose parts have no bias."""
RGB = 3


def tower_params(keys: Fields) -> int | None:
    """Parameters of a plain vision transformer and of one projection into the text model.

    After "An Image is Worth 16x16 Words" (arXiv 2010.11929, section 3.1), with biases, as in CLIP
    and SigLIP. None where the four sizes are not all there: other towers are built in other ways.
    """
    tower = keys.table("vision_config")
    if tower is None:
        return None
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
    text = keys.integer("hidden_size", 1, MOST_WIDTH) or 0
    return layers * layer + ends + hidden * text


def _positions(tower: Fields, patch: int, gated: bool) -> int:
    """One learned vector for each patch of the largest image; gated towers rotate instead."""
    image = tower.integer("image_size", 1, MOST_WIDTH) or 0
    return 0 if gated else int((image // patch) ** 2)
