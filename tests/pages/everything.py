"""A catalog with a row of every kind, and the address of every page and state that people meet."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from evaluator.facts import RanBy
from marketplace.evaluations import keep_workload, request_evaluation
from marketplace.evidence import Origin, Ran, keep, preview, review
from marketplace.models import AccuracyReport, Evidence, Listing, SavedShortlist, Workload
from marketplace.models.evidence import EvidenceState
from tests.pages.catalog import make_listing, make_price, make_run, make_source, set_aside

SAMPLES = Path(__file__).parent.parent / "samples" / "evidence"
SERVED, TRAINED = "serve-llama-8b", "train-llama-70b"
DOCUMENT = {"task": "serve", "name": "mine", "model": {"preset": "llama-3.1-8b"}}
OUTCOME = {
    "id": "a case",
    "kind": "weights",
    "predicted": 15.2,
    "low": 14.0,
    "high": 16.0,
    "measured": 15.0,
    "unit": "GiB",
    "within": True,
    "why": "",
    "source": "a published table",
    "compared": True,
    "counted": True,
}
FIGURES = {
    "cases": 2,
    "within_tolerance": 1,
    "median_abs_rel_err": 0.1,
    "bias": 0.02,
    "worst": 0.4,
    "inside_range": 0.5,
    "median_width": 1.2,
}


def make_everything(owner: User) -> Listing:
    """The listing that most addresses are about: eight GPUs, looked at twice, once against it."""
    source = make_source()
    make_run(make_source("lattice"), outcome="failed", reason="500 Internal Server Error")
    set_aside(make_run(source))
    make_listing(source, "one", gpu_count=1, link=None, amount=Decimal("2.49"))
    make_listing(source, "two", amount=Decimal("25.00"), title="8x H100 twin")
    odd = make_listing(source, "odd", gpu_model="L40S", gpu_count=4, link=None, amount=None)
    make_price(odd, Decimal("0.89"), basis="unknown", machine_per_hour=None)
    make_listing(source, "bare", gpu_model=None, vram_bytes_per_gpu=None, link=None)
    eight = make_listing(source, title="8x H100 of everything")
    for sample in ("8-gpus-nvswitch", "8-gpus-nvlink-pairs", "8-gpus-all-reduce"):
        look_at(eight, owner, sample)
    look_at(eight, owner, "engine-serve", Ran(SERVED, "tp2"))
    _kept(owner)
    return eight


def look_at(row: Listing, owner: User, sample: str, ran: Ran | None = None) -> Evidence:
    text = (SAMPLES / f"{sample}.txt").read_text("utf-8")
    found = keep(row, preview(row, text), Origin(owner, RanBy.RENTER, ran=ran))
    review(found.pk, EvidenceState.ACCEPTED, None)
    return found


def _kept(owner: User) -> None:
    workload = keep_workload(DOCUMENT, owner)
    request_evaluation(workload)
    missed = OUTCOME | {"id": "another case", "within": False, "why": "the cache is larger"}
    AccuracyReport.objects.create(
        kind="memory",
        evaluator_version="1",
        kept_at=timezone.now(),
        summary=FIGURES
        | {
            "not_judged": {},
            "by_kind": {"weights": FIGURES},
            "outcomes": [OUTCOME, missed | {"measured": 25.0}],
        },
    )


def save_an_answer(client: Client) -> SavedShortlist:
    """Of somebody who is signed in, shared by its link."""
    client.post("/saved/", {"address": f"workload={SERVED}&limit=3"})
    kept = SavedShortlist.objects.get()
    kept.token = "a" * 32
    kept.save()
    return kept


def addresses(eight: Listing, kept: SavedShortlist) -> dict[str, str]:
    """By name; empty states and refusals among them."""
    one = eight.get_absolute_url()
    found = Evidence.objects.filter(listing=eight).order_by("pk")
    rival = Listing.objects.get(sku="two")
    memory, plans = "/workloads/memory/", f"/plans/?listing={eight.pk}"
    return {
        "shortlist": f"/?workload={SERVED}",
        "shortlist, training": f"/?workload={TRAINED}&tokens=1000000000&deadline=4000",
        "shortlist, filtered": f"/?workload={SERVED}&hourly=%3C20&show=speed&show=hourly&group=yes",
        "shortlist, nothing passes": f"/?workload={SERVED}&max_price=0.01",
        "shortlist, refused": f"/?workload={SERVED}&hourly=cheap",
        "paste a workload": "/workloads/",
        "compare": f"/compare/?workload={SERVED}&pick={eight.pk}:tp2&pick={rival.pk}:one",
        "compare, refused": "/compare/",
        "listings": "/listings/?show=vcpus&show=ram&show=disk",
        "listings, usual columns": "/listings/",
        "listings, none": "/listings/?gpu=H100&max_price=0.5",
        "listings, refused": "/listings/?vram=much",
        "listing": f"{one}?workload={SERVED}&plan=tp2",
        "listing, training": f"{one}?workload={TRAINED}",
        "listing, bare": Listing.objects.get(sku="bare").get_absolute_url(),
        "paste evidence": f"{one}evidence/",
        "evidence": "/evidence/",
        "evidence, one": found[0].get_absolute_url(),
        "scaling": f"/evidence/listings/{eight.pk}/?workload={SERVED}",
        "scaling, training": f"/evidence/listings/{eight.pk}/?workload={TRAINED}",
        "scaling, nothing run": f"/evidence/listings/{Listing.objects.get(sku='one').pk}/",
        "workload": memory,
        "workload, training": f"{memory}?workload={TRAINED}&tp=4&pp=2",
        "workload, refused": f"{memory}?tp=3",
        "workload, pasted": f"{memory}?paste",
        "plans, no machine": "/plans/",
        "plans": f"{plans}&workload={SERVED}&plan=tp2",
        "plans, training": f"{plans}&workload={TRAINED}",
        "plans, none serves": "/plans/?gpu=L4&count=2&workload=train-llama-70b",
        "status": "/status",
        "rows set aside": f"/status/runs/{eight.source.runs.order_by('-pk')[0].pk}/",
        "accuracy": "/accuracy",
        "learn": "/learn/",
        "glossary": "/glossary/",
        "saved": "/saved/",
        "saved, one": kept.get_absolute_url(),
        "saved, shared": f"/shared/{kept.token}/",
        "evaluation": f"/evaluations/{Workload.objects.get().evaluations.get().pk}/",
        "nowhere": "/nowhere",
    }
