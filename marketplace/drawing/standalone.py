"""A picture of a page as a file of its own: with its name space and the rules it is drawn by."""

from __future__ import annotations

import re

RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
CLASSES = re.compile(r'class="([^"]*)"')
ALWAYS = (":root", "svg text")
FONT = "svg{font-family:system-ui,sans-serif}"


def standalone(svg: str, css: str) -> str:
    """The first <svg> of a fragment with the rules of `css` that name its classes.

    Rules inside a media query are left out: a file has the light look wherever it is shown.
    """
    drawn = svg[svg.index("<svg") : svg.rindex("</svg>") + len("</svg>")]
    used = {name for found in CLASSES.findall(drawn) for name in found.split()}
    rules = "".join(_rules(css, used))
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {drawn[len("<svg ") :]}'
    return start.replace(">", f"><style>{FONT}{rules}</style>", 1)


def _rules(css: str, used: set[str]) -> list[str]:
    plain = _outside_media(COMMENT.sub("", css))
    return [
        f"{selector.strip()}{{{' '.join(body.split())}}}"
        for selector, body in RULE.findall(plain)
        if selector.strip() in ALWAYS or _names(selector) & used
    ]


def _names(selector: str) -> set[str]:
    return set(re.findall(r"\.([\w-]+)", selector))


def _outside_media(css: str) -> str:
    """The style sheet without its blocks of blocks."""
    kept, depth, start = [], 0, 0
    for place, letter in enumerate(css):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                kept.append(css[start : place + 1])
                start = place + 1
    return "".join(block for block in kept if "@" not in block)
