"""Who may act through what runs in a trial: its pods' listeners without its logins, its controller beyond its Role."""

from __future__ import annotations

import http.client
import socket
import uuid
from contextlib import suppress

import pytest
from kubernetes import client

from lab.cluster import apply
from lab.inputs import inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.trial import addresses
from lab.wait import until
from tests.faults.test_exposure import ANSWERS_S, SHUT, asks_for_certificate, listening

pytestmark = pytest.mark.services

FIGURES = "figures, which none reads that names another host; nothing is taken"
BEARER = "HTTP: 401 to one who does not show the trial's token"
TOKEN = "token: closes the connection of one that has none"
LISTENERS = {
    "ingestion": {8080: BEARER, 9090: FIGURES},
    "lag-exporter": {9308: FIGURES},
    "lag-scaler": {6000: SHUT, 9090: FIGURES},
    "store": {7092: TOKEN, 9090: FIGURES},
}
STARTS_S = 60


def applied(policy, cluster):
    """The objects of a trial under ``policy`` with a shared store and a service, none of which has topics to report to."""
    more = {"beside": ["ridehailing/ingestion"]}
    chosen = inputs.read("step-10x", policy, Workload(store_slots=1), 1, scales.load("quick"), "binary", **more)
    return objects.applied(chosen, chosen.environment(cluster.pod_bootstrap, "exposure") | {"REPORTS_TOPIC": ""})


@pytest.fixture
def namespace(cluster):
    """A namespace, all of which is gone at the end."""
    name, api = f"exposure-{uuid.uuid4().hex[:8]}", cluster.api()
    core = client.CoreV1Api(api)
    apply.create_namespace(api, name)
    yield name
    core.delete_namespace(name)
    until(lambda: not core.list_namespaced_pod(name).items, STARTS_S, "pods gone")


def status(host, port, method, named):
    """What an HTTP server answers a request for /metrics that names the host ``named``."""
    connection = http.client.HTTPConnection(host, port, timeout=ANSWERS_S)
    connection.request(method, "/metrics", headers={"Host": named})
    return connection.getresponse().status


def behaviour(host, port):
    """What the listener does for one who has no login of the trial's."""
    if asks_for_certificate(port, host, ["h2"]):
        return SHUT
    with suppress(http.client.HTTPException, ConnectionError):
        asked = [status(host, port, *one) for one in (("GET", host), ("GET", "rebound.example"), ("POST", host))]
        return {(403, 501): FIGURES, (403, 401): BEARER}.get(tuple(asked[1:]), f"HTTP that answers {asked}")
    with socket.create_connection((host, port), timeout=ANSWERS_S) as stranger, suppress(ConnectionError):
        stranger.sendall(b"0.001\n")
        if stranger.recv(1):
            return "open"
    return TOKEN


def test_a_trials_pods_work_for_no_one_without_its_logins(cluster, namespace):
    """The table above is all that they listen on; any process of this machine may reach it."""
    api, every = cluster.api(), applied("lasting-4500", cluster)
    logins = addresses.login_objects(cluster.kafka_settings, cluster.pod_bootstrap) + addresses.own_logins(every)
    beside = [item for item in every if item["metadata"]["name"] in ("trial", *LISTENERS)]
    apply.objects(api, [*logins, *beside], namespace)
    places = {}

    def running():
        for pod in client.CoreV1Api(api).list_namespaced_pod(namespace).items:
            if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ()):
                places[pod.status.pod_ip] = pod.metadata.labels["app"]
        return set(places.values()) == LISTENERS.keys()

    until(running, STARTS_S, "the pods ready", cluster.check)
    found = sorted(
        {(str(host), port) for all_of in listening(cluster).values() for host, port in all_of if str(host) in places}
    )
    shown = {name: {} for name in LISTENERS}
    for host, port in found:
        shown[places[host]][port] = behaviour(host, port)
    assert shown == LISTENERS


# One act that is the controller's, and what is nobody's: (verb, API group, resource, subresource, name).
SCALE = ("patch", "apps", "deployments", "scale", "consumer")
DENIED = [
    ("patch", "apps", "deployments", "scale", "another"),
    ("patch", "apps", "deployments", "", "consumer"),
    ("delete", "apps", "deployments", "", "consumer"),
    ("get", "", "secrets", "", "kafka-login"),
    ("create", "", "pods", "", ""),
]


def test_the_hand_rolled_controller_may_scale_one_deployment_and_do_nothing_else(cluster, namespace):
    """Its Role as a trial applies it, asked of the API server's own authorizer; in another namespace it may do nothing."""
    api = cluster.api()
    apply.objects(
        api,
        [one for one in applied("controller-4500", cluster) if one["kind"] in ("ServiceAccount", "Role", "RoleBinding")],
        namespace,
    )

    def may(act, where=namespace):
        verb, group, resource, part, name = act
        asked = client.V1ResourceAttributes(
            verb=verb, group=group, resource=resource, subresource=part, name=name, namespace=where
        )
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        who = f"system:serviceaccount:{namespace}:controller"
        spec = client.V1SubjectAccessReviewSpec(user=who, groups=groups, resource_attributes=asked)
        return (
            client.AuthorizationV1Api(api).create_subject_access_review(client.V1SubjectAccessReview(spec=spec)).status.allowed
        )

    until(lambda: may(SCALE), STARTS_S, "the Role known")
    assert [act for act in DENIED if may(act)] == []
    assert not may(SCALE, "default")
