"""Ride-hailing: how do HPA and KEDA compare, side by side (docs/ride-hailing.md)?

Hypothesis. HPA and KEDA don't conflict while no Deployment has both. Matching gets a pod for each 100 waiting riders. On one
Deployment, the text says, the two HPAs fight.

Method. One namespace has the riders' API with a plain HPA on CPU, matching with a Prometheus trigger, and a Deployment with
two scalers. KEDA's webhook is asked for it in either order. A second trial has the API on a Prometheus trigger of 12
requests/s a pod, as the text does.

Asserted. Matching follows the formula at rest, with the plain HPA beside it. The two HPAs of one Deployment don't fight: both
report AmbiguousSelector and neither decides. KEDA refuses a second scaler that it sees. 50 quotes per second are for five
pods, ceil(50 / 12).

Refuted by another number at rest, or an HPA that decides.
"""

import copy
import itertools
import uuid

import allure
import pytest
from kubernetes import client

from lab import yamlfile
from lab.cluster import apply, keda
from lab.errors import LabFault
from lab.inputs.inputs import REPLAYED
from lab.measure.delivery import CONTRACT, DELIVERED, delivery, unaccounted
from lab.wait import until
from tests.experiments.sources import ANSWER_202, ORACLES
from tests.scenarios.ride_hailing.measure.fleet import ambiguous, at_rest, conditions, pod_minutes, replicas
from tests.scenarios.ride_hailing.measure.load import load
from tests.scenarios.ride_hailing.trials import EVENING, policy

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

STOPPED, PENDING = "Kubernetes: AmbiguousSelector", "text 4: ceil(500 / 100)"
HPAS = ("contested-cpu", "keda-hpa-contested-lag")
ADMISSION_S = 30  # for KEDA's webhook to have seen an object that was just applied: milliseconds, and a busy machine
OWNED = "the workload 'contested' of type 'apps/v1.Deployment' is already managed by the hpa 'contested-cpu'"


@pytest.fixture
def admitted(request):
    """A namespace of a cluster whose KEDA has its admission webhooks: its API client and its name."""
    if request.config.getoption("lab_from_records"):
        pytest.skip("asks a running KEDA")
    api = request.getfixturevalue("cluster").api()
    if not client.AdmissionregistrationV1Api(api).list_validating_webhook_configuration().items:
        pytest.skip("this runtime's KEDA has no admission webhooks")
    namespace = f"admission-{uuid.uuid4().hex[:8]}"
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    yield api, namespace
    client.CoreV1Api(api).delete_namespace(namespace)


def beside(*names):
    """The riders' evening with these manifests beside the group."""
    others = tuple(f"ridehailing/{name}" for name in names)
    return EVENING | {"profile": "trips-rides", "until": REPLAYED, "beside": others, "driver": "ridehailing/riders"}


@allure.story("Side by side")
def test_hpa_and_keda_live_side_by_side(trials, evidence):
    """Riders wait for quotes and drivers: three scalers in one namespace, and a Deployment with two of them."""
    record = trials.run(**beside("rider-api", "rider-api-on-cpu", "driver-matching", "contested"))
    matching = at_rest(record, "keda-hpa-driver-matching-scaler", "spike")
    evidence.report("matching under 500 riders", {"pending, mean": matching.total, "replicas": matching.replicas})
    evidence.report("pod-minutes (as seen)", {app: pod_minutes(record, app) for app in ("rider-api", "driver-matching")})
    unanswered = delivery(record).unknown_or_failed.named("requests without a certain answer", "requests")

    with evidence.of(record, delivery=None) as claim:
        claim(matching.replicas == 5, "500 waiting riders get five pods of matching", PENDING)
        claim.invariant(matching.off_formula == 0, "at rest every status of matching follows ceil(pending / 100)", ORACLES)
        most = replicas(record, "rider-api").most
        claim(most > 1, "the plain HPA of the riders' API works beside KEDA's", "text 4: Combining HPA and KEDA")
        claim(ambiguous(record, HPAS) == 2, "both HPAs of one Deployment report that they don't decide", STOPPED)
        claim(replicas(record, "contested").changes == 0, "two HPAs of one Deployment don't fight: they stop", STOPPED)
        claim.invariant(unanswered == 0, "an answer 202 means that the broker has the event", ANSWER_202)
        claim.invariant(unaccounted(record) == 0, DELIVERED, CONTRACT)
        claim(load(record).failures == 0, "every request succeeds, quotes too", "text 4: every request")
        for hpa, run in itertools.product(HPAS, record):
            for kind, status, reason, text in conditions(run, hpa):
                evidence.explain(f"{hpa}: {kind} {status}, {reason}: {text}")


@pytest.mark.extended
@allure.story("The riders' API on requests per second")
def test_rider_api_scales_on_requests(trials, evidence):
    """The same riders; both services scale on what they are asked, by Prometheus."""
    record = trials.run(**beside("rider-api", "rider-api-on-requests", "driver-matching"))
    api = at_rest(record, "keda-hpa-rider-api-scaler", "spike")
    figures = {"requests/s, mean": api.total, "replicas": api.replicas, "most": replicas(record, "rider-api").most}
    evidence.report("rider-api under 50 quotes/s", figures | {"pod-minutes": pod_minutes(record, "rider-api")})

    with evidence.of(record, delivery=None) as claim:
        claim(api.replicas == 5, "50 quotes per second get five pods", "text 4: request-driven; ceil(50 / 12)")
        source = "found in 2026-11-24-texts: 1 to 2 in 3 of 3 runs; the scale-down window keeps what a low rate gives up"
        claim(api.off_formula <= 2, "at rest every status is within two pods of ceil(requests per second / 12)", source)
        claim(replicas(record, "driver-matching").most == 5, "matching scales on its own queue beside it", PENDING)
        claim.invariant(unaccounted(record) == 0, DELIVERED, CONTRACT)
        claim(load(record).failures == 0, "every request succeeds, quotes too", "text 4: every request")


@allure.story("Side by side")
def test_keda_refuses_a_deployment_that_an_hpa_has(admitted):
    """HPA first: its ScaledObject is refused. ScaledObject first: the HPA is let in, and every later edit of it is refused."""
    api, namespace = admitted
    deployment, contested, scaled = yamlfile.documents(policy("contested"))
    deployment["spec"]["replicas"] = 0
    hpa = copy.deepcopy(contested)
    del hpa["metadata"]["annotations"]
    edited = copy.deepcopy(scaled)
    edited["spec"]["maxReplicaCount"] = 7

    def said(of=scaled):
        return keda.refusal(api, of, namespace)

    def edit():
        try:
            apply.objects(api, [edited], namespace)
        except LabFault as refused:
            return str(refused)
        return ""

    def taken():
        resource = apply.dynamic_client(api).resources.get(api_version=scaled["apiVersion"], kind=scaled["kind"])
        return bool(resource.get(name=scaled["metadata"]["name"], namespace=namespace).metadata.finalizers)

    apply.objects(api, [deployment, hpa], namespace)
    until(lambda: said() is not None, ADMISSION_S, "the refusal")
    assert said() == OWNED
    apply.objects(api, [contested], namespace)
    until(lambda: said() is None, ADMISSION_S, "the annotation that lets it through")

    apply.delete(api, [contested], namespace)
    apply.objects(api, [scaled], namespace)
    until(taken, ADMISSION_S, "KEDA's finalizer")
    apply.objects(api, [hpa], namespace)
    until(lambda: edit() != "", ADMISSION_S, "the refusal of an edit")
    assert OWNED in edit()
    allure.attach(edit(), "KEDA's refusal of the edit", allure.attachment_type.TEXT)

    for name in ("driver-matching-as-written", "fare-reconciliation-as-written"):
        assert said(yamlfile.read(policy(name))) is None  # what the text gets wrong is not KEDA's to see here
