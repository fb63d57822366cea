"""The two sides of a duet as inputs, and the rate at which a machine carries both. Pure.

The sides get the same events at the same moment, so all that drives them is one: profile, seed, partitions, scale, runtime.
Policy, workload and what follows from them may differ, or nothing at all: that is an A/A duet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from lab.errors import InputError
from lab.inputs import anchor, manifests
from lab.inputs.clients import DEMANDS, PYTHON
from lab.inputs.hpa_spec import parse_quantity
from lab.inputs.inputs import PRODUCER, Inputs, Side
from lab.inputs.scale import Scale
from lab.inputs.steps import ReplicaSteps

log = logging.getLogger("lab.inputs")

ONE = ("profile_name", "profile", "seed", "partitions", "scale", "runtime", "until", "during", "repetition", "driver", "beside")
ONE_OF_WORKLOAD = ("entities", "topics")
RATES = (1.0, 0.5, 0.25, 0.125)  # of the traffic and of each pod

# What two sides cost, in cores: CPU by process in duets at quick scale on two cores of an AMD EPYC (docs/decisions/23). Starts
# of pods are left out: they pass, and A/A duets show them. Other scales were not measured; there Kubernetes syncs less often.
BASE = 0.35  # Kubernetes, KEDA, Prometheus, recorder and both exporters; a trial by itself has 0.2
PRODUCING, PRODUCED = 0.1, 5.4e-6  # a producer at work at least; s of CPU for a message (docs/options.md)
APPENDED, APPENDS = 2.4e-4, 0.4  # s for a message that the broker takes in a batch of its own; fuller batches cost no more
POD = 0.012  # of a consumer at work, and of the broker for it: polls, heartbeats, probes, scrapes
BATCHED, BATCHES = 9e-5, 0.033  # s for a message in small batches and fetches, broker and receipts with it; at most, for a pod
CONSUMED = 3.2e-6  # s for a message in a full batch (docs/options.md)
BESIDE = 0.25  # cores that producer and exporters request
USED = 0.8  # of a machine's cores: beyond it what is measured is the queue for them


def sides(a: Inputs, b: Inputs, rate: float = 1.0) -> tuple[Inputs, Inputs]:
    """The two sides of a duet of ``a`` and ``b``, which are each a trial's inputs, at ``rate``. Raises :class:`InputError` for
    the first thing that the sides of one topic can't have apart, or that a duet can't have."""
    for name in ONE + ONE_OF_WORKLOAD:
        mine, theirs = (getattr(one.workload if name in ONE_OF_WORKLOAD else one, name) for one in (a, b))
        if mine != theirs:
            raise InputError("duet", name, theirs, f"{mine}, as the other side has: both get the same events")
    for what, name in [("beside", name) for name in a.beside] + [("driver", a.driver)] * (a.driver != PRODUCER):
        if not all(one.duet for one in manifests.declarations(a.library.manifest(name))):
            allowed = f"a manifest with the annotation {manifests.DUET}, by which it serves two sides"
            raise InputError("duet", what, name, allowed)
    if a.windows and b.windows:
        apart = (a.windows[0].start_s - b.windows[0].start_s) / anchor.MINUTE_S
        if abs(apart - round(apart)) > 1e-6:
            allowed = f"a start whole minutes at scale {a.scale.name} from the other side's: both begin at the same moment"
            raise InputError("duet", "cron start", f"{apart * anchor.MINUTE_S:g} s apart", allowed)
    if brokers := a.brokers or b.brokers:
        raise InputError("duet", "brokers", brokers, "none: each side would kill a broker of the other's")
    if faults := a.faults or b.faults:
        raise InputError("duet", "faults", faults, "none: each side would strike the components of the other")
    steps = [len(one.policy.decrees) if isinstance(one.policy, ReplicaSteps) else 0 for one in (a, b)]
    if steps[0] != steps[1]:
        raise InputError("duet", "policy", b.policy_name, f"one of {steps[0]} steps, as the other side has: they step together")
    slow = slowed(a, rate), slowed(b, rate)
    names = zip(slow, "ab", reversed(slow), strict=True)
    one, two = (replace(own, side=Side(name, other.id, rate)) for own, name, other in names)
    return one, two


def slowed(inputs: Inputs, rate: float) -> Inputs:
    """``inputs`` with traffic, pods and thresholds of lag at ``rate`` of theirs: the trial keeps its shape."""
    if rate == 1:
        return inputs
    work, scale = inputs.workload, Scale(inputs.scale.name, 1, rate)
    low, high = (f"{bound / rate:g}" for bound in (work.cost.low, work.cost.high))
    slow = replace(work, process_ms=low if low == high else f"{low}-{high}", burn=round(work.burn * rate))
    slow.check()
    profile, policy = inputs.profile.compressed(1, rate), inputs.policy.compressed(scale)
    return replace(inputs, profile=profile, policy=policy, workload=slow)


def cores(a: Inputs, b: Inputs) -> float:
    """How many cores two sides keep busy at most: all their pods at work, at the highest rate of the traffic."""
    peak, groups, more = max(step.rate for step in a.profile.steps), [], 0.0
    for one in (a, b):
        working = min(one.policy.max_replicas, one.partitions_after or one.partitions)
        groups.append((one.policy.max_replicas, working, one.pod_rate))
        burnt = min(1.0, one.workload.concurrency * one.scale.rate * one.workload.burn / 100)
        beyond = DEMANDS[one.workload.client].at_work - DEMANDS[PYTHON].at_work  # which is in POD and BATCHED
        more += working * (burnt + beyond) + requested_beside(one)
    return busy(peak, groups) + more


def requested_beside(inputs: Inputs) -> float:
    """The cores that the pods of ``beside`` request: what their author expects them to use, as nothing else is known."""
    found = 0.0
    for name in inputs.beside:
        for item in manifests.beside(inputs.library.manifest(name), inputs.scale):
            pod = item.get("spec", {}).get("template", {}).get("spec", {})
            for container in pod.get("containers", ()):
                cpu = container.get("resources", {}).get("requests", {}).get("cpu", 0)
                found += float(parse_quantity(cpu)) * item["spec"].get("replicas", 1)
    return found


def busy(traffic: float, groups: Iterable[tuple[int, int, float]]) -> float:
    """How many cores a duet keeps busy at ``traffic`` messages/s. ``groups`` has (pods, those of them that have partitions, the
    messages/s that each of these takes) for each side."""
    produced = max(PRODUCING, traffic * PRODUCED) + min(traffic * APPENDED, APPENDS)
    pods = sum(there * POD + working * (min(rate * BATCHED, BATCHES) + rate * CONSUMED) for there, working, rate in groups)
    return BASE + produced + pods


def _schedulable(a: Inputs, b: Inputs, there: float) -> None:
    """Raise :class:`InputError` where the pods of both sides request more than ``there`` cores: some would never start."""
    pods = a.policy.max_replicas + b.policy.max_replicas
    requested = sum(one.policy.max_replicas * one.workload.cpu_request_m for one in (a, b)) / 1000
    others = BESIDE + requested_beside(a) + requested_beside(b)
    if requested + others > there:
        allowed = f"at most {int((there - others) * 1000 / pods)}, so that {pods} pods are scheduled on {there:g} cores"
        raise InputError("duet", "cpu_request_m", (a.workload.cpu_request_m, b.workload.cpu_request_m), allowed)


def carried(a: Inputs, b: Inputs, there: float) -> tuple[Inputs, Inputs]:
    """The sides of a duet at the highest of RATES that ``there`` cores carry; a lower one than 1 is told in one line. Raises
    :class:`InputError` like :func:`sides`, and where the cores carry the two sides at none."""
    sides(a, b)  # what can't be a duet is said before what it costs
    _schedulable(a, b, there)
    limit, needed = USED * there, cores(a, b)
    for rate in RATES:
        pair = sides(a, b, rate)
        if cores(*pair) <= limit:
            if rate < 1:
                need = f"both sides need {needed:.1f} cores and {limit:.1f} of {there:g} are to be used"
                log.warning("duet of %s and %s: %s: traffic and pods run at %g of their rate", a.id, b.id, need, rate)
            return pair
    still = f"at {RATES[-1]:g} of the rate they need {cores(*pair):.1f} cores still, and {limit:.1f} of {there:g} are used"
    field = f"maxReplicaCount of {a.policy_name} and {b.policy_name}"
    raise InputError("duet", field, (a.policy.max_replicas, b.policy.max_replicas), f"fewer pods: {still}")
