"""The page on which a curator writes a profile and sees at once what it would read."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from marketplace import outbox
from marketplace.catalog.base import Batch
from marketplace.catalog.profile import InvalidProfile, read_profile
from marketplace.models import Source
from marketplace.sync.previews import Preview, preview, proposal

ROWS_SHOWN = 100


class ProfileForm(forms.Form):
    profile = forms.JSONField(
        required=False, widget=forms.Textarea(attrs={"rows": 16, "cols": 80, "spellcheck": "false"})
    )

    def clean_profile(self) -> dict[str, Any]:
        return checked_profile(self.cleaned_data["profile"])


def checked_profile(document: Any) -> dict[str, Any]:
    """A profile as it is stored. Raises ValidationError with a message for each mistake."""
    try:
        return read_profile(document or {}).as_json()
    except InvalidProfile as invalid:
        raise forms.ValidationError(invalid.messages) from invalid


def profile_page(request: HttpRequest, source_id: int) -> HttpResponse:
    """Preview at each change, a proposal on demand, and saving with a re-parse of the pages."""
    source = get_object_or_404(Source.objects.select_related("provider"), pk=source_id)
    if not request.user.has_perm("marketplace.change_source"):
        raise PermissionDenied
    form = _form(request, source)
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        return _saved(request, source, form.cleaned_data["profile"])
    shown = _preview(source, form)
    context = {
        **admin.site.each_context(request),
        "title": f"Profile of {source.key}",
        "source": source,
        "form": form,
        "opts": Source._meta,
        "preview": shown,
        **_rows(shown.batch),
    }
    live = request.headers.get("HX-Request") == "true"
    name = "_preview.html" if live else "profile.html"
    return render(request, f"admin/marketplace/source/{name}", context)


def _form(request: HttpRequest, source: Source) -> ProfileForm:
    if request.method != "POST":
        return ProfileForm(initial={"profile": source.profile})
    if "propose" in request.POST:
        suggested, problem = proposal(source)
        if problem:
            messages.warning(request, f"Nothing can be proposed: {problem}")
        # Sent as text, since a bound form shows what was typed.
        return ProfileForm({"profile": json.dumps(suggested or source.profile, indent=1)})
    return ProfileForm(request.POST)


def _preview(source: Source, form: ProfileForm) -> Preview:
    if not form.is_bound:
        return preview(source, source.profile)
    if form.is_valid():
        return preview(source, form.cleaned_data["profile"])
    return Preview(problems=tuple(map(str, form.errors.get("profile", []))))


def _rows(batch: Batch | None) -> dict[str, Any]:
    if batch is None:
        return {}
    return {
        "entries": batch.entries[:ROWS_SHOWN],
        "entries_hidden": max(0, len(batch.entries) - ROWS_SHOWN),
        "quarantined": batch.quarantined[:ROWS_SHOWN],
        "quarantined_hidden": max(0, len(batch.quarantined) - ROWS_SHOWN),
    }


def _saved(request: HttpRequest, source: Source, profile: dict[str, Any]) -> HttpResponse:
    source.profile = profile
    source._change_reason = "profile"  # type: ignore[attr-defined]  # read by simple_history
    source.save(update_fields=["profile"])
    outbox.enqueue("reparse_source", source.pk)
    messages.success(request, "Saved. The stored pages are read again by the next free worker.")
    return HttpResponseRedirect(reverse("admin:marketplace_source_change", args=[source.pk]))
