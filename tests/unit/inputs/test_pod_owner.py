"""The consumer's pods come from a Deployment, or from a StatefulSet, whose pods keep their names."""

import pytest

from lab.errors import InputError
from lab.inputs import inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import STATEFUL_SET, Workload
from tests.unit.inputs.written import refused

STATIC = Workload(membership="static", pod_owner=STATEFUL_SET)


def read(policy, workload):
    """The inputs of steady traffic with this policy and workload."""
    return inputs.read("restart", policy, workload, 1, scales.load("quick"), "binary", until="replayed")


def applied(workload):
    """What the trial applies, by kind and name."""
    chosen = read("three-pods", workload)
    found = objects.applied(chosen, chosen.environment("127.0.0.1:9092", "x"))
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def test_a_static_member_is_a_pod_of_a_stateful_set():
    """The template and the replicas are the Deployment's; what stands beside the group stays a Deployment."""
    usual, found = applied(Workload()), applied(STATIC)
    assert usual.keys() ^ found.keys() == {("Deployment", "consumer"), ("StatefulSet", "consumer")}
    consumer, before = found["StatefulSet", "consumer"], usual["Deployment", "consumer"]
    assert consumer["spec"]["template"] == before["spec"]["template"]
    assert consumer["spec"]["replicas"] == 3
    assert consumer["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert "strategy" not in consumer["spec"]  # the API server would refuse it
    assert found["ConfigMap", "trial"]["data"]["MEMBERSHIP"] == "static"


def test_a_static_member_of_a_deployment_is_refused():
    """The next pod has another name: the group would wait for a member that never comes back."""
    assert "my.yaml: membership: 'static' | dynamic, unless pod_owner is" in refused(
        Workload.of, {"membership": "static"}, "my.yaml"
    )


@pytest.mark.parametrize("policy", ["lag-4500", "cpu"])
def test_a_policy_that_scales_a_deployment_has_one(policy):
    """Its scaleTargetRef names a Deployment, which would not be there."""
    with pytest.raises(InputError, match="trial: pod_owner: 'StatefulSet' is not allowed; allowed: Deployment, which is what"):
        read(policy, Workload(pod_owner=STATEFUL_SET))
