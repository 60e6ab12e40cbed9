"""Waiting for a served model: closed loops (Little), saturation, and open loops (Erlang C)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from evaluator.ranges import Range

BUSIEST = 0.9
"""Above this share of busy slots a percentile says nothing: it moves by its own size."""
ARRIVALS_SPREAD = Range(0.5, 1.0, 2.0)
"""Service varies less than exponential time, arrivals come in bursts."""


def closed_rate(users: int, output_tokens: int, request_seconds: float) -> float:
    """Little's law: output tokens/s of `users` that ask again as soon as they are answered."""
    return users * output_tokens / request_seconds


def saturation_wait(users: int, slots: int, requests_per_s: float) -> float:
    """Seconds that a request waits where more users ask than slots serve."""
    return max(0, users - slots) / requests_per_s


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """`slots` servers, `arrivals_per_s` requests, each served in `service_seconds` on average."""

    slots: int
    arrivals_per_s: float
    service_seconds: float

    @property
    def load(self) -> float:
        """Busy slots on average, in erlangs."""
        return self.arrivals_per_s * self.service_seconds

    @property
    def utilization(self) -> float:
        return self.load / self.slots

    @property
    def stable(self) -> bool:
        return self.utilization < 1

    def waiting_probability(self) -> float:
        """Erlang C; 1 where the queue grows without end."""
        if not self.stable:
            return 1.0
        blocking = 1.0
        for busy in range(1, self.slots + 1):
            blocking = self.load * blocking / (busy + self.load * blocking)
        return blocking / (1 - self.utilization * (1 - blocking))

    def mean_wait(self) -> float | None:
        """Seconds. None where the queue grows without end."""
        if not self.stable:
            return None
        return self.waiting_probability() / (self._drain())

    def exceeds(self, seconds: float) -> float:
        """Share of requests that wait longer."""
        return self.waiting_probability() * exp(-max(0.0, self._drain()) * seconds)

    def percentile(self, share: float) -> Range | None:
        """Wait that `share` of the requests stay under, x0.5 to x2. None above 0.9 utilization."""
        if self.utilization > BUSIEST:
            return None
        waiting = self.waiting_probability()
        wait = max(0.0, log(waiting / (1 - share)) / self._drain()) if waiting else 0.0
        return ARRIVALS_SPREAD.scaled(wait)

    def _drain(self) -> float:
        """Requests/s by which service outruns arrivals while all slots are busy."""
        return self.slots / self.service_seconds - self.arrivals_per_s
