"""What a catalog's word about the link between GPUs is worth on a given card."""

from __future__ import annotations

from evaluator.findings import Code, Finding, finding
from evaluator.gpus import candidates
from evaluator.machine import LinkClass

FORM_FACTORS = ("SXM", "PCIE", "NVL", "OAM")
"""Words for the shape of a board. They say what it may carry, never what it carries."""

_NEEDED = {
    LinkClass.NVSWITCH: "nvlink_nvswitch",
    LinkClass.NVLINK: "nvlink",
    LinkClass.NVLINK_PAIRS: "nvlink",
    LinkClass.NVLINK_BRIDGE: "nvlink",
    LinkClass.XGMI: "infinity_fabric",
}


def judge_link(
    model: str | None, form_factor: str | None, link: LinkClass | None, gpu_count: int | None
) -> tuple[Finding, ...]:
    """Findings on a machine of several GPUs; a single GPU has no link to judge."""
    if not gpu_count or gpu_count < 2:
        return ()
    if link is None:
        return _form_factor_only(form_factor)
    if link is LinkClass.NVLINK_PAIRS:
        return (*_implausible(model, form_factor, link), finding(Code.LINK_PAIRS_ONLY))
    return _implausible(model, form_factor, link) or _scope_unknown(model, form_factor, link)


def _form_factor_only(form_factor: str | None) -> tuple[Finding, ...]:
    if form_factor and form_factor.upper().startswith(FORM_FACTORS):
        return (finding(Code.FORM_FACTOR_ONLY, form_factor=form_factor),)
    return ()


def _implausible(
    model: str | None, form_factor: str | None, link: LinkClass
) -> tuple[Finding, ...]:
    """A link that no card under this name can carry."""
    needed, permitted = _NEEDED.get(link), _permitted(model, form_factor)
    if not needed or not permitted or any(kind.startswith(needed) for kind in permitted):
        return ()
    word = link.value.replace("_", " ")
    return (finding(Code.IMPLAUSIBLE_LINK, link=word, gpu_model=model),)


def _scope_unknown(
    model: str | None, form_factor: str | None, link: LinkClass
) -> tuple[Finding, ...]:
    """Plain "NVLink" on a card that takes bridges: two joined, four pairs, or none."""
    bridged = "nvlink_bridge_optional" in _permitted(model, form_factor)
    return (finding(Code.LINK_SCOPE_UNKNOWN),) if bridged and link is LinkClass.NVLINK else ()


def _permitted(model: str | None, form_factor: str | None) -> set[str]:
    cards = candidates(model, form_factor=form_factor) if model else ()
    return {link.kind for card in cards for link in card.permits}
