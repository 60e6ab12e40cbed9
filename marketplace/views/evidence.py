"""Pasted outputs: shown cleaned first, kept when confirmed, seen by their uploader alone."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluator.facts import RanBy
from marketplace import listings
from marketplace.evidence import (
    NotKept,
    NotReviewed,
    Origin,
    Preview,
    Ran,
    expire,
    keep,
    preview,
    review,
)
from marketplace.forms import ChangeForm, PasteForm, PreviewedForm
from marketplace.jobs_named import own_jobs, ran_on
from marketplace.link_matrix import picture_of
from marketplace.machines import machine_of
from marketplace.models import Evidence, Listing, RentedMachine
from marketplace.models.evidence import COUNTING, Change, EvidenceState
from marketplace.seen import seen_lines
from marketplace.seen_machines import timeline
from marketplace.views.pages import render_page

NOT_USABLE = 422


@require_http_methods(["GET", "HEAD", "POST"])
def paste(request: HttpRequest, listing_id: int) -> HttpResponse:
    """The form, and after it the cleaned text with its facts. Nothing is stored here."""
    row = listings.detailed_or_404(listing_id)
    if request.method != "POST":
        return _form_page(request, row, PasteForm(None, **_known(request, row)))
    form = PasteForm(request.POST, request.FILES, **_known(request, row))
    if not form.is_valid():
        return _form_page(request, row, form, status=NOT_USABLE)
    try:
        shown = preview(row, form.cleaned_data["output"])
    except NotKept as refused:
        form.add_error("text", str(refused))
        return _form_page(request, row, form, status=NOT_USABLE)
    return _preview_page(request, row, form, shown)


@require_POST
def confirm(request: HttpRequest, listing_id: int) -> HttpResponse:
    """Reads the cleaned text once more and keeps it: what is stored was never only claimed."""
    row = listings.detailed_or_404(listing_id)
    form = PreviewedForm(request.POST, **_known(request, row))
    again = PasteForm(request.POST, **_known(request, row))
    if not form.is_valid():
        return _form_page(request, row, again, status=NOT_USABLE)
    try:
        ran = _ran(request, row, form)
        kept = keep(row, preview(row, form.cleaned_data["text"]), _origin(request, form, ran))
    except NotKept as refused:
        again.add_error("text", str(refused))
        return _form_page(request, row, again, status=NOT_USABLE)
    words = "as a conflict, it raises nothing" if kept.mismatch else "for you alone so far"
    messages.success(request, f"Kept on {kept.machine}: {words}.")
    return redirect(f"{row.get_absolute_url()}#links-title")


def _ran(request: HttpRequest, row: Listing, form: PreviewedForm) -> Ran | None:
    """What ran, where the form names it. Raises NotKept for a plan that the machine cannot have."""
    slug, key = form.cleaned_data["workload"], form.cleaned_data["plan"].strip()
    return ran_on(row, slug, key, request.user) if slug else None


def _origin(request: HttpRequest, form: PreviewedForm, ran: Ran | None) -> Origin:
    return Origin(
        uploader=cast(User, request.user),
        ran_by=RanBy(form.cleaned_data["ran_by"]),
        machine=form.cleaned_data["machine"],
        ran_at=form.cleaned_data["ran_at"],
        image=form.cleaned_data["image"],
        ran=ran,
    )


def _known(request: HttpRequest, row: Listing) -> dict[str, Any]:
    """The visitor's own machines and workloads, for a form to choose from."""
    visitor = cast(User, request.user)
    machines = RentedMachine.objects.filter(listing=row, opened_by=visitor)
    return {"machines": machines, "jobs": own_jobs(visitor)}


def _form_page(
    request: HttpRequest, row: Listing, form: PasteForm, status: int = 200
) -> HttpResponse:
    context = {"section": "listings", "listing": row, "form": form}
    return render_page(request, "evidence/paste.html", context, status=status)


def _preview_page(
    request: HttpRequest, row: Listing, form: PasteForm, shown: Preview
) -> HttpResponse:
    again = PreviewedForm(
        {**dict(form.data.items()), "text": shown.text},
        **_known(request, row),
        auto_id="kept_%s",
    )
    declared = machine_of(row).link.value
    context = {
        "section": "listings",
        "listing": row,
        "form": form,
        "again": again,
        "shown": shown,
        "figures": shown.figures,
        "lines": seen_lines(shown.sighting.facts) if shown.sighting else [],
        "links": picture_of(shown.sighting.topology, declared) if shown.sighting else None,
    }
    status = 200 if shown.storable else NOT_USABLE
    return render_page(request, "evidence/preview.html", context, status=status)


def _mine(request: HttpRequest, evidence_id: int) -> Evidence:
    """Another one's evidence is not there, whether or not it exists."""
    rows = Evidence.objects.select_related("listing__provider", "machine")
    return get_object_or_404(rows, pk=evidence_id, uploaded_by=cast(User, request.user))


@require_safe
def evidence(request: HttpRequest, evidence_id: int) -> HttpResponse:
    """One own paste as it is stored, with what it shows and what was decided about it."""
    row = _mine(request, evidence_id)
    (look,) = timeline([row])
    context = {
        "section": "listings",
        "evidence": row,
        "lines": look.lines,
        "figures": row.figures.all(),
        "withdrawable": row.state in COUNTING,
        "reviews": row.reviews.all(),
    }
    return render_page(request, "evidence/evidence.html", context)


@require_POST
def take_back(request: HttpRequest, evidence_id: int) -> HttpResponse:
    row = _mine(request, evidence_id)
    try:
        review(row.pk, EvidenceState.WITHDRAWN, request.user, "taken back by its uploader")
    except NotReviewed as refused:
        messages.error(request, str(refused))
    return redirect(row.get_absolute_url())


@require_POST
def changed(request: HttpRequest, machine_id: int) -> HttpResponse:
    """A reboot, another driver or image: what was seen before counts as declared from now on."""
    machine = get_object_or_404(
        RentedMachine.objects.select_related("listing"),
        pk=machine_id,
        opened_by=cast(User, request.user),
    )
    form = ChangeForm(request.POST)
    if form.is_valid():
        expire(machine.evidence.all(), Change(form.cleaned_data["change"]))
        messages.success(request, f"What was seen on {machine} counts as declared from now on.")
    return redirect(f"{machine.listing.get_absolute_url()}#evidence-title")
