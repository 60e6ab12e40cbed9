"""Models that can be named instead of pasted, each from a published config."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from evaluator.configs import read_model
from evaluator.fields import InvalidWorkload
from evaluator.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class ModelPreset:
    """`config` holds the keys of the model's config.json; `source` is where they were read.

    `repository` is where engines find the checkpoint by name, "" where that is not listed.
    """

    slug: str
    name: str
    source: str
    config: Mapping[str, Any]
    repository: str = ""


@cache
def presets() -> Mapping[str, ModelPreset]:
    """Every preset by slug, in file order."""
    text = files("evaluator").joinpath("data/models.toml").read_text("utf-8")
    listed = [ModelPreset(**table) for table in tomllib.loads(text)["model"]]
    return MappingProxyType({one.slug: one for one in listed})


@cache
def preset(slug: str) -> ModelShape:
    """The shape of a preset such as "llama-3.1-8b". Raises InvalidWorkload for an unknown slug."""
    found = presets().get(slug)
    if found is None:
        near = get_close_matches(slug, presets(), n=3, cutoff=0.4)
        raise InvalidWorkload(
            "model.preset", slug, f"a known model, such as {', '.join(near or list(presets())[:3])}"
        )
    shape, _ = read_model(found.config)
    return replace(shape, name=found.name, source=found.source)


@cache
def repository_of(name: str) -> str:
    """Where engines find the checkpoint of a listed model, such as "meta-llama/Llama-3.1-8B"; ""
    for a model that is not listed.
    """
    return next((one.repository for one in presets().values() if one.name == name), "")
