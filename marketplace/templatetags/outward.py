"""Addresses that strangers wrote, as links only where they are plain ones."""

from __future__ import annotations

from urllib.parse import urlsplit

from django import template
from django.utils.html import format_html

register = template.Library()

LINKED_SCHEMES = frozenset({"http", "https"})


@register.filter
def outward(url: str | None) -> str:
    """A link to another site when the address is plain http(s), its text otherwise."""
    if not is_web_address(url or ""):
        return url or ""
    return format_html(
        '<a href="{0}" rel="nofollow noopener noreferrer external">{0}</a>', url or ""
    )


def is_web_address(url: str) -> bool:
    """Whether a scraped address may become a link. Control characters hide a scheme: refused."""
    if any(character <= " " or character == "\\" for character in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in LINKED_SCHEMES and bool(parts.hostname)
