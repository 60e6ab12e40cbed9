"""A shortlist in the shapes that a command prints: table, JSON, CSV, Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from evaluator.advice import Advice
from evaluator.bills import Line
from evaluator.candidates import Candidate, age_words
from evaluator.findings import Severity
from evaluator.jobs import Workload
from evaluator.outlook import Outlook, words_of
from evaluator.prices import Basis
from evaluator.queueing import OpenLoop
from evaluator.shortlist import Shortlist
from evaluator.units import gib
from marketplace.advising import Advised, advised
from marketplace.management.tables import as_csv, as_json, as_markdown, as_table, plain

HEAD = (
    "#",
    "verdict",
    "plan",
    "memory per GPU, GiB",
    "price",
    "outlook",
    "age",
    "weakest evidence",
    "rentals",
    "machine",
)
PARTS = {
    "rows": "Ranked. Row 0 is the best option on a single GPU, even where that does not serve.",
    "unranked": "Not ranked: they serve, but the price cannot be compared.",
    "near_misses": "Near misses: they do not serve.",
}


BASIS_WORDS = {
    Basis.MACHINE: "per machine",
    Basis.GPU: "per GPU",
    Basis.UNKNOWN: "(of a machine or of a GPU: not stated)",
}
PRECISE_BELOW = 10


# --- words for one candidate


def cells(candidate: Candidate, now: datetime) -> list[str]:
    """The columns of HEAD. Every size is GiB (2^30 bytes), as the head says."""
    return [
        "–" if candidate.rank is None else str(candidate.rank),
        candidate.status,
        plan_words(candidate),
        memory_words(candidate),
        price_words(candidate),
        outlook_words(candidate),
        age_of(candidate, now),
        f"{candidate.plan.weakest.fact}: {candidate.plan.weakest.grade.word}",
        f"{candidate.rentals}",
        machine_words(candidate),
    ]


def plan_words(candidate: Candidate) -> str:
    """The plan, and how many of the GPUs that are paid for it leaves idle."""
    idle = candidate.plan.idle_gpus
    return candidate.plan.plan.label + (f" ({idle} idle)" if idle else "")


def memory_words(candidate: Candidate) -> str:
    """The need from low to high against what may be used of what the driver reports."""
    fit, usable = candidate.plan.fit, candidate.plan.usable_bytes
    if fit.needed is None or fit.allowed_bytes is None or usable is None:
        return "unknown"
    need = f"{gib(fit.needed.low):.1f}–{gib(fit.needed.high):.1f}"
    return f"{need} of {gib(fit.allowed_bytes):.1f} ({gib(usable):.1f} reported)"


def price_words(candidate: Candidate) -> str:
    """The sum for all rentals where an hour's rate follows; else what was published.

    Where the published rate is another figure, it follows in brackets with its basis.
    """
    quote, cost = candidate.rate.quote, candidate.cost_per_hour
    if quote is None:
        return "not published"
    currency = quote.currency or "currency unknown"
    purchase = quote.purchase.replace("_", "-")
    rate = f"{amount_words(quote.amount)} {currency}/{quote.unit} {BASIS_WORDS[quote.basis]}"
    if cost is None:
        return f"{rate}, {purchase}"
    published = "" if cost == quote.amount else f" (published: {rate})"
    return f"{amount_words(cost)} {currency}/h {rented_words(candidate)}, {purchase}{published}"


def rented_words(candidate: Candidate) -> str:
    """What the sum pays for: a plan pays for whole rentals, however many GPUs it leaves idle."""
    rentals, nodes = candidate.rentals, candidate.machine.nodes
    one = f"rental of {nodes} machines" if nodes > 1 else "machine"
    if rentals == 1:
        return f"per {one}"
    return f"for {rentals} rentals of {nodes} machines" if nodes > 1 else f"for {rentals} machines"


def amount_words(amount: Decimal) -> str:
    """Two decimals, or four where an amount below 10 needs them: 0.0624, 1,290.00."""
    short = f"{amount:,.2f}"
    return short if amount >= PRECISE_BELOW else f"{amount:.4f}".removesuffix("00")


def outlook_words(candidate: Candidate) -> str:
    """Speed, hours and cost from low to high, with what decides them where it is not known."""
    found, quote = candidate.outlook, candidate.rate.quote
    if found is None:
        return "not timed"
    words = words_of(found, (quote.currency or "") if quote else "")
    missed = f"; misses {', '.join(found.missed)}" if found.missed else ""
    return f"{words}{missed}" + (f"; conditional: {found.widest}" if found.conditional else "")


def age_of(candidate: Candidate, now: datetime) -> str:
    seen = candidate.offering.seen_at
    return age_words(now - seen) if seen else "unknown"


def machine_words(candidate: Candidate) -> str:
    offering, verdict = candidate.offering, candidate.machine
    count = "?" if verdict.gpu_count is None else verdict.gpu_count
    size = f"{verdict.nodes} × {count}" if verdict.nodes > 1 else f"{count}"
    more = len(candidate.alike)
    elsewhere = f" and {more} more place{'s' if more > 1 else ''}" if more else ""
    place = f"{offering.region or 'region unknown'}{elsewhere}"
    machine = f"{size} × {verdict.gpu_model or 'unknown GPU'}"
    return f"{machine}, {offering.provider}, {offering.title}, {place}"


def warnings_of(candidate: Candidate) -> list[str]:
    return [one.sentence for one in candidate.warnings]


def changes_of(candidate: Candidate) -> list[str]:
    """What would admit a plan that does not fit, least intrusive first."""
    return [one.words for one in candidate.plan.changes[:2]]


def moot_of(candidate: Candidate) -> list[str]:
    """Doubts about the machine that its plan does not meet, said without alarm."""
    moot = [one for one in candidate.notes if one.severity >= Severity.WARNING]
    return [f"Not needed by this plan: {one.sentence}" for one in moot]


# --- the whole in each shape


def request_words(workload: Workload, result: Shortlist) -> str:
    """What was asked, with what the evaluator assumed for it."""
    job = workload.serving
    asked = f"{workload.name}: {workload.task} {workload.model.name}, {workload.weights_format}"
    if job:
        asked += f", {job.concurrency} requests of {job.input_tokens} + {job.output_tokens} tokens"
    if workload.training:
        asked += f", sequences of {workload.training.seq_len} tokens"
    asked += f"; memory judged for {workload.terms}"
    assumed = "; ".join(f"{one.key} = {one.value}" for one in workload.assumptions)
    return f"{asked}. Prices in {result.currency}." + (f" Assumed: {assumed}." if assumed else "")


def closing_words(result: Shortlist) -> str:
    hidden = sum(result.hidden.values())
    why = "; ".join(f"{count} because {reason}" for reason, count in _most_first(result.hidden))
    tail = f", {hidden} hidden: {why}" if hidden else ", 0 hidden"
    return f"shown {result.shown} of {result.total}{tail}"


def _most_first(hidden: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(hidden.items(), key=lambda item: (-item[1], item[0]))


ADVISED = (0, 1)
"""Ranks whose rows say in full sentences what to do: the best single GPU and the first of all."""


def told_of(workload: Workload, result: Shortlist, now: datetime) -> Advised:
    """Rows with their advice, in order."""
    rows = [row for row in result.rows if row.rank in ADVISED]
    return advised(workload, result, rows, now)


def advice_lines(advice: Advice) -> list[str]:
    """One line for each answer, and one for each line of a command."""
    return [plain(line) for line in advice.text.splitlines()]


def _table(workload: Workload, result: Shortlist, now: datetime) -> str:
    return "\n".join(_table_lines(workload, result, now))


def _table_lines(workload: Workload, result: Shortlist, now: datetime) -> Iterator[str]:
    yield plain(request_words(workload, result))
    yield "Seen in catalogs: a snapshot, not a reservation."
    told = {id(row): advice for row, advice in told_of(workload, result, now)}
    for part, words in PARTS.items():
        shown: tuple[Candidate, ...] = getattr(result, part)
        if shown:
            yield f"\n{words}"
            yield from _with_warnings(shown, now, told)
    yield from _front_lines(result)
    yield f"\n{closing_words(result)}"


def _front_lines(result: Shortlist) -> Iterator[str]:
    if result.front:
        yield f"\n{FRONT}"
    for one in result.front:
        weakest = f"{one.plan.weakest.fact} {one.plan.weakest.grade.word}"
        words = (place_words(result, one), plan_words(one), outlook_words(one), weakest)
        yield f"  {plain('; '.join((*words, machine_words(one))))}"


FRONT = (
    "Worth weighing: of all ranked offers, shown or not, no other beats these in cost, time and "
    "evidence at once."
)


def place_words(result: Shortlist, candidate: Candidate) -> str:
    """Its row where it is shown."""
    same = (candidate.offering.key, candidate.plan.plan)
    rows = {(row.offering.key, row.plan.plan): row.rank for row in result.rows}
    return f"#{rows[same]}" if same in rows else "not shown"


def _with_warnings(
    shown: tuple[Candidate, ...], now: datetime, told: Mapping[int, Advice]
) -> Iterator[str]:
    """Each row, and below it the advice on it, what fails, and what is not known about it."""
    head, *lines = as_table(HEAD, [cells(one, now) for one in shown]).splitlines()
    yield head
    for line, candidate in zip(lines, shown, strict=True):
        yield line
        if id(candidate) in told:
            yield from (f"     {words}" for words in advice_lines(told[id(candidate)]))
        yield from (f"     ✗ {plain(words)}" for words in candidate.shortfalls)
        yield from (f"     → {plain(words)}" for words in changes_of(candidate))
        yield from (f"     ! {plain(words)}" for words in warnings_of(candidate))
        yield from (f"     · {plain(words)}" for words in moot_of(candidate))


def _markdown(workload: Workload, result: Shortlist, now: datetime) -> str:
    head, rows = _flat(result, now)
    parts = [plain(request_words(workload, result)), as_markdown(head, rows)]
    for row, advice in told_of(workload, result, now):
        told = "\n".join(f"    {line}" for line in advice_lines(advice))
        parts.append(f"Row {row.rank}:\n\n{told}")
    return "\n\n".join((*parts, closing_words(result)))


def _csv(workload: Workload, result: Shortlist, now: datetime) -> str:
    """As Markdown, with the advice on every row that serves in the last column."""
    head, rows = _flat(result, now)
    serving = [one for one in _every(result) if one.status.serves]
    told = {id(row): advice.text for row, advice in advised(workload, result, serving, now)}
    texts = [told.get(id(one), "") for one in _every(result)]
    return as_csv([*head, "advice"], [[*row, text] for row, text in zip(rows, texts, strict=True)])


def _every(result: Shortlist) -> list[Candidate]:
    return [one for part in PARTS for one in getattr(result, part)]


def _flat(result: Shortlist, now: datetime) -> tuple[list[str], list[list[str]]]:
    """One row per candidate of any part: what fails, what would mend it, what is not known."""
    rows = [
        [
            part,
            *cells(one, now),
            *map(_sentences, (one.shortfalls, changes_of(one), warnings_of(one))),
        ]
        for part in PARTS
        for one in getattr(result, part)
    ]
    head = ["part", *HEAD, "what fails", "smallest change", "warnings"]
    return head, [[plain(cell) for cell in row] for row in rows]


def _sentences(words: Iterable[str]) -> str:
    return " ".join(words)


def _json(workload: Workload, result: Shortlist, now: datetime) -> str:
    told = {id(row): asdict(advice) for row, advice in told_of(workload, result, now)}
    parts = {
        part: [_record(one, now) | {"advice": told.get(id(one))} for one in getattr(result, part)]
        for part in PARTS
    }
    counts = {"shown": result.shown, "total": result.total, "hidden": dict(result.hidden)}
    document = {
        "request": request_words(workload, result),
        "workload": workload.fingerprint(),
        "currency": result.currency,
        "configurations": result.configurations,
        **parts,
        "front": [{"listing": one.offering.key, "plan": one.plan.plan.key} for one in result.front],
        **counts,
    }
    return as_json(document)


def _record(candidate: Candidate, now: datetime) -> dict[str, Any]:
    offering, plan, quote = candidate.offering, candidate.plan, candidate.rate.quote
    needed = plan.fit.needed
    return {
        "rank": candidate.rank,
        "verdict": candidate.status,
        "listing": offering.key,
        "provider": offering.provider,
        "title": offering.title,
        "region": offering.region,
        "also_in": [one.region for one in candidate.alike],
        "plan": plan.plan.key,
        "plan_words": plan.plan.label,
        "rentals": candidate.rentals,
        "needed_bytes_per_gpu": [round(needed.low), round(needed.typical), round(needed.high)]
        if needed
        else None,
        "allowed_bytes_per_gpu": plan.fit.allowed_bytes,
        "usable_bytes_per_gpu": plan.usable_bytes,
        "link": plan.link.word,
        "cost_per_hour": _decimal(candidate.cost_per_hour),
        "currency": quote.currency if quote else None,
        "basis": quote.basis if quote else None,
        "purchase": quote.purchase if quote else None,
        "outlook": _outlook(candidate.outlook),
        "not_ranked_because": candidate.rate.not_ranked_because,
        "seen_at": offering.seen_at.isoformat() if offering.seen_at else None,
        "age": age_of(candidate, now),
        "weakest": {"fact": plan.weakest.fact, "grade": plan.weakest.grade.word},
        "reasons": list(plan.reasons),
        "what_fails": list(candidate.shortfalls),
        "changes": [one.words for one in plan.changes],
        "findings": [one.as_dict() | {"sentence": one.sentence} for one in candidate.findings],
    }


def _outlook(found: Outlook | None) -> dict[str, Any] | None:
    """Low, typical, high: tokens/s, seconds, hours, money; and what decides them."""
    if found is None:
        return None
    ranges = {name: getattr(found, name) for name in ("rate", "ttft", "tpot", "hours")}
    money = {name: getattr(found, name) for name in ("cost", "per_million")}
    deadline = found.deadline
    return {
        **{name: value and list(_ends(value)) for name, value in ranges.items()},
        **{name: value and list(map(_decimal, _ends(value))) for name, value in money.items()},
        "deadline": deadline and {"word": deadline.word, "slack_hours": deadline.slack_hours},
        "bill": found.bill and [_line(line) for line in found.bill.lines],
        "budget": found.budget and {"word": found.budget.word, "left": f"{found.budget.left:f}"},
        "queue": found.queue and _queue(found.queue),
        "missed_targets": list(found.missed),
        "dominating": found.dominating,
        "widest": found.widest,
        "conditional": found.conditional,
    }


def _queue(loop: OpenLoop) -> dict[str, Any]:
    """Of one engine, in seconds; percentiles are null above 0.9 utilization."""
    waits = {f"wait_{share:.0%}": loop.percentile(share) for share in (0.95, 0.99)}
    return {
        "places": loop.slots,
        "utilization": loop.utilization,
        "mean_wait": loop.mean_wait(),
        **{name: value and list(_ends(value)) for name, value in waits.items()},
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "cost": line.cost and list(map(_decimal, _ends(line.cost))),
        "stated": line.stated,
        "assumption": line.assumption,
    }


def _ends(value: Any) -> tuple[Any, Any, Any]:
    return value.low, value.typical, value.high


def _decimal(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"


SHAPES = {"table": _table, "json": _json, "csv": _csv, "md": _markdown}
