"""The controls of a workload: a form that becomes a workload document and a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evaluator.engines import engines
from evaluator.fields import InvalidWorkload
from evaluator.formats import KV_BYTES, weight_format_names
from evaluator.jobs import Recompute, Task, Workload
from evaluator.models import presets
from evaluator.plans import Plan, refusal_of
from evaluator.recipes import RECIPES
from evaluator.workload import parse_workload, workload_presets
from marketplace.asked_numbers import PlainNumber, WholeNumber
from marketplace.forms import PASTE_LIMIT, as_workload, read_json
from marketplace.templating.controls import PlainSelect

LENGTHS = tuple(2**n for n in range(7, 18))
BATCHES = tuple(2**n for n in range(8))
CROWD = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
DEGREES = tuple(2**n for n in range(7))
"""Stops of the sliders; the number beside a slider takes any value."""

SERVED = ("engine", "engine_version", "kv_dtype", "input_tokens", "output_tokens", "concurrency")
SERVED_SHARE = "memory_utilization"
TRAINED = (
    *("optimizer", "precision", "seq_len", "micro_batch", "global_batch", "recompute"),
    *("tokens_to_train", "deadline_hours"),
)
PLANNED = ("tp", "pp")
OF_TASK: Mapping[str, tuple[str, ...]] = {
    "serve": (*SERVED, SERVED_SHARE),
    "train": TRAINED,
    "finetune": (*TRAINED, "lora_rank"),
}
DEGREES_OF_TASK = {"serve": (*PLANNED, "replicas"), "train": (*PLANNED, "shard")}
TASKS = (("serve", "Serve"), ("train", "Train"), ("finetune", "Fine-tune"))


def _choices(words: Iterable[str], empty: str) -> list[tuple[str, str]]:
    """`empty` says what an empty control takes, and that no one chose it where it is a word too."""
    named = [(word, word) for word in words]
    return [("", f"{empty}, the usual" if (empty, empty) in named else empty), *named]


def _number(
    label: str, stops: tuple[int, ...], most: int, usual: object = "the usual"
) -> WholeNumber:
    return WholeNumber(
        label=label,
        min_value=1,
        max_value=most,
        required=False,
        widget=forms.NumberInput(
            attrs={"data-stops": ",".join(map(str, stops)), "placeholder": usual}
        ),
    )


class WorkloadForm(forms.Form):
    """Every control of every task; `shown` are those that the chosen task reads.

    An empty control takes the evaluator's default, which the answer names.
    """

    task = forms.ChoiceField(choices=TASKS, required=False, widget=forms.HiddenInput)
    model = forms.ChoiceField(label="Model", required=False, widget=PlainSelect)
    weights_format = forms.ChoiceField(
        label="Weights in",
        choices=lambda: _choices(weight_format_names(), "the usual"),
        required=False,
        widget=PlainSelect,
    )
    engine = forms.ChoiceField(
        label="Engine", choices=_choices(engines(), "vllm"), required=False, widget=PlainSelect
    )
    engine_version = forms.CharField(
        label="Its version",
        max_length=40,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "the usual", "spellcheck": "false"}),
    )
    kv_dtype = forms.ChoiceField(
        label="KV cache in", choices=_choices(KV_BYTES, "bf16"), required=False, widget=PlainSelect
    )
    input_tokens = _number("Prompt, tokens", LENGTHS, 10**8)
    output_tokens = _number("Answer, tokens", LENGTHS, 10**8)
    concurrency = _number("Requests at once", CROWD, 10**6, 1)
    memory_utilization = PlainNumber(
        label="Share the engine takes",
        min_value=0.01,
        max_value=1,
        required=False,
        widget=forms.NumberInput(
            attrs={
                "step": "0.01",
                "data-stops": "0.5,0.6,0.7,0.8,0.9,0.95",
                "placeholder": "the usual",
            }
        ),
    )
    optimizer = forms.ChoiceField(
        label="Optimizer",
        choices=_choices(dict.fromkeys(name for name, _ in RECIPES), "adamw"),
        required=False,
        widget=PlainSelect,
    )
    precision = forms.ChoiceField(
        label="Precision",
        choices=_choices(dict.fromkeys(word for _, word in RECIPES), "the usual"),
        required=False,
        widget=PlainSelect,
    )
    seq_len = _number("Sequence, tokens", LENGTHS, 10**8)
    micro_batch = _number("Micro-batch", BATCHES, 10**6, 1)
    global_batch = _number("Global batch", CROWD, 10**9, "not stated")
    recompute = forms.ChoiceField(
        label="Recompute", choices=_choices(Recompute, "none"), required=False, widget=PlainSelect
    )
    tokens_to_train = _number(
        "Tokens to train", (10**8, 10**9, 10**10, 10**11, 10**12), 10**15, "not stated"
    )
    deadline_hours = PlainNumber(
        label="Deadline, hours", min_value=0.01, max_value=10**6, required=False
    )
    lora_rank = _number("LoRA rank", BATCHES, 100_000)
    tp = _number("Tensor parallel degree", DEGREES, 1024, 1)
    pp = _number("Pipeline stages", DEGREES, 1024, 1)
    replicas = _number("Replicas", DEGREES, 1024, 1)
    shard = _number("Sharded over (FSDP)", DEGREES, 4096, 1)

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self.fixed: list[str] = []
        self.task_on_page = self.chosen_task
        self.fill_models()
        for name, field in self.fields.items():
            field.widget.attrs["aria-describedby"] = f"id_{name}_error"

    def fill_models(self) -> None:
        known = [(slug, one.name) for slug, one in presets().items()]
        self.fields["model"].choices = known  # type: ignore[attr-defined]

    @property
    def known_models(self) -> int:
        return len(presets())

    @property
    def chosen_task(self) -> str:
        word = str(self.data.get("task") or "serve")
        return word if word in OF_TASK else "serve"

    @property
    def controls(self) -> list[forms.BoundField]:
        return [self[name] for name in ("weights_format", *OF_TASK[self.chosen_task])]

    @property
    def places(self) -> list[forms.BoundField]:
        """The controls that the asking page shows: where an error of each may stand."""
        task = self.task_on_page
        names = ("model", "weights_format", *OF_TASK[task], *degrees_of(task))
        return [self[name] for name in names]

    @property
    def degrees(self) -> list[forms.BoundField]:
        return [self[name] for name in degrees_of(self.chosen_task)]

    def clean(self) -> dict[str, Any]:
        """The workload and its plan, or an error beside the control that stands against them."""
        data = super().clean() or self.cleaned_data
        if self.errors:
            return data
        try:
            workload = parse_workload(self.document(data))
        except InvalidWorkload as error:
            self.add_error(self.field_of(error.field), ValidationError(str(error)))
            return data
        plan = _plan(data, self.chosen_task)
        refused = refusal_of(workload, plan)
        if refused:
            name = "tp" if plan.tp > 1 else "pp" if plan.pp > 1 else "shard"
            self.add_error(name, f"{refused.sentence} {refused.remedy}")
        return {**data, "workload": workload, "plan": plan}

    def document(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The workload file that the controls spell. A pasted file's own keys outweigh them."""
        task = self.chosen_task
        chosen = {name: data.get(name) for name in ("weights_format", *OF_TASK[task])}
        lora = {"lora": {"rank": chosen.pop("lora_rank") or 16}} if task == "finetune" else {}
        kept = {name: value for name, value in chosen.items() if value not in (None, "")}
        model = self.named_model(data)
        return {**self.left_over(task, model), "task": task, "model": model, **kept, **lora}

    def left_over(self, task: str, model: Any) -> dict[str, Any]:
        """What a preset says beyond its controls. Its name goes once its model does."""
        base = workload_presets().get(str(self.data.get("workload")), {})
        if base.get("task") != task or base.get("model") != model:
            return {}
        controlled = {"task", "model", "weights_format", "lora", *OF_TASK[task]}
        return {key: value for key, value in base.items() if key not in controlled}

    def named_model(self, data: Mapping[str, Any]) -> Any:
        return {"preset": data.get("model") or next(iter(presets()))}

    def field_of(self, place: str) -> str:
        """The control that an error of the document speaks of."""
        name = place.partition(".")[0]
        name = "lora_rank" if name == "lora" else name
        return name if name in self.fields else "model"


class PastedForm(WorkloadForm):
    """The same controls under a model's config.json, or under a whole workload file."""

    model = forms.CharField(  # type: ignore[assignment]  # the same key, another way in
        label="A model's config.json, or a whole workload file",
        widget=forms.Textarea(attrs={"spellcheck": "false", "rows": 12}),
        max_length=PASTE_LIMIT,
        strip=False,
    )

    def __init__(self, data: Mapping[str, Any]) -> None:
        told = _task_of(str(data.get("model", "")))
        super().__init__({**data, "task": told or data.get("task")})
        shown = str(data.get("task"))
        self.task_on_page = shown if shown in OF_TASK else "serve"

    def fill_models(self) -> None:
        """A text names its model itself."""

    def clean_model(self) -> Any:
        return read_json(self.cleaned_data["model"])

    def named_model(self, data: Mapping[str, Any]) -> Any:
        return data["model"]

    def document(self, data: Mapping[str, Any]) -> dict[str, Any]:
        spelled = super().document(data)
        pasted = as_workload(data["model"])
        if not isinstance(pasted, dict) or "model" not in pasted:
            return spelled
        own = {"model": pasted["model"]} if pasted is not data["model"] else pasted
        self.fixed = sorted((own.keys() & spelled.keys()) - {"model", "task"})
        return {**spelled, **own}


def _task_of(text: str) -> str:
    """The task that a pasted workload file names; empty for a config.json or an unreadable text."""
    try:
        document = read_json(text)
    except ValidationError:
        return ""
    task = document.get("task") if isinstance(document, dict) and "model" in document else ""
    return task if isinstance(task, str) and task in OF_TASK else ""


def degrees_of(task: str) -> tuple[str, ...]:
    return DEGREES_OF_TASK["serve" if task == Task.SERVE else "train"]


def _plan(data: Mapping[str, Any], task: str) -> Plan:
    chosen = {name: data.get(name) or 1 for name in degrees_of(task)}
    shard = chosen.pop("shard", 1)
    return Plan(**chosen, dp=shard, shard=shard)


def values_of(slug: str) -> dict[str, Any]:
    """The controls' values that a preset stands for."""
    document = workload_presets()[slug]
    plain = {
        name: document[name] for names in OF_TASK.values() for name in names if name in document
    }
    rank = document.get("lora", {}).get("rank")
    return {
        "workload": slug,
        "task": document["task"],
        "model": document["model"]["preset"],
        "weights_format": document.get("weights_format", ""),
        **plain,
        **({"lora_rank": rank} if rank else {}),
    }


def start_of(slug: str) -> dict[str, Any]:
    """The values of a preset; of the first one for a name that is none."""
    documents = workload_presets()
    return values_of(slug if slug in documents else next(iter(documents)))


def preset_like(workload: Workload) -> str:
    """The preset that every verdict treats as this workload. Empty where there is none."""
    return _by_fingerprint().get(workload.fingerprint(), "")


@cache
def _by_fingerprint() -> Mapping[str, str]:
    return {parse_workload(text).fingerprint(): slug for slug, text in workload_presets().items()}
