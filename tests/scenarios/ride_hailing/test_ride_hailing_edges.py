"""Ride-hailing: what do its scalers do at edges that its evening does not reach (docs/ride-hailing.md)?

Hypothesis. On 16 partitions 20 consumers waste 4 pods. activationThreshold 10 starts nothing for a trivial number of requests,
and 500 of them are for five pods. Two HPAs of one Deployment fight where their bounds don't overlap: the HPA keeps its bounds
before it looks at a metric.

Method. The evening on 16 partitions, with a lagThreshold that asks for 20 pods. Beside it KEDA and the HPA alone, on
Deployments whose pods are never scheduled; a stand-in of Prometheus answers the text's trigger.

Asserted. Four pods own and process nothing. The Deployment is asked to have the replicas that the text says. The two HPAs undo
each other's every decision, and stop where their bounds overlap.

Refuted by another number of pods, or a fight within common bounds.
"""

import allure
import pytest

from lab import yamlfile
from lab.cluster import apply
from lab.inputs import variant
from lab.measure.cost import surplus_replicas
from tests.scenarios.ride_hailing.trials import EVENING, policy

pytestmark = [pytest.mark.scenario, pytest.mark.extended, allure.epic("Real systems"), allure.feature("Ride-hailing")]

PARTITIONS = 16
FOR_TWENTY = 15  # lagThreshold: what is in flight at the peak asks for all 20 pods at each sync
POLLS_S = 5  # of 1 s each
FIGHTS = 10  # changes of the replicas by two HPAs


@pytest.fixture
def live(request):
    """Gives a fixture that needs a cluster; there is none where records are judged, and these tests leave no record."""
    if request.config.getoption("lab_from_records"):
        pytest.skip("asks a running KEDA")
    return request.getfixturevalue


@allure.story("More pods than partitions")
def test_twenty_pods_on_sixteen_partitions(trials, evidence):
    """Four pods have no partition: the group has paid for them, and works no faster."""
    twenty = variant.policy(policy("trip-analytics"), lag_threshold=FOR_TWENTY, allow_idle_consumers=True)
    record = trials.run(**EVENING | {"policy": twenty, "partitions": PARTITIONS})
    found = surplus_replicas(record)
    with evidence.of(record) as claim:
        claim.control(found.replicas == 20, "all 20 replicas are there", "text 4: scaling to 20 consumers")
        claim(found.idle_pods == 4, "16 partitions leave four of 20 pods without one", "text 4: wastes 4 pods")
        claim.invariant(found.messages_by_surplus == 0, "a pod without a partition does nothing", "text 4")


@allure.story("More pods than partitions")
def test_keda_asks_for_sixteen_pods_of_sixteen_partitions(live):
    """With a lag for 100 pods, and 20 allowed: 16, and 20 where idle consumers are allowed."""
    target, group = live("target"), live("topic")(PARTITIONS)
    group.produce(1_000)
    capped = target(group.trigger(allowIdleConsumers="false"), maxReplicaCount=20)
    idle = target(group.trigger(allowIdleConsumers="true"), maxReplicaCount=20)
    assert (capped.steady(), idle.steady()) == (16, 20)


@allure.story("Activation")
def test_ten_pending_requests_start_nothing_and_eleven_do(live):
    """From zero, with the text's trigger: 9 and 10 start no pod, 11 do. 500 are for five pods, 5,000 for the most."""
    target, sources = live("target"), live("sources")
    matching = yamlfile.documents(policy("driver-matching"))[1]["spec"]
    (trigger,) = matching["triggers"]
    here = {"serverAddress": sources.triggers()["prometheus"]["metadata"]["serverAddress"]}
    trigger = trigger | {"metadata": trigger["metadata"] | here}
    sources.value = 9
    scaled = target(trigger, replicas=0, minReplicaCount=0, maxReplicaCount=matching["maxReplicaCount"])
    scaled.wait(lambda: scaled.condition("Active")[0] == "False", "KEDA's first poll")
    assert scaled.rest(POLLS_S) == 0
    sources.value = 10
    assert scaled.rest(POLLS_S) == 0
    for pending, pods in ((11, 1), (500, 5), (5_000, 30), (0, 0)):
        sources.value = pending
        scaled.reach(pods)


@allure.story("Side by side")
def test_two_hpas_whose_bounds_do_not_overlap_fight(live):
    """KEDA's from 5 up, a plain one up to 3: each sync of one undoes the other's. From 2 to 6 both, they stop."""
    target, group, cluster = live("target"), live("topic")(), live("cluster")

    def contested(least, most, plain_least, plain_most):
        one = target(group.trigger(), replicas=least, minReplicaCount=least, maxReplicaCount=most)
        one.ready()
        _, plain, _ = yamlfile.documents(policy("contested"))
        plain["spec"] |= {"minReplicas": plain_least, "maxReplicas": plain_most, "scaleTargetRef": one.reference()}
        apply.objects(cluster.api(), [plain], one.namespace)
        return one

    apart, overlapping = contested(5, 8, 1, 3), contested(2, 6, 2, 6)
    begun, sizes = apart.generation(), set()

    def fought():
        sizes.add(apart.replicas())
        return apart.generation() >= begun + FIGHTS and len(sizes) > 1

    apart.wait(fought, f"{FIGHTS} changes of the replicas")
    assert sizes == {3, 5}
    overlapping.wait(lambda: overlapping.hpa_condition("ScalingActive")[1] == "AmbiguousSelector", "the HPA to stop")
    assert overlapping.rest(POLLS_S) == 2
