"""The workload that an address names: a preset, with the end that a shortlist asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest

from evaluator.jobs import Workload
from evaluator.workload import workload_presets
from marketplace.forms import deadline_field, preset, tokens_field, with_end

ENDS = ("tokens", "deadline")


class EndForm(forms.Form):
    tokens = tokens_field()
    deadline = deadline_field()


@dataclass(frozen=True, slots=True)
class Asked:
    """`query` asks the same of another page; `ends` are the fields of the end that are set."""

    slug: str
    workload: Workload
    query: str
    ends: Sequence[forms.BoundField] = ()
    refused: Sequence[str] = ()


def asked_preset(request: HttpRequest) -> Asked:
    """The preset that an address names, or the first one. A served model has no end."""
    presets, named = workload_presets(), request.GET.get("workload", "")
    slug = named if named in presets else next(iter(presets))
    own, given = preset(slug), [name for name in ENDS if request.GET.get(name)]
    if not given or own.training is None:
        return Asked(slug, own, urlencode({"workload": slug}))
    form = EndForm(request.GET)
    form.is_valid()
    ends = {name: form.cleaned_data[name] for name in given if name in form.cleaned_data}
    return Asked(
        slug,
        with_end(own, ends.get("tokens"), ends.get("deadline")),
        urlencode({"workload": slug, **ends}),
        [form[name] for name in ends],
        [f"{name}={request.GET[name]}" for name in form.errors],
    )
