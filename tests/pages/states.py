"""Pages that no address leads to: what forms answer, what is refused, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from marketplace.models import Evaluation, Listing
from marketplace.views import status
from tests.pages.conftest import Visit

SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
WORKLOAD = json.dumps({"task": "serve", "name": "mine", "model": {"preset": "llama-3.1-8b"}})
MEMORY = "/workloads/memory/?paste"
TOO_LONG = 2_700_000
"""Characters, more than a form may hold."""

Deed = Callable[[Visit, Listing], object]


def sends(address: str, field: str, text: str, button: str) -> Deed:
    """Fills one field and presses one button: the same with scripts and without."""

    def deed(seen: Visit, _: Listing) -> None:
        page = seen.open(address)
        page.fill(field, text)
        page.click(f"main button:has-text('{button}')")

    return deed


def pastes(text: str) -> Deed:
    def deed(seen: Visit, row: Listing) -> None:
        page = seen.open(f"{row.get_absolute_url()}evidence/")
        page.fill("#id_text", text)
        page.click("text=Show what it says")

    return deed


def compares_what_was_pasted(seen: Visit, row: Listing) -> None:
    ranks(seen, row)
    for box in seen.page.locator("#results input[name=pick]").all()[:2]:
        box.check()
    seen.page.click("text=Compare the ticked")


def draws_what_was_pasted(seen: Visit, row: Listing) -> None:
    weighs(seen, row)
    seen.page.click("text=Draw its plans on one machine")
    seen.page.wait_for_selector("#plans")
    seen.page.select_option("#id_gpu", "H100")
    seen.page.fill("#id_count", "8")
    seen.page.click("text=Try every plan")


def loses_its_secret(seen: Visit, _: Listing) -> None:
    page = seen.open("/workloads/")
    seen.page.context.clear_cookies(name="csrftoken")
    page.click("text=Rank machines")


def sends_too_much(seen: Visit, _: Listing) -> None:
    page = seen.open("/workloads/")
    page.evaluate("n => { document.querySelector('#id_workload').value = 'x'.repeat(n) }", TOO_LONG)
    page.click("text=Rank machines")


def cancels(seen: Visit, _: Listing) -> None:
    seen.open(reverse("evaluation", args=[Evaluation.objects.get().pk]))
    seen.page.click("main button:has-text('Cancel')")


def breaks(seen: Visit, _: Listing) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status, "standings", fails)
        seen.open("/status")


ranks = sends("/workloads/", "#id_workload", WORKLOAD, "Rank machines")
weighs = sends(MEMORY, "#id_model", WORKLOAD, "Work out the memory")

STATES: dict[str, tuple[Deed, str]] = {
    "shortlist, pasted": (ranks, "One GPU is enough"),
    "shortlist, pasted and refused": (
        sends("/workloads/", "#id_workload", "{", "Rank machines"),
        "nothing was ranked",
    ),
    "compare, pasted": (compares_what_was_pasted, "differ in"),
    "workload, pasted": (weighs, "asks each GPU to report"),
    "workload, pasted and refused": (
        sends(MEMORY, "#id_model", "{", "Work out the memory"),
        "A control cannot be used",
    ),
    "plans, pasted": (draws_what_was_pasted, "the narrowest plan that holds"),
    "evidence, previewed": (
        pastes((SAMPLES / "8-gpus-nvlink-pairs.txt").read_text("utf-8")),
        "The output shows",
    ),
    "evidence, of another machine": (
        pastes((SAMPLES / "2-gpus-nvlink.txt").read_text("utf-8")),
        "does not match the listing",
    ),
    "evidence, of nothing": (pastes("nothing of use"), "Nothing in this text can be believed"),
    "evidence, refused": (pastes(""), "cannot be read yet"),
    "evaluation, cancelled": (cancels, "Cancelled after 0"),
    "a form that is too old": (loses_its_secret, "too old to be accepted"),
    "a form that is too large": (sends_too_much, "cannot be read"),
    "a fault of ours": (breaks, "on our side"),
}


def reach(name: str, seen: Visit, row: Listing) -> Page:
    """The page in that state, once its heading says so."""
    deed, words = STATES[name]
    deed(seen, row)
    seen.page.wait_for_selector(f'h1:has-text("{words}")')
    return seen.page
