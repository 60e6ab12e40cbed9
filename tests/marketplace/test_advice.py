"""Row 1 of the bundled catalogs, read alone: what to rent, launch, pay, await and check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from evaluator.advice import Advice
from evaluator.candidates import Candidate
from evaluator.workload import parse_workload
from marketplace import rankings, sources, sync
from marketplace.advising import advised
from marketplace.catalog.registry import SAMPLES
from marketplace.samples.server import serve_samples

SERVE: dict[str, Any] = {
    "name": "serve",
    "task": "serve",
    "model": {"preset": "llama-3.1-70b"},
    "concurrency": 16,
    "budget": {"amount": 500, "currency": "USD"},
}
TUNE: dict[str, Any] = {
    "name": "tune",
    "task": "finetune",
    "model": {"preset": "llama-3.1-70b"},
    "lora": {"rank": 16},
    "global_batch": 64,
    "tokens_to_train": 200_000_000,
    "deadline_hours": 72,
    "budget": {"amount": 1500, "currency": "USD"},
}
Told = dict[str, tuple[Candidate, Advice]]


@pytest.fixture(scope="module")
def told(django_db_setup: None, django_db_blocker: Any) -> Iterator[Told]:
    """Row 1 of each workload with its advice; the catalogs are synced once for all tests."""
    with django_db_blocker.unblock(), transaction.atomic(), serve_samples() as base:
        host, port = base.removeprefix("http://").split(":")
        address = {"SAMPLE_SERVER_URL": base, "SAMPLE_SERVER_ADDRESS": (host, int(port))}
        with override_settings(EMBEDDED=True, **address):
            for source in sources.keep_known_sources(SAMPLES):
                sync.sync_source(source.pk)
        yield {one["name"]: _row_one(one) for one in (SERVE, TUNE)}
        transaction.set_rollback(True)


def _row_one(document: dict[str, Any]) -> tuple[Candidate, Advice]:
    workload = parse_workload(document)
    result = rankings.shortlist_for(workload)
    (pair,) = advised(workload, result, result.rows[1:2], timezone.now())
    return pair


@pytest.mark.parametrize("name", ["serve", "tune"])
def test_it_says_what_to_rent(told: Told, name: str) -> None:
    row, advice = told[name]
    assert row.offering.title in advice.rent
    assert row.offering.provider in advice.rent
    assert f"{row.machine.gpu_count} × {row.machine.gpu_model}" in advice.rent
    assert re.search(r"[\d.]+ USD per hour for all of it, on-demand", advice.rent)
    assert "not a reservation" in advice.rent


def test_it_says_how_to_launch_it(told: Told) -> None:
    row, advice = told["serve"]
    assert advice.launch.startswith(f"{row.plan.plan.label}, with ")
    assert "vllm serve" in advice.commands
    assert ("--tensor-parallel-size" in advice.commands) is (row.plan.plan.tp > 1)
    assert re.search(r"deepspeed|torchrun", told["tune"][1].commands)
    assert advice.commands in advice.text


def test_it_says_what_a_job_costs_line_by_line(told: Told) -> None:
    row, advice = told["tune"]
    assert row.outlook is not None
    assert row.outlook.bill is not None
    for line in row.outlook.bill.lines:
        assert line.name in advice.cost, line.name
    assert re.search(r"[\d,.]+ to [\d,.]+ USD in all, [\d,.]+ expected\.", advice.cost)
    assert "nobody states a price: storage and egress" in advice.cost
    assert "the budget" in advice.cost
    assert "of the step rate" in advice.cost


def test_it_says_what_tokens_cost_and_at_what_use(told: Told) -> None:
    cost = told["serve"][1].cost
    assert re.search(r"USD per 1,000,000 tokens, busy all the time\.", cost)
    assert re.search(r"The budget keeps it for [\d,]+ hours\.", cost)


def test_it_says_when_it_ends(told: Told) -> None:
    ends = told["tune"][1].ends
    dates = re.findall(r"[A-Z][a-z]{2} 20\d\d-\d\d-\d\d \d\d:\d\d", ends)
    assert len(dates) == 2
    assert dates[0][4:] <= dates[1][4:]
    assert "hours after the rental starts" in ends
    assert "The deadline: " in ends
    assert "first step comes" in told["serve"][1].ends


@pytest.mark.parametrize("name", ["serve", "tune"])
def test_it_says_what_to_check_first_and_with_what(told: Told, name: str) -> None:
    row, advice = told[name]
    weakest = row.plan.weakest
    assert advice.check.startswith(f"{weakest.fact}, {weakest.grade.word} so far: run `")
    assert "It holds with " in advice.check
    assert "USD." in advice.check


@pytest.mark.parametrize("name", ["serve", "tune"])
def test_the_text_is_the_five_answers(told: Told, name: str) -> None:
    advice = told[name][1]
    assert [head for head, _ in advice.answers] == [
        "Rent",
        "Launch",
        "Cost",
        "Ends",
        "Check first",
    ]
    assert all(words in advice.text for _, words in advice.answers)
    assert "None" not in advice.text
    assert "Decimal" not in advice.text
