"""What a model, a batch or an engine does not allow, each with the smallest change that admits it.

Rules of Megatron-LM (validate_args), PyTorch's pipeline schedules and the serving engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from evaluator.degrees import Plan
from evaluator.findings import Finding, finding
from evaluator.formats import weight_format
from evaluator.jobs import Schedule, TrainingJob, Workload
from evaluator.obstacles import Obstacle, Value, change_words, fixed, indivisible, unsupported
from evaluator.shapes import Experts, ModelShape

ENGINE_SPLITS = {
    "llama.cpp": frozenset({"tp", "pp"}),
    "transformers": frozenset({"tp"}),
    "gpt-fast": frozenset({"tp"}),
}
"""Degrees that an engine has, of those beside replicas; engines not named have all but context."""
USUAL_SPLITS = frozenset({"tp", "pp", "dp", "ep"})
SPLIT_WORDS = {
    "tp": "tensor parallel",
    "pp": "pipeline stages",
    "dp": "attention divided by requests",
    "ep": "expert parallel",
    "cp": "context parallel",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plan that the model, the batch or the engine does not allow."""

    workload: Workload
    plan: Plan

    @property
    def finding(self) -> Finding:
        """The reason, and the changes that together admit the plan."""
        found = refusal_of(self.workload, self.plan)
        if found is None:
            raise ValueError(f"{self.plan.key} is not refused")
        return found


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Legal plans, narrowest first, and the refused ones in the same order."""

    plans: tuple[Plan, ...]
    refused: tuple[Refusal, ...] = ()


def is_refused(workload: Workload, plan: Plan) -> bool:
    return obstacle_of(workload, plan) is not None


def obstacle_of(workload: Workload, plan: Plan) -> Obstacle | None:
    """The first one, by the order of the rules."""
    for rule in RULES:
        if found := rule(workload, plan):
            return found
    return None


def refusal_of(workload: Workload, plan: Plan) -> Finding | None:
    """Why the plan cannot be had, and what would admit it. None when it can."""
    first = obstacle_of(workload, plan)
    if first is None:
        return None
    words = {name: str(value) for name, value in first.words.items()}
    return finding(first.code, **words, change=change_words(_whole_fix(workload, plan)))


MOST_OBSTACLES = 12
"""More than there are rules: each fix removes one, and few bring another."""


def _whole_fix(workload: Workload, plan: Plan) -> dict[str, Value]:
    """The fixes of one obstacle after the other, until none stands."""
    whole: dict[str, Value] = {}
    for _ in range(MOST_OBSTACLES):
        found = obstacle_of(workload, plan)
        if found is None:
            break
        whole |= found.fix
        workload, plan = fixed(workload, plan, found.fix)
    return whole


def _largest(below: int, fits: Callable[[int], bool]) -> int:
    """The largest degree under `below` that fits; 1 where none does."""
    return next((degree for degree in range(below - 1, 0, -1) if fits(degree)), 1)


# --- the engine


def _refuse_engine(workload: Workload, plan: Plan) -> Obstacle | None:
    job = workload.serving
    if job is None:
        return None
    known = ENGINE_SPLITS.get(job.engine, USUAL_SPLITS)
    missing = [name for name in SPLIT_WORDS if getattr(plan, name) > 1 and name not in known]
    if not missing:
        return None
    what = SPLIT_WORDS[missing[0]]
    if set(missing) <= USUAL_SPLITS:
        return unsupported(job.engine, what, engine="vllm")
    return unsupported(job.engine, what, **{missing[0]: 1})


# --- tensor ranks


def _refuse_tensor(workload: Workload, plan: Plan) -> Obstacle | None:
    quantity = undivided_by(workload, plan.tp, spread=plan.ep > 1)
    if not quantity:
        return None
    if workload.serving and plan.ep > 1:
        return indivisible(quantity, plan.tp, **_fewer_ranks(workload, plan, "tp"))
    admitted = _largest(plan.tp, lambda tp: not undivided_by(workload, tp, spread=plan.ep > 1))
    return indivisible(quantity, plan.tp, tp=admitted)


def _fewer_ranks(workload: Workload, plan: Plan, name: str) -> dict[str, int]:
    """The next smaller engine that shares its experts among all of its ranks, by one degree."""
    count = workload.model.experts.count if workload.model.experts else 1

    def fits(degree: int) -> bool:
        ranks = degree * other
        tp = degree if name == "tp" else plan.tp
        dealt = ranks % plan.etp == 0 and count % (ranks // plan.etp) == 0
        return dealt and not undivided_by(workload, tp, spread=ranks > plan.etp)

    other = plan.tp * plan.dp // getattr(plan, name)
    degree = _largest(getattr(plan, name), fits)
    experts = degree * other // plan.etp
    return {name: degree, "ep": max(1, experts), **(_whole(plan) if experts <= 1 else {})}


def undivided_by(workload: Workload, tp: int, *, spread: bool = False) -> str:
    """The first quantity of the model that `tp` ranks cannot share. Empty when they can.

    The vocabulary is padded by every engine, so it never refuses. KV heads are copied where there
    are more ranks than heads; a latent cache is copied always. Weights that share a scale must stay
    on one rank, or the engine refuses to load. `spread` experts lie whole on their ranks.
    """
    return _undivided_by(workload.model, workload.weights_format, tp, spread)


@lru_cache(maxsize=4096)
def _undivided_by(model: ModelShape, weights_format: str, tp: int, spread: bool) -> str:
    attention = model.attention
    heads, kv_heads = attention.heads, attention.kv_heads
    if heads % tp:
        return f"{heads} attention heads"
    if not attention.latent and kv_heads % tp and tp % kv_heads:
        return f"{kv_heads} KV heads"
    sizes = [one for one in _inner_sizes(model) if not (spread and one[0] == EXPERT_SIZE)]
    return _undivided_size(weights_format, tp, sizes)


EXPERT_SIZE = "expert size"


def _undivided_size(weights_format: str, ranks: int, sizes: Iterable[tuple[str, int]]) -> str:
    if ranks == 1:
        return ""
    form = weight_format(weights_format)
    group = form.group if form else 1
    in_groups = f" in groups of {group}" if group > 1 else ""
    odd = ((name, size) for name, size in sizes if size % (ranks * group))
    return next((f"the {name} of {size}{in_groups}" for name, size in odd), "")


def _inner_sizes(model: ModelShape) -> list[tuple[str, int]]:
    """Sizes that tensor parallelism divides inside the layers, for the layers that exist."""
    experts = model.experts
    if experts is None:
        return [("MLP size", model.mlp_size)]
    dense = model.mlp_size if experts.dense_layers else 0
    return [
        ("MLP size", dense),
        (EXPERT_SIZE, experts.size),
        ("shared expert size", experts.shared_size),
    ]


# --- expert ranks


def _refuse_experts(workload: Workload, plan: Plan) -> Obstacle | None:
    experts = workload.model.experts
    if plan.ep == 1:
        return None
    if experts is None:
        return unsupported("a model without experts", SPLIT_WORDS["ep"], ep=1, **_whole(plan))
    if experts.count % plan.ep:
        quantity = f"{experts.count} experts"
        if workload.serving:
            name = "dp" if plan.dp > 1 else "tp"
            return indivisible(quantity, plan.ep, **_fewer_ranks(workload, plan, name))
        return indivisible(quantity, plan.ep, **_fewer_experts(plan, experts.count))
    return _refuse_expert_ranks(workload, plan, experts)


def _whole(plan: Plan) -> dict[str, int]:
    """What is left of shared experts where none are: nothing inside an expert."""
    return {"etp": 1} if plan.etp > 1 else {}


def _fewer_experts(plan: Plan, count: int) -> dict[str, int]:
    """The largest smaller degree that divides the experts and the ranks."""
    ranks = plan.tp * plan.dp * plan.cp
    degree = _largest(plan.ep, lambda ep: not (count % ep or ranks % (ep * plan.etp)))
    return {"ep": degree} if degree > 1 else {"ep": 1, **_whole(plan)}


def _refuse_expert_ranks(workload: Workload, plan: Plan, experts: Experts) -> Obstacle | None:
    """Experts lie on ranks that exist: all of a serving engine's, a part of a training job's."""
    ranks, wanted = plan.tp * plan.dp * plan.cp, plan.ep * plan.etp
    if workload.serving and wanted != plan.tp * plan.dp:
        every = plan.tp * plan.dp
        fix = {"ep": every // plan.etp} if every % plan.etp == 0 else {"ep": every, "etp": 1}
        return indivisible(f"an engine of {_ranks(every)}", wanted, **fix)
    if ranks % wanted:
        return indivisible(_ranks(ranks), wanted, **_fewer_experts(plan, experts.count))
    quantity = _undivided_size(workload.weights_format, plan.etp, [(EXPERT_SIZE, experts.size)])
    return indivisible(quantity, plan.etp, etp=1) if quantity else None


def _ranks(count: int) -> str:
    return f"{count} rank{'' if count == 1 else 's'}"


# --- stages


def _refuse_stages(workload: Workload, plan: Plan) -> Obstacle | None:
    """Serving engines take uneven stages; training frameworks want equal ones."""
    layers, pp = workload.model.layers, plan.pp
    if pp == 1 or (layers >= pp and (workload.serving or layers % pp == 0)):
        return None
    stages = _largest(min(pp, layers + 1), lambda stages: layers % stages == 0)
    return indivisible(f"{layers} layers", pp, pp=stages)


def _refuse_turns(workload: Workload, plan: Plan) -> Obstacle | None:
    """Interleaved stages: a training job with stages, the 1F1B schedule and whole turns."""
    job, layers = workload.training, workload.model.layers
    if plan.virtual == 1:
        return None
    if job is None or plan.pp == 1:
        return unsupported("a plan without training stages", "interleaving", virtual=1)
    if job.schedule is not Schedule.ONE_F_ONE_B:
        who, able = f"the {job.schedule} schedule", Schedule.ONE_F_ONE_B
        return unsupported(who, "interleaving", schedule=able)
    turns = plan.pp * plan.virtual
    if layers % turns:
        admitted = _largest(plan.virtual, lambda turn: layers % (plan.pp * turn) == 0)
        return indivisible(f"{layers} layers", turns, virtual=admitted)
    return None


def _refuse_rounds(workload: Workload, plan: Plan) -> Obstacle | None:
    """1F1B needs a micro-batch for each stage; interleaved ones come in whole groups of stages."""
    job, pp = workload.training, plan.pp
    if job is None or job.global_batch is None or pp == 1:
        return None
    ranks = plan.dp * job.micro_batch
    rounds = job.global_batch // ranks
    short = rounds < pp
    uneven = plan.virtual > 1 and rounds % pp
    if not short and not uneven:
        return None
    wanted = pp if short else -(-rounds // pp) * pp
    return indivisible(f"a step of {rounds} micro-batches", pp, global_batch=wanted * ranks)


# --- batch and sequence


def _refuse_batch(workload: Workload, plan: Plan) -> Obstacle | None:
    """Every rank must get the same number of micro-batches."""
    job = workload.training
    ranks = plan.dp * job.micro_batch if job else 1
    if job is None or job.global_batch is None or job.global_batch % ranks == 0:
        return None
    quantity, wanted = job.global_batch, -(-job.global_batch // ranks) * ranks
    words = f"the global batch of {quantity} sequences"
    return indivisible(words, ranks, global_batch=wanted)


def _refuse_sequence(workload: Workload, plan: Plan) -> Obstacle | None:
    """A causal sequence is cut into twice as many parts as ranks, so that all have equal work."""
    job = workload.training
    if job is None or not _parts(job, plan) or job.seq_len % _parts(job, plan) == 0:
        return None
    parts = _parts(job, plan)
    wanted = -(-job.seq_len // parts) * parts
    return indivisible(f"a sequence of {job.seq_len} tokens", parts, seq_len=wanted)


def _parts(job: TrainingJob, plan: Plan) -> int:
    """Equal parts into which a sequence must fall; 0 where it is not cut."""
    across = plan.tp if job.sequence_parallel else 1
    return 2 * plan.cp * across if plan.cp > 1 else 0


def _refuse_shards(workload: Workload, plan: Plan) -> Obstacle | None:
    """Copies of the parameters are whole."""
    ranks = plan.dp * plan.cp
    if ranks % plan.shard == 0:
        return None
    admitted = _largest(plan.shard, lambda shard: ranks % shard == 0)
    return indivisible(_ranks(ranks), plan.shard, shard=admitted)


RULES = (
    _refuse_engine,
    _refuse_tensor,
    _refuse_experts,
    _refuse_stages,
    _refuse_turns,
    _refuse_batch,
    _refuse_rounds,
    _refuse_sequence,
    _refuse_shards,
)
"""In the order in which they are told: one reason is enough for a plan that cannot be had."""
