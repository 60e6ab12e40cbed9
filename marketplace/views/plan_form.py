"""What the plans page is asked for: a workload, and a listing or a machine of one's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evaluator.facts import declared
from evaluator.fields import InvalidWorkload
from evaluator.gpus import candidates, specs
from evaluator.jobs import Workload
from evaluator.links import LINK_WORDS
from evaluator.machine import LinkClass, Machine, worst_usable_bytes
from evaluator.workload import parse_workload, workload_presets
from marketplace import listings
from marketplace.evidence import Viewer
from marketplace.forms import (
    PASTE_LIMIT,
    as_workload,
    deadline_field,
    preset_names,
    read_json,
    tokens_field,
    with_end,
)
from marketplace.machines import machine_of
from marketplace.models import Listing
from marketplace.rented import own_machines
from marketplace.templating.controls import PlainSelect
from marketplace.views.asked import ENDS

MOST_GPUS = 72
"""GPUs of the largest machine that is rented as one."""
IMAGINED = "your own description"


class MachineForm(forms.Form):
    """A listing by its key; or a GPU model, a count, and a link that is taken as declared."""

    listing = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    gpu = forms.ChoiceField(label="GPU model", required=False, widget=PlainSelect)
    count = forms.IntegerField(label="GPUs", min_value=1, max_value=MOST_GPUS, required=False)
    link = forms.ChoiceField(
        label="Link between them",
        required=False,
        choices=[("", "not known"), *((kind.value, LINK_WORDS[kind]) for kind in LinkClass)],
    )
    plan = forms.CharField(required=False, max_length=80, widget=forms.HiddenInput)
    fabric = forms.ChoiceField(
        required=False, choices=[("", ""), ("unknown", "unknown")], widget=forms.HiddenInput
    )

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        names = dict.fromkeys(spec.model for spec in specs())
        choices = [("", "choose one"), *((name, name) for name in names)]
        self.fields["gpu"].choices = choices  # type: ignore[attr-defined]


class PlansForm(MachineForm):
    """With a preset, so that the address holds all of it."""

    workload = forms.ChoiceField(label="Workload", required=False, choices=preset_names)
    tokens = tokens_field()
    deadline = deadline_field()

    def clean_workload(self) -> Workload:
        documents = workload_presets()
        return parse_workload(documents[self.slug])

    def clean(self) -> dict[str, Any]:
        """A shortlist may have asked for another end than the preset's."""
        asked = self.cleaned_data
        if "workload" in asked:
            ends = (asked.get("tokens"), asked.get("deadline"))
            asked["workload"] = with_end(asked["workload"], *ends)
        return asked

    @property
    def ends(self) -> list[forms.BoundField]:
        """Fields of the end that are set; the preset's own is no question."""
        return [self[name] for name in ENDS if self[name].value()]

    @property
    def slug(self) -> str:
        return self.cleaned_data.get("workload") or next(iter(workload_presets()))


class PastedPlansForm(MachineForm):
    """With a workload as text, which is not kept."""

    workload = forms.CharField(max_length=PASTE_LIMIT, strip=False, widget=forms.HiddenInput)

    def clean_workload(self) -> Workload:
        try:
            return parse_workload(as_workload(read_json(self.cleaned_data["workload"])))
        except InvalidWorkload as error:
            raise ValidationError(str(error), code="workload") from error


@dataclass(frozen=True, slots=True)
class Chosen:
    """The machine to judge; `listing` is None where it was described and is not offered."""

    machine: Machine
    title: str
    listing: Listing | None = None


def chosen_machine(form: MachineForm, viewer: Viewer) -> Chosen | None:
    """None where neither a listing nor a GPU model is named. A listing that is not there is 404."""
    asked = form.cleaned_data
    if asked["listing"]:
        row = listings.detailed_or_404(asked["listing"])
        rented = own_machines(viewer, [row.pk]).get(row.pk)
        return Chosen(machine_of(row, rented), f"{row} at {row.provider.name}", row)
    if not asked["gpu"]:
        return None
    count = asked["count"] or 1
    machine = imagined(asked["gpu"], count, asked["link"])
    return Chosen(machine, f"{count} × {asked['gpu']}")


def imagined(model: str, count: int, link: str) -> Machine:
    """A machine as someone describes it: everything declared, nothing measured."""
    cards = candidates(model)
    return Machine(
        gpu_model=declared(model, IMAGINED),
        specs=cards,
        gpu_count=declared(count, IMAGINED),
        usable_bytes_per_gpu=declared(worst_usable_bytes(cards), IMAGINED),
        link=declared(LinkClass(link) if link else None, IMAGINED),
    )
