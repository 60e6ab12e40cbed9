"""What a model, a batch or an engine does not allow, each with the smallest change that admits it.

Rules of Megatron-LM (validate_args), PyTorch's pipeline schedules and the serving engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from evaluator.degrees import Plan
from evaluator.findings import Code, Finding, finding
from evaluator.formats import weight_format
from evaluator.jobs import Schedule, TrainingJob, Workload
from evaluator.shapes import ModelShape

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


def refusal_of(workload: Workload, plan: Plan) -> Finding | None:
    """Why the plan cannot be had. None when it can."""
    for rule in RULES:
        if found := rule(workload, plan):
            return found
    return None


def _indivisible(quantity: str, degree: int, change: str) -> Finding:
    return finding(Code.PLAN_INDIVISIBLE, quantity=quantity, degree=degree, change=change)


def _unsupported(who: str, what: str, change: str) -> Finding:
    what = f"{what[0].upper()}{what[1:]}"
    return finding(Code.PLAN_UNSUPPORTED, who=who, what=what, change=change)


def _largest(below: int, fits: Callable[[int], bool]) -> int:
    """The largest degree under `below` that fits; 1 where none does."""
    return next((degree for degree in range(below - 1, 0, -1) if fits(degree)), 1)


# --- the engine


def _refuse_engine(workload: Workload, plan: Plan) -> Finding | None:
    job = workload.serving
    if job is None:
        return None
    known = ENGINE_SPLITS.get(job.engine, USUAL_SPLITS)
    missing = [name for name in SPLIT_WORDS if getattr(plan, name) > 1 and name not in known]
    if not missing:
        return None
    able = "vllm" if set(missing) <= USUAL_SPLITS else ""
    change = f"Set engine to {able}." if able else f"Use a {missing[0]} of 1."
    return _unsupported(job.engine, SPLIT_WORDS[missing[0]], change)


# --- tensor ranks


def _refuse_tensor(workload: Workload, plan: Plan) -> Finding | None:
    quantity = undivided_by(workload, plan.tp, spread=plan.ep > 1)
    if not quantity:
        return None
    admitted = _largest(plan.tp, lambda tp: not undivided_by(workload, tp, spread=plan.ep > 1))
    return _indivisible(quantity, plan.tp, f"Use a tensor parallel degree of {admitted}.")


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


def _refuse_experts(workload: Workload, plan: Plan) -> Finding | None:
    experts = workload.model.experts
    if plan.ep == 1:
        return None
    if experts is None:
        return _unsupported("a model without experts", SPLIT_WORDS["ep"], "Use an ep of 1.")
    if experts.count % plan.ep:
        admitted = _largest(plan.ep, lambda ep: experts.count % ep == 0)
        change = f"Use an expert parallel degree of {admitted}."
        return _indivisible(f"{experts.count} experts", plan.ep, change)
    return _refuse_expert_ranks(workload, plan, experts.size)


def _refuse_expert_ranks(workload: Workload, plan: Plan, size: int) -> Finding | None:
    """Experts lie on ranks that exist: all of a serving engine's, a part of a training job's."""
    ranks, wanted = plan.tp * plan.dp * plan.cp, plan.ep * plan.etp
    if workload.serving and wanted != plan.tp * plan.dp:
        change = f"Use an expert parallel degree of {plan.tp * plan.dp // plan.etp}."
        return _indivisible(f"an engine of {plan.tp * plan.dp} ranks", wanted, change)
    if ranks % wanted:
        admitted = _largest(wanted, lambda ep: ranks % (ep * plan.etp) == 0)
        change = f"Use an expert parallel degree of {admitted}."
        return _indivisible(f"{ranks} ranks", wanted, change)
    quantity = _undivided_size(workload.weights_format, plan.etp, [(EXPERT_SIZE, size)])
    return _indivisible(quantity, plan.etp, "Use an etp of 1.") if quantity else None


# --- stages


def _refuse_stages(workload: Workload, plan: Plan) -> Finding | None:
    """Serving engines take uneven stages; training frameworks want equal ones."""
    layers, pp = workload.model.layers, plan.pp
    if pp == 1 or (layers >= pp and (workload.serving or layers % pp == 0)):
        return None
    stages = _largest(min(pp, layers + 1), lambda stages: layers % stages == 0)
    return _indivisible(f"{layers} layers", pp, f"Use {stages} pipeline stages.")


def _refuse_turns(workload: Workload, plan: Plan) -> Finding | None:
    """Interleaved stages: a training job with stages, the 1F1B schedule and whole turns."""
    job, layers = workload.training, workload.model.layers
    if plan.virtual == 1:
        return None
    if job is None or plan.pp == 1:
        return _unsupported("a plan without training stages", "interleaving", "Use a virtual of 1.")
    if job.schedule is not Schedule.ONE_F_ONE_B:
        who = f"the {job.schedule} schedule"
        return _unsupported(who, "interleaving", "Set schedule to 1f1b.")
    turns = plan.pp * plan.virtual
    if layers % turns:
        admitted = _largest(plan.virtual, lambda turn: layers % (plan.pp * turn) == 0)
        change = f"Use {admitted} virtual stages." if admitted > 1 else "Use a virtual of 1."
        return _indivisible(f"{layers} layers", turns, change)
    return None


def _refuse_rounds(workload: Workload, plan: Plan) -> Finding | None:
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
    change = f"Set global_batch to {wanted * ranks}."
    return _indivisible(f"a step of {rounds} micro-batches", pp, change)


# --- batch and sequence


def _refuse_batch(workload: Workload, plan: Plan) -> Finding | None:
    """Every rank must get the same number of micro-batches."""
    job = workload.training
    ranks = plan.dp * job.micro_batch if job else 1
    if job is None or job.global_batch is None or job.global_batch % ranks == 0:
        return None
    change = f"Set global_batch to {-(-job.global_batch // ranks) * ranks}."
    quantity = f"the global batch of {job.global_batch} sequences"
    return _indivisible(quantity, ranks, change)


def _refuse_sequence(workload: Workload, plan: Plan) -> Finding | None:
    """A causal sequence is cut into twice as many parts as ranks, so that all have equal work."""
    job = workload.training
    if job is None or not _parts(job, plan) or job.seq_len % _parts(job, plan) == 0:
        return None
    parts = _parts(job, plan)
    change = f"Set seq_len to {-(-job.seq_len // parts) * parts}."
    return _indivisible(f"a sequence of {job.seq_len} tokens", parts, change)


def _parts(job: TrainingJob, plan: Plan) -> int:
    """Equal parts into which a sequence must fall; 0 where it is not cut."""
    across = plan.tp if job.sequence_parallel else 1
    return 2 * plan.cp * across if plan.cp > 1 else 0


def _refuse_shards(workload: Workload, plan: Plan) -> Finding | None:
    """Copies of the parameters are whole."""
    ranks = plan.dp * plan.cp
    if ranks % plan.shard == 0:
        return None
    admitted = _largest(plan.shard, lambda shard: ranks % shard == 0)
    return _indivisible(f"{ranks} ranks", plan.shard, f"Use a shard group of {admitted}.")


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
