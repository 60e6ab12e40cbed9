"""A file for one source: first what it would change, then, when a curator says so, the change."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from marketplace import sync
from marketplace.models import Source, SyncRun

LARGEST_FILE = 2 * 2**20
"""Bytes. What is larger comes through `manage.py import_listings`."""


class FileForm(forms.Form):
    """A file, or the bytes of the one whose differences were shown."""

    file = forms.FileField(required=False, allow_empty_file=False)
    kept = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not (given.get("file") or given.get("kept")):
            self.add_error("file", "Choose a file.")
            return given
        given["body"] = self._body(given)
        if len(given["body"]) > LARGEST_FILE:
            expected = f"at most {LARGEST_FILE} bytes; larger files come by import_listings"
            self.add_error("file", f"Read {len(given['body'])} bytes, expected {expected}.")
        return given

    def _body(self, given: dict[str, Any]) -> bytes:
        if given.get("file"):
            return bytes(given["file"].read(LARGEST_FILE + 1))
        try:
            return base64.b64decode(given["kept"], validate=True)
        except binascii.Error:
            self.add_error("file", "Choose the file again.")
            return b""


def import_page(request: HttpRequest, source_id: int) -> HttpResponse:
    source = get_object_or_404(Source, pk=source_id)
    if not request.user.has_perm("marketplace.change_source"):
        raise PermissionDenied
    form = FileForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        body = form.cleaned_data["body"]
        if "write" in request.POST:
            return _written(request, source, body)
        context = {"run": _run(source, body, write=False), "kept": base64.b64encode(body).decode()}
    context |= {
        **admin.site.each_context(request),
        "title": f"Import into {source.key}",
        "source": source,
        "form": form,
        "opts": Source._meta,
    }
    return render(request, "admin/marketplace/source/import.html", context)


def _run(source: Source, body: bytes, *, write: bool) -> SyncRun | None:
    """Read in a child with limits, as every page is; only `write` leaves a trace."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "import"
        file.write_bytes(body)
        act = sync.sync_file if write else sync.rehearse
        return act(source.pk, file)


def _written(request: HttpRequest, source: Source, body: bytes) -> HttpResponse:
    run = _run(source, body, write=True)
    if run is None:
        messages.warning(request, "Another run has this source now; nothing was written.")
        address = reverse("admin:marketplace_source_import", args=[source.pk])
        return HttpResponseRedirect(address)
    messages.info(request, f"{run.outcome}. {run.reason}".strip())
    return HttpResponseRedirect(reverse("admin:marketplace_syncrun_change", args=[run.pk]))
