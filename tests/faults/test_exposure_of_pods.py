"""Who may act through what runs in a trial: its pods' listeners without its logins, its controller beyond its Role."""

from __future__ import annotations

import http.client
import socket
import uuid
from contextlib import suppress

import pytest
from kubernetes import client

from lab.cluster import apply
from lab.inputs import clients, inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.kafka import topics
from lab.trial import addresses
from lab.wait import until
from tests.faults.test_exposure import ANSWERS_S, SHUT, asks_for_certificate, listening

pytestmark = pytest.mark.services

FIGURES = "figures, which none reads that names another host; nothing is taken"
BEARER = "HTTP: 401 to one who does not show the trial's token"
TOKEN = "token: closes the connection of one that has none"
CONSUMER = {"consumer": {9090: FIGURES}}
LISTENERS = {  # by client of the consumers: what the pods of a trial listen on
    clients.PYTHON: {
        **CONSUMER,
        "producer": {9091: FIGURES},
        "ingestion": {8080: BEARER, 9090: FIGURES},
        "lag-exporter": {9308: FIGURES},
        "lag-scaler": {6000: SHUT, 9090: FIGURES},
        "store": {7092: TOKEN, 9090: FIGURES},
    },
    clients.FRANZ_GO: CONSUMER | {"controller": {9090: FIGURES}},
    clients.JAVA: CONSUMER,
}
POLICIES = {clients.PYTHON: "lasting-4500", clients.FRANZ_GO: "controller-4500", clients.JAVA: "lag-4500"}
STARTS_S = 60


def trial(name, cluster):
    """What a trial with consumers of client ``name`` applies, with a store and a service where it may; its topics' partitions.

    No program has a topic to report to.
    """
    beside = ["ridehailing/ingestion"] if name == clients.PYTHON else []
    work = Workload(client=name, store_slots=len(beside))
    chosen = inputs.read("step-10x", POLICIES[name], work, 1, scales.load("quick"), "binary", beside=beside)
    given = chosen.environment(cluster.pod_bootstrap, f"exposure-{name}") | {"REPORTS_TOPIC": ""}
    every = [*objects.applied(chosen, given), objects.producer(chosen)]
    return every, {f"events-exposure-{name}": chosen.partitions, given["RECEIPTS_TOPIC"]: 1}


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


@pytest.mark.parametrize("name", LISTENERS)
def test_a_trials_pods_work_for_no_one_without_its_logins(cluster, namespace, name):
    """The table above is all that they listen on; any process of this machine may reach it."""
    cluster.provide(Workload(client=name))
    api, wanted, (every, made) = cluster.api(), LISTENERS[name], trial(name, cluster)
    topics.create(cluster.bootstrap, made, cluster.kafka_settings)
    logins = addresses.login_objects(cluster.kafka_settings, cluster.pod_bootstrap) + addresses.own_logins(every)
    identities = ("ServiceAccount", "Secret", "Role", "RoleBinding")
    chosen = [one for one in every if one["metadata"]["name"] in ("trial", *wanted) or one["kind"] in identities]
    apply.objects(api, [*logins, *chosen], namespace)
    places, found = {}, set()

    def running():
        for pod in client.CoreV1Api(api).list_namespaced_pod(namespace).items:
            if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ()):
                places[pod.status.pod_ip] = pod.metadata.labels["app"]
        every_socket = {(str(host), port) for all_of in listening(cluster).values() for host, port in all_of}
        found.update(one for one in every_socket if one[0] in places)
        return {places[host] for host, _ in found} == wanted.keys()

    until(running, STARTS_S, "the pods ready, and listening", cluster.check)
    shown = {app: {} for app in wanted}
    for host, port in sorted(found):
        shown[places[host]][port] = behaviour(host, port)
    assert shown == wanted


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
        [one for one in trial(clients.FRANZ_GO, cluster)[0] if one["kind"] in ("ServiceAccount", "Role", "RoleBinding")],
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
