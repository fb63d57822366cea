"""A rolling restart is through when every pod is of the new template and Ready, and none of the old is left."""

from functools import partial
from types import SimpleNamespace

import pytest

from lab.inputs.events import Restart
from lab.inputs.workload import DEPLOYMENT, STATEFUL_SET
from lab.trial import rollout
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
    assert rollout.through(stage(status, **more), 2) is through


@pytest.mark.parametrize("owner", [DEPLOYMENT, STATEFUL_SET])
def test_a_restart_changes_the_template_of_what_makes_the_pods(monkeypatch, owner):
    """As kubectl does, by the annotation, and it waits for the generation that this made."""
    sent = {}

    def patch(kind, body, name, namespace, content_type):
        sent[kind] = name, namespace, list(body["spec"]["template"]["metadata"]["annotations"])
        return SimpleNamespace(metadata=SimpleNamespace(generation=2))

    resources = SimpleNamespace(get=lambda api_version, kind: SimpleNamespace(patch=partial(patch, kind)))
    monkeypatch.setattr(rollout, "DynamicClient", lambda api: SimpleNamespace(resources=resources))
    running, waited = stage(THROUGH), []
    running.api, running.namespace, running.check = None, "trial-x", None
    running.owner = lambda name: owner
    running.transitions.wait = lambda condition, *rest: waited.append(condition())
    assert perform(Restart(), running) == {"pods": 2}
    assert sent == {owner: ("consumer", "trial-x", ["kubectl.kubernetes.io/restartedAt"])}
    assert waited == [True]
