"""The title of a page says what its heading says: the page is written first, then its title."""

from __future__ import annotations

import re
from html import unescape

from django import template
from django.template.base import NodeList, Parser, Token
from django.template.context import Context
from django.utils.html import strip_tags
from django.utils.safestring import SafeString

register = template.Library()

HEADING = re.compile(r"<h1\b[^>]*>(.*?)</h1>", re.DOTALL)


class Capture(template.Node):
    """Writes what it holds into a variable. Nothing stands where it does."""

    def __init__(self, name: str, nodelist: NodeList) -> None:
        self.name, self.nodelist = name, nodelist

    def render(self, context: Context) -> SafeString:
        context[self.name] = self.nodelist.render(context)
        return SafeString()


@register.tag
def capture(parser: Parser, token: Token) -> Capture:
    """`{% capture NAME %}…{% endcapture %}`."""
    _, name = token.split_contents()
    nodelist = parser.parse(("endcapture",))
    parser.delete_first_token()
    return Capture(name, nodelist)


@register.filter
def heading(markup: str) -> str:
    """The text of the first heading, ready to be escaped. Empty where there is none."""
    found = HEADING.search(markup)
    return " ".join(unescape(strip_tags(found[1])).split()) if found else ""
