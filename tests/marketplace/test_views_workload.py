"""The memory of a workload while it is shaped: every control, every refusal, and the same number
as everywhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evaluator.memory import budget
from evaluator.models import presets
from evaluator.plans import Plan
from evaluator.workload import parse_workload, workload_presets
from marketplace.views.workload_form import values_of
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db
HERE = "/workloads/memory/"
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def paste(client: Client, document: object, **controls: object) -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    return client.post(HERE, {"task": "serve", "model": text, **controls})


@pytest.mark.parametrize("slug", list(workload_presets()))
def test_a_preset_is_the_workload_that_the_shortlist_judges(client: Client, slug: str) -> None:
    response = client.get(HERE, {"workload": slug})
    asked = parse_workload(workload_presets()[slug])
    assert response.context["workload"].fingerprint() == asked.fingerprint()
    assert response.context["memory"] == budget(asked, Plan())
    assert f'href="/?workload={slug}"' in words(response)


def test_the_title_states_the_need_and_the_smallest_card(client: Client) -> None:
    title = words(client.get(HERE, {"workload": "train-llama-70b", "tp": 8, "pp": 2}))
    assert "under TP 8 × PP 2 asks each GPU to report" in title
    assert "the smallest card that holds it has 80 GB." in title


def test_a_pasted_model_without_a_name_is_called_so(client: Client) -> None:
    assert "The pasted model under one GPU asks" in words(paste(client, CONFIG))
    named = words(paste(client, {**CONFIG, "_name_or_path": "acme/a-model"}))
    assert "Serve acme/a-model</bdi> under one GPU asks" in named


def test_what_an_empty_control_takes_stands_in_its_list_once(client: Client) -> None:
    page = words(client.get(HERE, {"task": "finetune"}))
    assert page.count("adamw, the usual</option>") == 1
    assert page.count(">adamw</option>") == 1
    assert "Fine-tune Llama-3.1-8B</bdi> under one GPU" in page


def test_every_model_has_an_answer(client: Client) -> None:
    for slug in presets():
        response = client.get(HERE, {"task": "serve", "model": slug})
        assert response.status_code == 200, slug
        assert response.context["bars"], slug


@pytest.mark.parametrize(
    ("controls", "field", "said"),
    [
        ({"concurrency": "0"}, "concurrency", "expected a whole number from 1"),
        ({"input_tokens": "many"}, "input_tokens", "whole number"),
        ({"tp": "3"}, "tp", "cannot be divided by 3. Use a tensor parallel degree of 2."),
        ({"weights_format": "bf61"}, "weights_format", "not one of the available"),
        ({"model": "gpt-5"}, "model", "not one of the available"),
        ({"memory_utilization": "2"}, "memory_utilization", "expected a number from 0.01 to 1"),
        ({"task": "train", "weights_format": "fp8"}, "weights_format", "bf16, fp16 or fp32"),
        (
            {"task": "train", "optimizer": "adafactor", "precision": "mixed-fp32-grads"},
            "precision",
            "expected one of",
        ),
        ({"task": "train", "micro_batch": "8", "global_batch": "4"}, "global_batch", "read 4"),
        ({"task": "train", "pp": "7"}, "pp", "cannot be divided by 7"),
    ],
)
def test_an_error_stands_beside_its_control(
    client: Client, controls: dict[str, str], field: str, said: str
) -> None:
    response = client.get(HERE, {"task": "serve", "model": "llama-3.1-8b", **controls})
    assert response.status_code == 422
    page = words(response)
    beside = page.split(f'id="id_{field}_error"')[1].split("</p>")[0]
    assert said in beside
    assert list(response.context["form"].errors) == [field]


def test_a_task_that_is_none_is_refused_without_a_guess(client: Client) -> None:
    assert client.get(HERE, {"task": "dance"}).status_code == 422


def test_a_changed_preset_goes_to_the_shortlist_as_a_file(client: Client) -> None:
    make_listing(make_source())
    response = client.get(HERE, {"workload": "serve-llama-8b", "concurrency": 64})
    document = json.loads(response.context["document"])
    assert document["concurrency"] == 64
    assert 'action="/workloads/" method="post"' in words(response)
    ranked = client.post("/workloads/", {"workload": response.context["document"]})
    assert ranked.context["workload"].fingerprint() == response.context["workload"].fingerprint()
    assert ranked.context["result"].rows


def test_a_config_is_judged_with_the_controls_under_it(client: Client) -> None:
    response = paste(client, CONFIG, concurrency=8, tp=2)
    asked = response.context["workload"]
    assert (asked.model.layers, asked.serving.concurrency) == (32, 8)
    assert response.context["plan_asked"] == Plan(tp=2)


def test_a_whole_file_outweighs_the_controls_and_says_so(client: Client) -> None:
    document = workload_presets()["train-llama-70b"]
    response = paste(client, json.dumps(document, default=dict), seq_len=512)
    assert response.context["workload"].training.seq_len == 8192
    assert response.context["form"].fixed == ["seq_len"]
    assert "those controls change nothing" in words(response)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "This is not JSON"),
        ("", "This field is required."),
        ("[]", "expected an object"),
        ("7", "expected an object"),
        ('{"task": "serve"}', "expected"),
        ('{"task": [], "model": {}}', "task: read a list"),
        ('{"model": {"preset": "nothing-of-the-kind"}}', "model.preset"),
        ('{"model": {"hidden_size": -1, "model_type": "llama"}}', "model.hidden_size"),
        ('{"task": "serve", "model": {"preset": "llama-3.1-8b"}, "tokns": 1}', "tokns"),
        ('{"task": "serve", "model": {"preset": "llama-3.1-8b"}, "lora": 3}', "lora"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_text_that_cannot_be_used_says_why_beside_the_field(
    client: Client, text: str, said: str
) -> None:
    response = paste(client, text)
    assert response.status_code == 422
    assert said in words(response)


def test_the_answer_alone_goes_to_htmx_with_every_error_place(client: Client) -> None:
    part = client.get(HERE, {"tp": "3"}, headers={"HX-Request": "true"})
    page = words(part)
    assert "<html" not in page
    assert 'id="answer" aria-live="polite" hx-swap-oob="true"' in page
    assert page.count('_error" aria-live="polite" hx-swap-oob="true"') == len(
        part.context["form"].places
    )


def test_the_picture_can_be_kept_as_a_file(client: Client) -> None:
    page = client.get(HERE, {"workload": "serve-llama-8b"})
    kept = client.get(page.context["svg"])
    assert kept["Content-Type"].startswith("image/svg+xml")
    assert 'filename="memory-per-gpu.svg"' in kept["Content-Disposition"]
    drawn = kept.content.decode()
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert ".card-line.does_not_fit" in drawn
    assert "var(" not in drawn


def test_a_key_that_means_nothing_is_said(client: Client) -> None:
    assert "<code>concurency</code>" in words(client.get(HERE, {"concurency": 3}))


def test_without_offers_every_known_card_is_a_line(client: Client) -> None:
    alone = client.get(HERE).context["cards"]
    make_listing(make_source())
    offered = client.get(HERE).context["cards"]
    assert {card.names for card in offered} == {("H100",)}
    assert len(alone) > len(offered)


def test_queries_do_not_grow_with_listings(client: Client) -> None:
    def count() -> int:
        client.get(HERE)  # the shelf of all listings is read anew once something changed
        with CaptureQueriesContext(connection) as found:
            client.get(HERE, {"concurrency": 7})
        return len(found)

    source = make_source()
    make_listing(source, "first")
    few = count()
    for number in range(20):
        make_listing(source, f"m{number}", gpu_model=("H100", "A100", "L4")[number % 3])
    assert count() == few <= 6


def test_a_hostile_name_is_text(client: Client) -> None:
    page = words(paste(client, {"task": "serve", "model": CONFIG, "name": "<script>1</script>"}))
    assert "<script>1" not in page
    assert "&lt;script&gt;1" in page


def test_values_of_a_preset_are_read_back_as_the_same_document() -> None:
    values = values_of("finetune-llama-8b-lora")
    assert (values["task"], values["lora_rank"], values["seq_len"]) == ("finetune", 16, 4096)


def test_a_shaped_workload_leads_to_its_plans(client: Client) -> None:
    preset = words(client.get(HERE, {"workload": "train-llama-70b"}))
    assert 'href="/plans?workload=train-llama-70b"' in preset
    shaped = client.get(HERE, {"workload": "serve-llama-8b", "concurrency": 64})
    assert 'formaction="/plans"' in words(shaped)
    posted = client.post("/plans", {"workload": shaped.context["document"]})
    assert "No machine is named yet." in words(posted)
    drawn = client.post(
        "/plans", {"workload": shaped.context["document"], "gpu": "H100", "count": 2}
    )
    assert drawn.context["workload"].serving.concurrency == 64


# --- numbers and versions


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("concurrency", "٣", "a whole number from 1 to 1,000,000"),
        ("tp", "３", "a whole number from 1 to 1,024"),
        ("input_tokens", "many", "a whole number from 1 to 100,000,000"),
        ("input_tokens", "9" * 5000, "a whole number from 1 to 100,000,000"),
        ("memory_utilization", "٠.٥", "a number from 0.01 to 1"),
        ("memory_utilization", "1.5", "a number from 0.01 to 1"),
    ],
)
def test_a_number_that_cannot_be_used_is_said_back(
    client: Client, name: str, value: str, expected: str
) -> None:
    response = client.get(HERE, {"task": "serve", "model": "llama-3.1-8b", name: value})
    (error,) = response.context["form"].errors[name]
    assert error.startswith(f"Read {ascii(value[:60])[:60]}")
    assert error.endswith(f"expected {expected}.")


def test_the_version_of_an_engine_decides_what_it_takes(client: Client) -> None:
    asked = {"task": "serve", "model": "llama-3.1-8b", "engine": "sglang"}
    old, new = (
        client.get(HERE, {**asked, "engine_version": one}).context["memory"]
        for one in ("0.4.3", "0.5.4")
    )
    assert old.allowance.fraction == 0.88
    assert new.allowance.left is not None


def test_a_version_beyond_the_known_ones_is_said_on_the_page(client: Client) -> None:
    asked = {"task": "serve", "model": "llama-3.1-8b", "engine": "sglang"}
    page = words(client.get(HERE, {**asked, "engine_version": "7.0"}))
    assert "the nearest known range is used: sglang since 0.5.3" in page


def test_a_mark_of_the_byte_order_is_no_part_of_a_text(client: Client) -> None:
    response = paste(client, "\ufeff" + json.dumps(CONFIG))
    assert response.context["form"].errors == {}
