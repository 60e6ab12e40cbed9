"""What visitors may ask for: filters over listings, demands on a shortlist, a pasted workload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.utils import timezone

from evaluator.facts import Grade
from evaluator.fields import InvalidWorkload
from evaluator.jobs import Needs, Workload
from evaluator.machine import Availability, LinkClass
from evaluator.workload import parse_workload, workload_presets
from marketplace.expressions import Check, Node
from marketplace.models import Provider, RentedMachine
from marketplace.models.choices import choices
from marketplace.models.evidence import Change
from marketplace.shelf import RANKED_CURRENCY, shelf
from marketplace.templating.controls import PlainSelect

ANY = ("", "any")
PASTE_LIMIT = 200_000
FILE_LIMIT = 1_000_000
ROWS, MOST_ROWS = 20, 100
MOST_TOKENS = 10**15


def gpu_models() -> list[tuple[str, str]]:
    """Models that the catalogs offer now."""
    return [(name, name) for name in shelf().offered("gpu")]


class ListingDemands(forms.Form):
    """Filters of the listings table, each named in the address."""

    gpu = forms.ChoiceField(label="GPU model", required=False, widget=PlainSelect)
    count = forms.IntegerField(label="GPUs", min_value=1, max_value=100_000, required=False)
    provider = forms.ChoiceField(label="Provider", required=False, widget=PlainSelect)
    region = forms.CharField(label="Region holds", max_length=120, required=False)
    availability = forms.ChoiceField(
        label="Availability",
        choices=[ANY, *choices(Availability)],
        required=False,
        widget=PlainSelect,
    )
    link = forms.ChoiceField(
        label="Link",
        choices=[ANY, ("null", "unknown"), *choices(LinkClass)],
        required=False,
        widget=PlainSelect,
    )
    max_price = forms.DecimalField(
        label=f"Max {RANKED_CURRENCY}/hour", min_value=0, max_digits=12, required=False
    )
    gone = forms.ChoiceField(
        label="Gone listings",
        choices=[("", "hidden"), ("shown", "shown")],
        required=False,
        widget=PlainSelect,
    )
    source = forms.CharField(max_length=80, required=False, widget=forms.HiddenInput)
    configuration = forms.CharField(
        label="Same hardware", max_length=32, required=False, widget=forms.HiddenInput
    )

    def __init__(self, data: Mapping[str, Any] | None, models: Iterable[str]) -> None:
        super().__init__(data)
        providers = Provider.objects.values_list("slug", "name")
        named = ((name, name) for name in models)
        self.fields["gpu"].choices = [ANY, *named]  # type: ignore[attr-defined]
        self.fields["provider"].choices = [ANY, *providers]  # type: ignore[attr-defined]
        self.full_clean()

    @property
    def filters(self) -> dict[str, Node]:
        """By column of the shelf, what each filter asks of it."""
        asked = {
            name: value for name, value in self.cleaned_data.items() if value not in (None, "")
        }
        return {
            COLUMN_OF[name]: _check(name, value) for name, value in asked.items() if name != "gone"
        }


COLUMN_OF = {
    "gpu": "gpu",
    "count": "gpus",
    "provider": "provider",
    "region": "region",
    "availability": "availability",
    "link": "link",
    "max_price": "price",
    "source": "source",
    "configuration": "configuration",
}
OPS = {"count": "eq", "max_price": "lte", "region": "has"}


def _check(name: str, value: Any) -> Check:
    if (name, value) == ("link", "null"):
        return Check("unknown")
    plain = value.casefold() if isinstance(value, str) else value
    return Check(OPS.get(name, "is"), plain)


class Demands(forms.Form):
    """What a visitor asks of every candidate, on top of the workload's own needs."""

    limit = forms.IntegerField(
        label="Rows",
        min_value=1,
        max_value=MOST_ROWS,
        required=False,
        widget=forms.NumberInput(attrs={"placeholder": ROWS}),
    )
    regions = forms.CharField(
        label="Regions",
        required=False,
        max_length=300,
        widget=forms.TextInput(attrs={"placeholder": "eu-north, us-east"}),
    )
    max_price = forms.DecimalField(
        label=f"Max {RANKED_CURRENCY}/hour",
        min_value=Decimal("0.0001"),
        max_digits=12,
        required=False,
    )
    gpu = forms.ChoiceField(label="GPU model", required=False, widget=PlainSelect)
    min_grade = forms.ChoiceField(
        label="Least evidence",
        required=False,
        choices=[("", "any"), *((grade.word, grade.word) for grade in Grade if grade)],
        widget=PlainSelect,
    )

    tokens = forms.IntegerField(
        label="Tokens to train", min_value=1, max_value=MOST_TOKENS, required=False
    )
    deadline = forms.DecimalField(
        label="Deadline, hours", min_value=Decimal("0.01"), max_digits=9, required=False
    )
    group = forms.ChoiceField(
        label="Same hardware",
        required=False,
        choices=[("", "apart"), ("yes", "grouped")],
        widget=PlainSelect,
    )

    def __init__(self, data: Mapping[str, Any] | None, models: list[tuple[str, str]]) -> None:
        super().__init__(data)
        self.fields["gpu"].choices = [("", "any"), *models]  # type: ignore[attr-defined]

    @property
    def rows(self) -> int:
        return self.cleaned_data.get("limit") or ROWS

    def needs_on_top_of(self, own: Needs) -> Needs:
        """The workload's own needs, each replaced where the visitor set one."""
        asked = self.cleaned_data
        word = asked["min_grade"]
        return Needs(
            regions=_listed(asked["regions"]) or own.regions,
            max_price_per_hour=asked["max_price"] or own.max_price_per_hour,
            spot=own.spot,
            min_grade=Grade.from_word(word) if word else own.min_grade,
        )

    def demanded(self, own: Workload) -> Workload:
        """The workload with what the visitor set. A served model has no end to be reached."""
        needs, asked = self.needs_on_top_of(own.needs), self.cleaned_data
        if own.training is None:
            return replace(own, needs=needs)
        training = replace(
            own.training,
            tokens_to_train=asked["tokens"] or own.training.tokens_to_train,
            deadline_hours=float(asked["deadline"] or 0) or own.training.deadline_hours,
        )
        return replace(own, needs=needs, training=training)


class PresetDemands(Demands):
    """Demands on one of the preset workloads, named in the address."""

    field_order = ["workload"]

    workload = forms.ChoiceField(label="Workload", required=False, widget=PlainSelect)

    def __init__(self, data: Mapping[str, Any] | None, models: list[tuple[str, str]]) -> None:
        super().__init__(data, models)
        self.fields["workload"].choices = preset_names()  # type: ignore[attr-defined]

    def clean_workload(self) -> Workload:
        return preset(self.cleaned_data["workload"] or next(iter(workload_presets())))


class PastedDemands(Demands):
    """Demands on a workload that the visitor pastes; its text is kept as it was typed."""

    field_order = ["workload"]

    workload = forms.CharField(
        label="A workload file, or a model's config.json",
        widget=forms.Textarea(attrs={"spellcheck": "false", "rows": 14}),
        max_length=PASTE_LIMIT,
        strip=False,
    )

    def clean_workload(self) -> Workload:
        document = read_json(self.cleaned_data["workload"])
        try:
            return parse_workload(as_workload(document))
        except InvalidWorkload as error:
            raise ValidationError(str(error), code="workload") from error


@cache
def preset(slug: str) -> Workload:
    """Raises KeyError for a name that no preset has."""
    return parse_workload(workload_presets()[slug])


def preset_names() -> list[tuple[str, str]]:
    return [(slug, str(text.get("name", slug))) for slug, text in workload_presets().items()]


def read_json(text: str) -> Any:
    """Strict JSON: no NaN, no key twice. Raises ValidationError that tells what stands where. Some
    editors begin a file with a mark of its byte order, which is no part of it."""
    plain = text.removeprefix("\ufeff")
    try:
        document = json.loads(
            plain, object_pairs_hook=_once, parse_constant=_refuse, parse_int=_whole
        )
        json.dumps(document, ensure_ascii=False).encode()  # half a character cannot be shown again
        return document
    except json.JSONDecodeError as error:
        raise ValidationError(f"This is not JSON: {_stands(error)}.") from error
    except RecursionError as error:
        reason = "read brackets in brackets without end, expected a few levels"
        raise ValidationError(f"This JSON cannot be read: {reason}.") from error
    except ValueError as error:
        raise ValidationError(f"This JSON cannot be read: {error}.") from error


def _stands(error: json.JSONDecodeError) -> str:
    """Characters that only look like plain ones are spelt as codes."""
    rest = error.doc[error.pos : error.pos + SHOWN]
    place = f"line {error.lineno}, column {error.colno}"
    return f"{error.msg} at {place}, where {f'{rest!a} was read' if rest else 'it ends'}"


SHOWN = 12
MOST_DIGITS = 1000


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"read a number of {len(digits):,} digits, expected at most {MOST_DIGITS}")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")


def as_workload(document: Any) -> Any:
    """A bare config.json becomes a serving workload of that model, with every default named."""
    bare = isinstance(document, dict) and "model" not in document and "task" not in document
    if not (bare and {"model_type", "architectures", "hidden_size"} & document.keys()):
        return document
    return {"task": "serve", "model": document}


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


# --- evidence

RUN_BY = (
    ("renter", "me or my team, on a machine that we rent"),
    ("provider", "the provider"),
    ("third-party", "somebody else"),
)


class PreviewedForm(forms.Form):
    """A cleaned output that its uploader has seen, and where it comes from."""

    text = forms.CharField(strip=False, widget=forms.HiddenInput)
    ran_by = forms.ChoiceField(choices=RUN_BY, initial="renter", label="Who ran it?")
    machine = forms.ModelChoiceField(
        queryset=RentedMachine.objects.none(),
        required=False,
        label="On which of your machines?",
        empty_label="a machine that is new here",
    )
    ran_at = forms.DateTimeField(
        required=False, label="When (UTC)?", help_text="Such as 2026-11-30 09:00. Empty: now."
    )
    image = forms.CharField(required=False, max_length=200, label="Image or template")
    workload = forms.ChoiceField(
        required=False, label="Workload that ran", help_text="Where speeds were measured."
    )
    plan = forms.CharField(
        required=False,
        max_length=80,
        label="Plan that ran",
        help_text="As its page's address names it, such as tp2.",
    )

    def __init__(
        self,
        *arguments: Any,
        machines: QuerySet[RentedMachine],
        jobs: Sequence[tuple[str, str]] = (),
        **keywords: Any,
    ) -> None:
        """`jobs` are saved workloads, by slug and name, to choose from beside the presets."""
        super().__init__(*arguments, **keywords)
        self.fields["machine"].queryset = machines  # type: ignore[attr-defined]
        known = [("", "no workload"), *preset_names(), *jobs]
        self.fields["workload"].choices = known  # type: ignore[attr-defined]

    def clean_ran_at(self) -> datetime | None:
        """An output from the future would outlive its facts."""
        given: datetime | None = self.cleaned_data["ran_at"]
        if given and given > timezone.now():
            raise ValidationError("This time has not come yet.")
        return given


class PasteForm(PreviewedForm):
    """A terminal output as text or as a file."""

    text = forms.CharField(
        required=False, strip=False, widget=forms.Textarea, label="Output of the commands"
    )
    file = forms.FileField(required=False, label="Or a file with it", help_text="Up to 1 MB.")

    def clean_file(self) -> str:
        """The file's text; empty without one."""
        file: UploadedFile[Any] | None = self.cleaned_data["file"]
        if file is None:
            return ""
        if (file.size or 0) > FILE_LIMIT:
            raise ValidationError(f"The file has {file.size:,} bytes; {FILE_LIMIT:,} can be read.")
        body: bytes = file.read()
        return body.decode("utf-8", "replace")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        text: str = data.get("file") or data.get("text", "")
        if not text.strip() and "file" not in self.errors:
            self.add_error("text", "Paste an output or choose a file.")
        return {**data, "output": text}


class ChangeForm(forms.Form):
    change = forms.ChoiceField(choices=choices(Change))
