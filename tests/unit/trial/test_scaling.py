"""When a change of a group's pods is over: a decreed step by what its live pods hold, a restart by its new pods."""

from functools import partial
from types import SimpleNamespace

import pytest

from lab.inputs.events import Restart
from lab.inputs.own_consumer import BLACK_BOX, RECEIPTS
from lab.inputs.workload import DEPLOYMENT, STATEFUL_SET, Workload
from lab.trial import scaling
from lab.trial.events import perform

THROUGH = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}


def stage(status, leaving=0, pods=2):
    """A group that asks for 2 pods, with this status; so many of its ``pods`` are told to go."""
    listed = [{"metadata": {"name": str(n)} | ({"deletionTimestamp": "x"} if n < leaving else {})} for n in range(pods)]
    fields = {("status",): status, ("spec", "replicas"): 2}
    return SimpleNamespace(field=lambda name, *path: fields[path], transitions=SimpleNamespace(pods=lambda app: listed))


@pytest.mark.parametrize(
    ("status", "more", "through"),
    [
        (THROUGH, {}, True),
        (THROUGH | {"observedGeneration": 1}, {}, False),  # the status of before the restart
        (THROUGH | {"updatedReplicas": 1}, {}, False),
        (THROUGH | {"readyReplicas": 1}, {}, False),
        (THROUGH | {"replicas": 3}, {}, False),  # a Deployment has one pod more for a while
        (THROUGH, {"leaving": 1}, False),
        (THROUGH, {"pods": 3, "leaving": 1}, False),  # a Deployment's status does not count pods that are told to go
        (None, {}, False),
    ],
)
def test_a_restart_is_through_when_all_pods_are_new_and_ready(status, more, through):
    """By the status of a Deployment or a StatefulSet, and by the pods themselves."""
    assert scaling.is_through(stage(status, **more), 2) is through


@pytest.mark.parametrize("owner", [DEPLOYMENT, STATEFUL_SET])
def test_a_restart_changes_the_template_of_what_makes_the_pods(monkeypatch, owner):
    """As kubectl does, by the annotation, and it waits for the generation that this made."""
    sent, running, waited = {}, stage(THROUGH), []

    def patch(kind, body, **where):
        sent[kind] = where["name"], where["namespace"], list(body["spec"]["template"]["metadata"]["annotations"])
        return SimpleNamespace(metadata=SimpleNamespace(generation=2))

    resources = SimpleNamespace(get=lambda api_version, kind: SimpleNamespace(patch=partial(patch, kind)))
    monkeypatch.setattr("lab.cluster.apply.dynamic_client", lambda _: SimpleNamespace(resources=resources))
    running.api, running.namespace, running.check, running.owner = None, "trial-x", None, lambda name: owner
    running.transitions.wait = lambda condition, *rest: waited.append(condition())
    assert perform(Restart(), running) == {"pods": 2}
    assert sent == {owner: ("consumer", "trial-x", ["kubectl.kubernetes.io/restartedAt"])}
    assert waited == [True]


def decreed(alive, owned, ready, rung):
    """A group of 6 partitions with these live pods; ``owned`` is what each pod said last that it holds."""
    return SimpleNamespace(
        transitions=SimpleNamespace(pods=lambda app: [{"metadata": {"name": name}} for name in alive]),
        ready=lambda name, count: ready == count,
        reports=SimpleNamespace(owned=lambda: owned),
        inputs=SimpleNamespace(partitions=6, partitions_after=0, workload=Workload(rung=rung)),
    )


@pytest.mark.parametrize(
    ("alive", "owned", "ready", "rung", "settled"),
    [
        ("ab", {"a": 3, "b": 3}, 2, RECEIPTS, True),
        ("ab", {"a": 3, "b": 3, "c": 2}, 2, RECEIPTS, True),  # c was killed, and never said that it gave up its partitions
        ("ab", {"a": 2, "b": 2, "c": 2}, 2, RECEIPTS, False),  # c's are nobody's yet
        ("ab", {"a": 6, "b": 0}, 2, RECEIPTS, False),
        ("abc", {"a": 3, "b": 3}, 3, RECEIPTS, False),
        ("ab", {"a": 3, "b": 3}, 1, RECEIPTS, False),
        ("ab", {"consumer-1-x": 3, "consumer-1-y": 3}, 2, BLACK_BOX, True),  # its members go by other names
    ],
)
def test_a_group_has_settled_when_its_live_pods_hold_everything(alive, owned, ready, rung, settled):
    """Each of them some, all of them together each partition, and all Ready."""
    assert scaling._settled(decreed(alive, owned, ready, rung), len(alive)) is settled
