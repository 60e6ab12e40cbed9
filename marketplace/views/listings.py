"""The table of listings, and one listing with all that is known and not known about it."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.decorators import login_not_required
from django.db.models import Case, F, Prefetch, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from marketplace.forms import RANKED_CURRENCY, ListingFilter
from marketplace.listings import same_hardware
from marketplace.models import Listing, Price
from marketplace.views.chips import Chip, changed, chips_of, not_understood
from marketplace.views.pages import render_page
from marketplace.views.paging import Sort, capped, chosen, page_of

PAGE_SIZE, LARGEST_PAGE = 50, 200
PLACE = ("sort", "size", "after")

SORTS = {
    "price": Sort(
        "price", Case(When(machine_hour_currency=RANKED_CURRENCY, then=F("machine_hour_amount")))
    ),
    "gpus": Sort("GPUs", F("gpu_count"), descending=True),
    "memory": Sort("memory per GPU", F("vram_bytes_per_gpu"), descending=True),
    "machine": Sort("provider", F("provider__name")),
    "seen": Sort("last seen", F("last_seen"), descending=True),
}


@login_not_required
@require_safe
def listings(request: HttpRequest) -> HttpResponse:
    wanted = ListingFilter(request.GET, queryset=_rows())
    name, sort = chosen(SORTS, request.GET.get("sort", ""))
    size = capped(request.GET.get("size", ""), PAGE_SIZE, LARGEST_PAGE)
    page = page_of(wanted.rows(), sort, request.GET.get("after", ""), size)
    alike = same_hardware(page.rows)
    for row in cast("list[Any]", page.rows):
        row.alike = alike.get(row.pk, 0)
    context = {
        "section": "listings",
        "form": wanted.form,
        "page": page,
        "sort": name,
        "sorts": {word: changed(request, {"sort": word}) for word in SORTS},
        "next": page.next_key and changed(request, {"after": page.next_key}),
        "first": changed(request, {}) if request.GET.get("after") else "",
        "chips": chips_of(request, wanted.form),
        "implied": _implied(wanted, name),
        "ignored": not_understood(request, [*wanted.form.fields, *PLACE]),
    }
    return render_page(request, "listings/listings.html", context, fragment="listings/_rows.html")


def _rows() -> QuerySet[Listing]:
    in_force = Price.objects.filter(superseded_at__isnull=True)
    rows = Listing.objects.select_related("provider", "source")
    return rows.prefetch_related(Prefetch("prices", in_force, to_attr="in_force"))


def _implied(wanted: ListingFilter, sort: str) -> list[Chip]:
    asked: dict[str, Any] = wanted.form.cleaned_data
    implied = [] if asked.get("gone") else [Chip("listings gone from their catalog are hidden")]
    if sort == "price" or asked.get("max_price") is not None:
        implied.append(Chip(f"only prices per machine-hour in {RANKED_CURRENCY} are compared"))
    return implied
