"""The texts of the findings that reading a catalog gives: about a listing, a row, a page."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.facts import Grade
from evaluator.meanings import ASK_MEMORY, ASK_TOPOLOGY, Meaning, blocker, info, warning

COMPARE = (
    "Compare with the provider's page, then accept or reject the run; a decision in the admin "
    "clears it."
)
MEND = "Mend the source's profile or wait for its next visit; a page that is read whole clears it."

_LISTING: Mapping[str, Meaning] = {
    "basis_unknown": warning(
        "{price} is not said to be per machine or per GPU; with {gpu_count} GPUs the bill may "
        "differ {gpu_count}-fold.",
        "Ask whether the rate covers the whole machine.",
        Grade.DECLARED,
    ),
    "price_missing": warning("No price is published.", "Ask for a quote.", Grade.DECLARED),
    "no_on_demand_price": warning(
        "Only {purchase} prices are published.", "Ask for an on-demand rate.", Grade.DECLARED
    ),
    "price_from": warning(
        "The price is a lowest price: {words}.",
        "Ask for the full quote of this machine.",
        Grade.DECLARED,
    ),
    "not_hourly": warning(
        "It cannot be booked by the hour, only by the {unit}.",
        "Ask for an hourly rate, or count the whole {unit}.",
        Grade.DECLARED,
    ),
    "tax_included": info(
        "The printed price includes tax: {words}.",
        "Ask for the price without tax before comparing.",
        Grade.DECLARED,
    ),
    "tiered_price": warning(
        "The price changes with use: {words}.",
        "Ask for the rate of the hours that you need.",
        Grade.DECLARED,
    ),
    "currency_ambiguous": warning(
        "The currency is not certain: {words}.",
        "Ask in which currency the bill is written.",
        Grade.DECLARED,
    ),
    "currency_unknown": warning(
        "No currency is stated beside {amount}.",
        "Ask in which currency the bill is written.",
        Grade.DECLARED,
    ),
    "unit_unknown": warning(
        "{words} is not said to be per hour, month or other time.",
        "Ask what the rate covers.",
        Grade.DECLARED,
    ),
    "amount_ambiguous": warning(
        "{words} can be read as two different amounts.",
        "Ask for the amount with its decimals.",
        Grade.DECLARED,
    ),
    "vram_ambiguous": warning(
        "{words} may be memory per GPU or of the machine: this model exists in {sizes} GB.",
        ASK_MEMORY,
        Grade.MEASURED,
    ),
    "vram_unknown": warning("Memory per GPU is not known: {words}.", ASK_MEMORY, Grade.DECLARED),
    "vram_total_divided": info(
        "{words} was the machine's total; each GPU has {each} GB.", ASK_MEMORY, Grade.MEASURED
    ),
    "vram_unit_corrected": info(
        "{words} stood in a MiB field but counts GB.", ASK_MEMORY, Grade.MEASURED
    ),
    "vram_nonstandard": warning(
        "{words} is no published memory size of {gpu_model}.", ASK_MEMORY, Grade.MEASURED
    ),
    "form_factor_only": warning(
        "{form_factor} is a form factor; no link between the GPUs is stated.",
        ASK_TOPOLOGY,
        Grade.MEASURED,
    ),
    "link_pairs_only": warning("NVLink joins pairs of GPUs only.", ASK_TOPOLOGY, Grade.MEASURED),
    "link_scope_unknown": warning(
        "NVLink is claimed for cards that may be joined in pairs or not at all.",
        ASK_TOPOLOGY,
        Grade.MEASURED,
    ),
    "implausible_link": warning(
        "{link} is claimed, but {gpu_model} has no such link.", ASK_TOPOLOGY, Grade.MEASURED
    ),
    "conflicting_values": warning(
        "Two places disagree: {words}.",
        "Ask which of the two holds; an output of the machine or a curator's correction clears it.",
    ),
    "multi_node": info(
        "This rental is {nodes} machines, joined by a network.",
        "Judge plans over several machines by that network, or ask for a single machine; an offer "
        "of one machine clears it.",
    ),
    "fractional_gpu": warning(
        "It is a share of a GPU: {words}.",
        "Ask for whole GPUs; an offer of whole GPUs clears it.",
    ),
    "availability_unknown": info(
        "The catalog does not say whether it can be rented now.",
        "Ask whether the whole machine is free now.",
        Grade.DECLARED,
    ),
    "gpu_unknown": warning(
        "The GPU {words} is not in our list of published cards.",
        "Ask for `nvidia-smi -L`; an alias in the admin that names the card clears it.",
    ),
    "finding_outdated": warning(
        "An earlier reading noted {words}, which this version cannot put into words.",
        "Sync the source again; the next reading clears it.",
    ),
}

_ROW: Mapping[str, Meaning] = {
    "vram_impossible": blocker(
        "{words} fits {gpu_model} neither per GPU nor as a total.",
        "Compare with the provider's page; a published size, or a correction in the admin, "
        "clears it.",
    ),
    "value_out_of_range": blocker(
        "{field} = {value} is outside {expected}.",
        "Compare with the provider's page; a value inside the range clears it.",
    ),
    "duplicate_key": blocker(
        "The key {key} stands {times} times in one file.",
        "Give each machine a key of its own; a reading in which the key stands once clears it.",
    ),
    "row_unreadable": blocker(
        "{field}: read {value}, expected {expected}.",
        "Mend the row at its source; a row that holds what is expected clears it.",
    ),
    "price_jumped": blocker("The price for an hour was {before} and is now {now}.", COMPARE),
    "price_terms_changed": blocker("The price was {before} and is now {now}.", COMPARE),
    "price_outlying": blocker(
        "{now} per GPU and hour is far from {middle}, the middle price of {gpu_model} elsewhere.",
        COMPARE,
    ),
}

_PAGE: Mapping[str, Meaning] = {
    "structure_changed": warning(
        "The source no longer looks as its profile says: {words}.",
        "Look at the preview in the admin; a mended profile or accepted pages clear it.",
    ),
    "layout_changed": blocker(
        "Listings were expected on the page and none was found.",
        "Check the source's profile against the stored page; a page with listings clears it.",
    ),
    "challenge_page": blocker(
        "The site answered with a challenge instead of its catalog.",
        "Ask the provider for a feed, or import its list; a visit that gets the catalog clears it.",
    ),
    "page_truncated": blocker("The body ends before the document does.", MEND),
    "count_mismatch": warning("The page counts {stated} listings, {found} were found.", MEND),
    "pagination_loop": info("The page list leads back to {url}.", MEND),
    "duplicate_listing": info(
        "{key} stands there more than once.",
        "None is needed while both say the same; a reading in which it stands once clears it.",
    ),
    "malformed_structured_data": warning(
        "A block of structured data cannot be parsed: {words}.", MEND
    ),
    "hidden_text_ignored": info(
        "Text that no visitor sees was not read.",
        "Look at the stored page if a machine is missing; a page without hidden text clears it.",
    ),
    "encoding_replaced": warning("{count} bytes are not valid in the page's encoding.", MEND),
    "stale_page": warning(
        "The page dates itself {date}.",
        "Ask whether the prices still hold; a page with a newer date clears it.",
    ),
}

CATALOG_MEANINGS = {**_LISTING, **_ROW, **_PAGE}
"""By the value of the code, which `evaluator.findings.Code` lists with all others."""
