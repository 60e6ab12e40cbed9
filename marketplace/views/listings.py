"""The table of listings: filtered, sorted and paged in memory, printed from the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from marketplace.expressions import Check, Every, Node, Some
from marketplace.forms import ListingDemands
from marketplace.listing_rows import Row, rows_of
from marketplace.shelf import RANKED_CURRENCY, Shelf, shelf
from marketplace.views.chips import Chip, changed, chips_of, not_understood
from marketplace.views.columns import Column, ColumnForm, Drawn
from marketplace.views.kept import kept_a_minute
from marketplace.views.pages import render_page
from marketplace.views.paging import Sort, capped, chosen, whole_number

PAGE_SIZE, LARGEST_PAGE = 50, 200
PLACE = ("sort", "size", "after")

SORTS = {
    "price": Sort("price", "price"),
    "gpus": Sort("GPUs", "gpus", descending=True),
    "memory": Sort("memory per GPU", "vram", descending=True),
    "machine": Sort("provider", "provider"),
    "seen": Sort("last seen", "seen", descending=True),
}

COLUMNS = [
    Column("title", "Machine", hint="h100 or b200", fixed=True),
    Column("gpus", "GPUs", numbers=True, hint="2..8"),
    Column("vram", "Label memory per GPU", numbers=True, unit="GB", hint=">=80"),
    Column("linked", "Link between GPUs", hint="nvswitch or unknown"),
    Column("price", f"{RANKED_CURRENCY} per machine and hour", numbers=True, hint="<=20"),
    Column("published", "Prices as published", filtered=False),
    Column("available", "Availability", hint="not sold"),
    Column("seen", "Seen", numbers=True, unit="hours ago", hint="<=6"),
    Column("vcpus", "vCPUs", numbers=True, hint=">=64", shown=False),
    Column("ram", "Host memory", numbers=True, unit="GB", hint=">=512", shown=False),
    Column("disk", "Local storage", numbers=True, unit="GB", hint="unknown", shown=False),
]
SHELVED_AS = {"linked": "link", "available": "availability"}
SCALED = {"vram": 10**9, "ram": 10**9, "disk": 10**9}
HOUR = 3600
TURNED = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte"}
"""An age of at most 6 hours is a time of at least 6 hours ago."""


@dataclass(frozen=True, slots=True)
class Page:
    """`next_key` goes into the address of the page that follows; None on the last one."""

    rows: Sequence[Row]
    total: int
    next_key: int | None


@dataclass(frozen=True, slots=True)
class _Filters:
    """The form's filters and the columns' expressions."""

    form: ListingDemands
    columns: ColumnForm

    @property
    def readable(self) -> bool:
        return not (self.form.errors or self.columns.errors)

    @property
    def with_gone(self) -> bool:
        return bool(self.form.cleaned_data["gone"])

    def by_column(self) -> dict[str, Node]:
        """Two on one column must both pass."""
        filters = self.form.filters
        for key, node in self.columns.filters.items():
            name, asked = SHELVED_AS.get(key, key), _on_shelf(key, node)
            filters[name] = Every((filters[name], asked)) if name in filters else asked
        return filters


@login_not_required
@require_safe
@kept_a_minute
def listings(request: HttpRequest) -> HttpResponse:
    held = shelf()
    form = ListingDemands(request.GET, held.offered("gpu"))
    columns = ColumnForm(request.GET, COLUMNS)
    name, sort = chosen(SORTS, request.GET.get("sort", ""))
    page = _page(request, held, _Filters(form, columns), sort)
    context = {
        "section": "listings",
        "form": form,
        "columns": columns,
        "shown": Drawn.of(columns.shown),
        "page": page,
        "sort": name,
        "orders": [(word, one.label, word == name) for word, one in SORTS.items()],
        "sorts": {word: changed(request, {"sort": word}) for word in SORTS},
        "next": page.next_key and changed(request, {"after": page.next_key}),
        "first": changed(request, {}) if request.GET.get("after") else "",
        "chips": chips_of(request, form) + chips_of(request, columns),
        "implied": _implied(form, columns, name),
        "ignored": not_understood(request, [*form.fields, *columns.fields, *PLACE]),
    }
    return render_page(request, "listings/listings.html", context, fragment="listings/_rows.html")


def _page(request: HttpRequest, held: Shelf, asked: _Filters, sort: Sort) -> Page:
    """No row while a filter cannot be read: dropping it would answer another question."""
    if not asked.readable:
        return Page((), 0, None)
    passing = held.where(asked.by_column(), with_gone=asked.with_gone)
    found = held.page(
        passing,
        sort.by,
        whole_number(request.GET.get("after", "")),
        capped(request.GET.get("size", ""), PAGE_SIZE, LARGEST_PAGE),
        descending=sort.descending,
    )
    return Page(rows_of(held, found.keys), found.total, found.next_key)


def _on_shelf(key: str, node: Node) -> Node:
    """The expression in the units of the shelf: bytes, and moments instead of ages."""
    if not isinstance(node, Check):
        parts = tuple(_on_shelf(key, part) for part in node.parts)
        return Every(parts) if isinstance(node, Every) else Some(parts)
    if node.value is None:
        return node
    if key == "seen":
        moment = timezone.now().timestamp() - float(node.value) * HOUR
        return Check(TURNED.get(node.op, node.op), moment)
    if key in ("linked", "available"):
        return Check(node.op, node.value.replace(" ", "_"))
    return Check(node.op, node.value * SCALED.get(key, 1))


def _implied(form: ListingDemands, columns: ColumnForm, sort: str) -> list[Chip]:
    asked, filters = form.cleaned_data, columns.filters
    implied = [] if asked.get("gone") else [Chip("listings gone from their catalog are hidden")]
    if sort == "price" or asked.get("max_price") is not None or "price" in filters:
        implied.append(Chip(f"only prices per machine-hour in {RANKED_CURRENCY} are compared"))
    return implied
