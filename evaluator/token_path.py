"""One token followed through a decode step: what every GPU does meanwhile, as data for a picture.

The parts are the terms of the estimated time per token, laid out in the order in which they occur;
low and high stretch them all alike, so a path ends exactly at the time per token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from evaluator.engine_load import EngineModel
from evaluator.estimates import Setting
from evaluator.jobs import Workload
from evaluator.layouts import layout_of
from evaluator.links import words_of
from evaluator.machine import Machine
from evaluator.placement import Placement, Rank, placement_of
from evaluator.plans import Plan
from evaluator.ranges import Range
from evaluator.rentals import rental_of
from evaluator.timing import engine_on, serving_times
from evaluator.token_time import ACTIVATION_BYTES, all_reduce_calls, expert_bytes, room_for


class Doing(StrEnum):
    COMPUTE = "compute"
    COLLECTIVE = "collective"
    HOP = "hop"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Segment:
    """What GPU `gpu` does from `start` to `end`, in seconds since the step began.

    `bytes` are read from the GPU's memory by a compute segment and handed to the link by the
    others, over all `calls` together. `link` is empty where nothing is sent.
    """

    gpu: int
    kind: Doing
    start: Range
    end: Range
    what: str
    bytes: int = 0
    calls: int = 0
    link: str = ""


@dataclass(frozen=True, slots=True)
class TokenPath:
    """Segments by GPU, then by time; those of one GPU follow each other without a gap.

    `total` is the time per token. `conditional` is True where a link that is not known decides:
    the shares are then those of the slowest that it may be. `idle` are GPUs without any part.
    """

    plan: Plan
    total: Range
    segments: tuple[Segment, ...]
    idle: tuple[int, ...] = ()
    conditional: bool = False
    widest: str = ""

    def of_gpu(self, gpu: int) -> tuple[Segment, ...]:
        return tuple(one for one in self.segments if one.gpu == gpu)

    def shares(self) -> dict[Doing, float]:
        """Share of the step by what the first GPU does."""
        found = dict.fromkeys(Doing, 0.0)
        for one in self.of_gpu(0):
            found[one.kind] += (one.end.typical - one.start.typical) / self.total.typical
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the step that one group of GPUs spends, in typical seconds."""

    kind: Doing
    what: str
    seconds: float
    bytes: int = 0
    calls: int = 0
    link: str = ""


def token_path(workload: Workload, plan: Plan, machine: Machine) -> TokenPath | None:
    """None for a training job and where the plan cannot be timed."""
    rental, layout = rental_of(machine, plan.nodes), layout_of(plan)
    times = serving_times(workload, layout, rental) if rental else None
    engine = engine_on(workload, layout, rental, rental.worlds[0]) if rental else None
    if times is None or engine is None:
        return None
    terms, tpot = dict(times.tpot.terms), times.tpot.value
    placed = placement_of(workload.model, plan, machine.gpu_count.value)
    step = _Step(engine, placed, terms, machine)
    segments = (one for rank in placed.ranks for one in _stretched(rank.gpu, step.of(rank), tpot))
    return TokenPath(
        plan, tpot, tuple(segments), placed.idle, times.tpot.conditional, times.tpot.widest
    )


def _stretched(gpu: int, parts: list[_Part], total: Range) -> Iterator[Segment]:
    """Parts as segments; their sum is the typical total in every world but a conditional one."""
    whole = sum(part.seconds for part in parts)
    done, start = 0.0, total.scaled(0)
    for index, part in enumerate(parts):
        done += part.seconds
        last = index == len(parts) - 1
        end = total if last else total.scaled(done / whole)
        yield Segment(gpu, part.kind, start, end, part.what, part.bytes, part.calls, part.link)
        start = end


@dataclass(frozen=True, slots=True)
class _Step:
    engine: EngineModel
    placed: Placement
    terms: Mapping[str, float]
    machine: Machine

    def of(self, rank: Rank) -> list[_Part]:
        """All that one GPU does in the step of a token that the first replica serves."""
        if rank.replica:
            return [_Part(Doing.WAIT, ELSEWHERE, sum(self.terms.values()))]
        parts = [_Part(Doing.WAIT, "the host prepares the step", self.terms.get("host", 0.0))]
        for stage in range(self.engine.layout.stages):
            parts += self._stage(stage) if stage == rank.stage else [self._away(stage)]
        waited = self.terms.get("prefill of others", 0.0)
        parts.append(_Part(Doing.WAIT, "new prompts of other requests are read", waited))
        return _merged([part for part in parts if part.seconds > 0])

    def _away(self, stage: int) -> _Part:
        spent = sum(part.seconds for part in self._stage(stage))
        return _Part(Doing.WAIT, OTHER_STAGE, spent)

    def _stage(self, stage: int) -> list[_Part]:
        """A stage with fewer layers than the largest waits for the difference."""
        held = [layers for _, layers in self.placed.stages]
        share = held[stage] / max(held) if max(held) else 1.0
        first, layers = self.placed.stages[stage]
        where = f"layers {first} to {first + layers - 1}" if layers else "no layer"
        busy = [replace(part, seconds=part.seconds * share) for part in self._busy(where, share)]
        behind = sum(part.seconds for part in busy) * (1 / share - 1) if share else 0.0
        slack = _Part(Doing.WAIT, "the stage with most layers sets the pace", behind)
        return [part for part in (*busy, slack, *self._hop(stage)) if part.seconds > 0]

    def _busy(self, where: str, share: float) -> Iterator[_Part]:
        """Compute and exchange of one stage, as long as those of the largest one."""
        engine, stages = self.engine, self.engine.layout.stages
        running, size = self._running, self._message
        read = {
            "reading weights": engine.weights_read(running),
            "decode arithmetic": engine.weights_read(running),
            "reading the cache": running * engine.load.cache_bytes,
        }
        for name, moved in read.items():
            spent = self.terms.get(name, 0.0) / stages
            yield _Part(Doing.COMPUTE, f"{name} of {where}", spent, round(moved * share))
        calls = round(all_reduce_calls(engine) / stages * share)
        spent = self.terms.get("exchange", 0.0) / stages
        yield self._sent(f"{calls} all-reduces", spent, calls, size, self._wire)
        routed = round(2 * engine.load.routed_layers / stages * share)
        spent = self.terms.get("expert exchange", 0.0) / stages
        spread = engine.layout.engine_machines > 1
        link = self._network if spread else self._wire
        yield self._sent(f"{routed} all-to-alls", spent, routed, expert_bytes(engine, size), link)

    def _sent(self, what: str, spent: float, calls: int, size: float, link: str) -> _Part:
        return _Part(Doing.COLLECTIVE, what, spent, round(calls * size), calls, link)

    def _hop(self, stage: int) -> list[_Part]:
        stages = self.engine.layout.stages
        spent, size = self.terms.get("hops", 0.0) / stages, self._message
        if stage == stages - 1:
            what, link = "the token returns to the first stage", self._link(stage, 0)
            return [_Part(Doing.HOP, what, spent, TOKEN_BYTES, 1, link)]
        what, link = f"activations to stage {stage + 1}", self._link(stage, stage + 1)
        sent = round(size / self.engine.layout.tensor)
        return [_Part(Doing.HOP, what, spent, sent, 1, link)]

    def _link(self, stage: int, to: int) -> str:
        """The link between two stages: the network where their machines differ."""
        machines = {rank.stage: rank.machine for rank in self.placed.ranks if not rank.replica}
        return self._wire if machines[stage] == machines[to] else self._network

    @property
    def _network(self) -> str:
        return self.machine.inter_node.value or "a network not known"

    @property
    def _wire(self) -> str:
        known = self.machine.link.value
        return words_of(known) if known else "a link not known"

    @property
    def _running(self) -> float:
        """Sequences of one stage of one data-parallel rank in a step."""
        layout = self.engine.layout
        users = self.engine.job.concurrency / (layout.replicas * layout.data)
        slots = max(1.0, room_for(self.engine, Setting()))
        return max(1.0, min(users, slots) / layout.stages)

    @property
    def _message(self) -> float:
        return self._running * self.engine.hidden * ACTIVATION_BYTES


TOKEN_BYTES = 4
"""The number of one sampled token."""
ELSEWHERE = "another replica: it serves other requests and exchanges nothing with this one"
OTHER_STAGE = "another stage has the token; this one serves other requests, or idles"


def _merged(parts: list[_Part]) -> list[_Part]:
    """Waits of one kind that follow each other become one."""
    found: list[_Part] = []
    for part in parts:
        last = found[-1] if found else None
        if last and last.kind is Doing.WAIT and last.what == part.what:
            found[-1] = replace(last, seconds=last.seconds + part.seconds)
        else:
            found.append(part)
    return found
