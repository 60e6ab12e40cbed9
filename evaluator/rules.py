"""In which order candidates stand: rules in words, no weights. The words are printed to readers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluator.jobs import ServingJob, Workload


class Goal(StrEnum):
    """What the money is compared for, once the words of two candidates are equal."""

    FINISH = "cost to finish"
    TOKENS = "cost per million tokens"
    HOUR = "cost per hour"


GOAL_WORDS = {
    Goal.FINISH: "then the lower cost of the machines to the end of the job, at the slow end of "
    "its speed",
    Goal.TOKENS: "then the lower cost of a million tokens, at the slow end of the speed",
    Goal.HOUR: "then the lower cost per hour of all machines that the plan needs",
}
DEADLINE_WORDS = "then what meets the deadline even at the slow end of its speed"
TARGET_WORDS = "then what meets every target even at the slow end of its speed"
FIRST = "Ready comes before conditional, then what fits for sure before what is tight"
LAST = "what cannot be timed follows; then fewer GPUs, then provider, title and place by name."


@dataclass(frozen=True, slots=True)
class Rule:
    """`promised` is True where a deadline or targets divide candidates before the money does."""

    goal: Goal
    promised: bool = False

    @property
    def timed(self) -> bool:
        return self.promised or self.goal is not Goal.HOUR

    @property
    def sentence(self) -> str:
        """The whole rule, as the page prints it."""
        promise = DEADLINE_WORDS if self.goal is Goal.FINISH else TARGET_WORDS
        steps = [FIRST, *([promise] if self.promised else []), GOAL_WORDS[self.goal]]
        return "; ".join([*steps, LAST if self.timed else LAST.partition("; ")[2]])


def rule_of(workload: Workload) -> Rule:
    """A job with an end is compared by what it costs to end it, an engine by its tokens.

    Where the demand on an engine is stated, more speed than that is worth nothing: the hour counts.
    """
    job, training = workload.serving, workload.training
    if training:
        ends = training.tokens_to_train is not None
        late = ends and training.deadline_hours is not None
        return Rule(Goal.FINISH if ends else Goal.HOUR, late)
    stated = job is not None and (job.tokens_per_s is not None or job.arrival_rate is not None)
    return Rule(Goal.HOUR if stated else Goal.TOKENS, job is not None and _has_targets(job))


def _has_targets(job: ServingJob) -> bool:
    return any(target is not None for target in (job.ttft_ms, job.tpot_ms, job.tokens_per_s))
