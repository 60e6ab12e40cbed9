"""The host checklist: each item passes, fails or is unknown. Unknown never fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from evaluator.facts import Grade
from evaluator.findings import Code, Finding, finding
from evaluator.jobs import Workload
from evaluator.machine import Availability, Machine
from evaluator.plans import Plan
from evaluator.prices import Basis, Quote
from evaluator.states import host_bytes
from evaluator.units import gb


class HostWord(StrEnum):
    PASS = "pass"  # noqa: S105  # the word of a checklist, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HostItem:
    """One line of the checklist. `name` is what is asked, `reason` one sentence."""

    name: str
    word: HostWord
    reason: str


@dataclass(frozen=True, slots=True)
class HostCounts:
    """How many items passed, failed, are unknown. Never a percentage."""

    passed: int
    failed: int
    unknown: int


def count(items: Iterable[HostItem]) -> HostCounts:
    words = [item.word for item in items]
    return HostCounts(*(words.count(word) for word in HostWord))


def failures(items: Iterable[HostItem]) -> list[HostItem]:
    return [item for item in items if item.word is HostWord.FAIL]


def host_items(
    workload: Workload,
    plan: Plan,
    machine: Machine,
    weights_bytes: int | None,
) -> tuple[HostItem, ...]:
    """What the machine itself must bring for a plan. `weights_bytes` are the whole model's."""
    items = [
        _counted(machine),
        _peers(machine, plan),
        _cores(machine, plan),
        _ram(machine, weights_bytes, host_bytes(workload, plan)),
        _pcie(machine),
        _local_storage(workload, machine, weights_bytes),
        _persistent_storage(workload, machine),
        _software(machine),
    ]
    return (*items, _network(machine, plan)) if plan.joins_machines else tuple(items)


def offer_items(
    quote: Quote | None, availability: Availability, quantity: int | None, rentals: int
) -> tuple[HostItem, ...]:
    """What the offer must say: what the rate covers, and that all of it can be had at once."""
    return (_basis(quote), _available(availability, quantity, rentals))


def host_findings(items: Iterable[HostItem]) -> tuple[Finding, ...]:
    """One finding that names everything the listing does not state."""
    unknown = [item.name for item in items if item.word is HostWord.UNKNOWN]
    return (finding(Code.HOST_UNKNOWN, items=", ".join(unknown)),) if unknown else ()


def ram_finding(machine: Machine, weights_bytes: int | None) -> tuple[Finding, ...]:
    """RAM below the weights is slow to load, not impossible: engines map the files."""
    ram = machine.ram_bytes.value
    if ram is None or weights_bytes is None or ram >= weights_bytes:
        return ()
    reason = "the weights are then streamed from disk while loading"
    needed = f"{gb(weights_bytes):.0f} GB of weights"
    return (finding(Code.HOST_RAM_SMALL, ram=f"{gb(ram):.0f} GB", needed=needed, reason=reason),)


def _pass(name: str, reason: str) -> HostItem:
    return HostItem(name, HostWord.PASS, reason)


def _fail(name: str, reason: str) -> HostItem:
    return HostItem(name, HostWord.FAIL, reason)


def _unknown(name: str, reason: str) -> HostItem:
    return HostItem(name, HostWord.UNKNOWN, reason)


def _counted(machine: Machine) -> HostItem:
    name = "GPU count and memory"
    count, size = machine.gpu_count.value, machine.usable_bytes_per_gpu.value
    if count is None or size is None:
        missing = "the number of GPUs" if count is None else "the memory of each GPU"
        return _unknown(name, f"The listing does not settle {missing}.")
    return _pass(name, f"{count} × {machine.gpu_model.value or 'GPU'}, memory of each known.")


def _peers(machine: Machine, plan: Plan) -> HostItem:
    name = "peer connectivity"
    if plan.gpus == 1 or machine.gpu_count.value == 1:
        return _pass(name, "One GPU has no peers.")
    if not plan.exchanges:
        return _pass(name, "Replicas exchange nothing.")
    if machine.link.at_least(Grade.MEASURED):
        return _pass(name, f"The links between the GPUs are {machine.link.grade.word}.")
    return _unknown(name, f"The links between the GPUs are {machine.link.grade.word}.")


def _cores(machine: Machine, plan: Plan) -> HostItem:
    """Below one core per working GPU its process cannot be scheduled beside the others."""
    name, cores = "vCPUs per GPU", machine.vcpus.value
    working = max(1, plan.gpus // plan.nodes)
    if cores is None:
        return _unknown(name, "The number of vCPUs is not stated.")
    words = f"{cores} vCPUs for {working} working GPU{'s' if working > 1 else ''}."
    return _pass(name, words) if cores >= working else _fail(name, words)


def _ram(machine: Machine, weights_bytes: int | None, offloaded: int | None) -> HostItem:
    """Offloaded states must be in RAM at once; weights can be streamed while they load."""
    name, ram = "host RAM", machine.ram_bytes.value
    asked = f" The job keeps {gb(offloaded):.0f} GB in it." if offloaded else ""
    if ram is None:
        return _unknown(name, f"The size of the RAM is not stated.{asked}")
    have = f"{gb(ram):.0f} GB of RAM"
    if offloaded and ram < offloaded:
        return _fail(name, f"{have}.{asked}")
    if weights_bytes is not None and ram < weights_bytes:
        return _unknown(name, f"{have} for {gb(weights_bytes):.0f} GB of weights: slow to load.")
    return _pass(name, f"{have}.{asked}")


def _pcie(machine: Machine) -> HostItem:
    name, generation = "PCIe", machine.pcie_generation.value
    if generation is None:
        return _unknown(name, "Generation and width of the slots are not stated.")
    return _pass(name, f"PCIe {generation}, {machine.pcie_generation.grade.word}.")


def _local_storage(workload: Workload, machine: Machine, weights_bytes: int | None) -> HostItem:
    name, have = "local storage", machine.local_storage_bytes.value
    job = workload.training
    stated = (job.dataset_bytes or 0) + (job.checkpoint_bytes or 0) if job else 0
    if have is None or weights_bytes is None:
        return _unknown(name, "The size of the local disk or of the weights is not known.")
    needed = weights_bytes + stated
    words = f"{gb(have):.0f} GB of local disk for {gb(needed):.0f} GB."
    if have >= needed:
        return _pass(name, words)
    remote = machine.persistent_storage.value is not False
    return _unknown(name, words) if remote else _fail(name, words)


def _persistent_storage(workload: Workload, machine: Machine) -> HostItem:
    name, present = "persistent storage", machine.persistent_storage.value
    if present is None:
        return _unknown(name, "Nothing says what outlives the rental.")
    if present:
        return _pass(name, "Storage outlives the rental.")
    if workload.training and workload.training.checkpoint_bytes:
        return _fail(name, "Nothing outlives the rental, and the job writes checkpoints.")
    return _pass(name, "Nothing outlives the rental; nothing has to.")


def _software(machine: Machine) -> HostItem:
    name = "driver, CUDA, NCCL"
    facts = (machine.driver_version, machine.cuda_version, machine.nccl_version)
    stated = [fact.value for fact in facts if fact.value]
    if len(stated) < len(facts):
        return _unknown(name, "Not all three versions are stated.")
    return _pass(name, f"Versions {', '.join(stated)} are stated.")


def _network(machine: Machine, plan: Plan) -> HostItem:
    name, fabric = "network between machines", machine.inter_node
    if fabric.at_least(Grade.BENCHMARKED):
        return _pass(name, f"{fabric.value} is benchmarked.")
    known = f"{fabric.value} is {fabric.grade.word}" if fabric.known else "Nothing is known"
    return _unknown(name, f"{known}; the plan spans {plan.nodes} machines.")


def _basis(quote: Quote | None) -> HostItem:
    name = "rate basis"
    if quote is None:
        return _unknown(name, "No price is published.")
    if quote.basis is Basis.UNKNOWN:
        return _unknown(name, "The rate may be per machine or per GPU.")
    return _pass(name, f"The rate is per {quote.basis}.")


AVAILABILITY = "availability of the whole"


def _available(availability: Availability, quantity: int | None, rentals: int) -> HostItem:
    """Available is not reserved: a pass says only that the catalog offered enough of it."""
    name = AVAILABILITY
    if availability is Availability.SOLD_OUT:
        return _fail(name, "The catalog says it is sold out.")
    if quantity is not None and quantity < rentals:
        return _fail(name, f"{rentals} are needed at once, {quantity} are offered.")
    if availability is Availability.AVAILABLE and (quantity is not None or rentals == 1):
        return _pass(name, "The catalog says available, which is not reserved.")
    words = f"The catalog says {availability.replace('_', ' ')}"
    return _unknown(name, f"{words}; {rentals} needed at once.")
