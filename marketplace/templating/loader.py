"""Loads a template once and keeps it as functions."""

from __future__ import annotations

from typing import Any

from django.template import Template
from django.template.loaders import cached

from marketplace.templating.nodes import Written


class Loader(cached.Loader):
    """Django's own loader of kept templates. With DEBUG they stay as Django reads them: its error
    page names the tag that failed.
    """

    def get_template(self, template_name: str, skip: Any = None) -> Template:
        template = super().get_template(template_name, skip)
        if not self.engine.debug and not isinstance(template.nodelist, Written):
            template.nodelist = Written(template.nodelist)
        return template
