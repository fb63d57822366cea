"""Whole inputs and a whole trial.json of made-up trials, of which a test says only what it is about."""

from dataclasses import asdict, replace

from lab.host.machine import Machine
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.model.baseline import FLOOR, Baseline
from lab.record.trial import Offsets, Trial

MACHINE = Machine("AMD EPYC", 2, 23.5, "6.1", (0.4, 0.5, 0.6))
NAMES = {"bootstrapServersFromEnv": "BOOTSTRAP_SERVERS", "consumerGroupFromEnv": "GROUP", "topicFromEnv": "TOPIC"}


def scaled(threshold=100, **spec):
    """A ScaledObject on lag, of that lagThreshold."""
    trigger = {"type": "kafka", "metadata": {**NAMES, "lagThreshold": str(threshold)}}
    content = {"scaleTargetRef": {"name": "consumer"}, **spec, "triggers": [trigger]}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "consumer"}, "spec": content}


def hpa(least, most):
    """An HPA on CPU between these bounds."""
    target = {"type": "Utilization", "averageUtilization": 70}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "consumer"}, "spec": spec}


def decreed(*replicas):
    """Steps by decree: the first number to begin with."""
    steps = [{"replicas": count} for count in replicas[1:]]
    spec = {"replicas": replicas[0], "holdSeconds": 1, "steps": steps}
    return {"kind": "ReplicaSteps", "metadata": {"name": "decreed"}, "spec": spec}


def inputs(**given):
    """Inputs of which only what is ``given`` matters; of workload and scale single settings, of a profile its steps."""
    work = asdict(Workload()) | given.pop("workload", {})
    scale = {"name": "made up", "time": 1, "rate": 1} | given.pop("scale", {})
    steps = [{"at": 0, "rate": 1, "phase": "baseline"}]
    profile = {"kind": "steps", "duration": 100, "steps": steps} | given.pop("profile", {})
    names = {"profile_name": "made-up", "policy_name": "made-up", "runtime": "binary", "seed": 1, "partitions": 4}
    content = {**names, "policy": scaled(), "profile": profile, "workload": work, "scale": scale, **given}
    return Inputs.from_dict(content, "a test")


def reconciliation(**given):
    """The content of reconciliation.json: counts of 0 and no ranges but those ``given``, which may lack their ends."""
    counts = ("produced", "processed", "receipts", "holes", "resent", "lost_messages", "unseen_messages", "doubled_messages")
    counts += ("phantom_messages", "mismatched_receipts")
    lists = ("lost", "unseen", "doubled", "phantom", "mismatched")
    content = dict.fromkeys(counts, 0) | dict.fromkeys(lists, ()) | given
    ends = {"first": 0, "last": 0, "pods": []}
    return {name: [ends | one for one in value] if name in lists else value for name, value in content.items()}


def trial(chosen, **more):
    """A trial that went to its end with the inputs ``chosen``, and ``more`` of what its trial.json says."""
    ended = Trial(
        id="built",
        inputs=chosen,
        baseline=Baseline(chosen.policy.start, FLOOR),
        scale=str(chosen.scale),
        versions={},
        machine=MACHINE,
        begun=0.0,
        ended="complete",
        times={"settling": 0, "driving": 0, "ended": 100},
        offsets={0: Offsets(0, 0)},
        finished=110.0,
        clock_moved_s=0.0,
    )
    return replace(ended, **more)
