"""KEDA's real operator as the client: lag that lasts scales a Deployment; what is refused or gone is held, and seen."""

import contextlib
import json
import time
import urllib.request
import uuid

import pytest
from kubernetes import client
from prometheus_client.parser import text_string_to_metric_families

from lab.cluster import apply, keda
from lab.cluster.certs import Authority
from lab.errors import LabFault
from lab.inputs import hpa_spec
from lab.kafka import topics
from lab.wait import until
from tests.unit.programs.lagscaler.client import Client
from tests.unit.programs.lagscaler.names import named
from tests.unit.programs.lagscaler.test_on_kafka import SUSTAIN_S, Topic
from tests.unit.programs.lagscaler.test_program import running

pytestmark = pytest.mark.services
DEADLINE_S = 180  # some seconds on a quiet machine
POLLS_S = 8  # several pollingIntervals of 1 s and HPA syncs of 0.5 s: long enough for what must not happen to happen


@pytest.fixture(autouse=True)
def login(cluster, monkeypatch):
    """The scaler's login to Kafka, as a pod is told it."""
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps(dict(cluster.kafka_settings)))
    monkeypatch.setenv("CLUSTERS", cluster.pod_bootstrap)


class Scaled:
    """A Deployment with a ScaledObject whose trigger is the scaler at ``address``, in a namespace of its own.

    ``changes`` are the trigger's metadata. ``secrets`` are TriggerAuthentications by name, of a value for each parameter; the
    first is the trigger's. ``replicas`` is what the Deployment begins with.
    """

    def __init__(
        self,
        cluster,
        address,
        kind="external",
        fallback=None,
        least=1,
        polling=1,
        cooldown=2,
        replicas=1,
        secrets=None,
        **changes,
    ):
        self.api, self.namespace = cluster.api(), f"lagscaler-{uuid.uuid4().hex[:8]}"
        self.objects = keda.scaled_objects(self.api)
        self.topic = Topic(cluster.bootstrap, cluster.kafka_settings)
        names = {"BOOTSTRAP_SERVERS": cluster.pod_bootstrap, "GROUP": self.topic.name, "TOPIC": self.topic.name}
        metadata = {
            "scalerAddress": address,
            "bootstrapServersFromEnv": "BOOTSTRAP_SERVERS",
            "consumerGroupFromEnv": "GROUP",
            "topicFromEnv": "TOPIC",
            "lagThreshold": "10",
            "sustainSeconds": str(SUSTAIN_S),
            "samplingInterval": "1",
            "allowIdleConsumers": "true",
        } | changes
        spec = {
            "scaleTargetRef": {"name": "consumer"},
            "pollingInterval": polling,
            "cooldownPeriod": cooldown,
            "minReplicaCount": least,
            "maxReplicaCount": 6,
            "triggers": [{"type": kind, "metadata": metadata}],
        }
        if fallback:
            spec["fallback"] = fallback
        container = {
            "name": "consumer",
            "image": "elastic-lab/programs/consumer",
            "command": ["python", "-c", "import signal; signal.pause()"],
            "env": [{"name": name, "value": value} for name, value in names.items()],
        }
        template = {"metadata": {"labels": {"app": "consumer"}}, "spec": {"containers": [container]}}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "consumer"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "consumer"}}, "template": template},
        }
        apply.objects(self.api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        apply.objects(self.api, [cluster.fit(deployment)], self.namespace)
        self.scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "consumer"}, "spec": spec}
        for name, values in (secrets or {}).items():
            self._secret(name, values)
        if secrets:
            self.authenticate(next(iter(secrets)))
        else:
            apply.objects(self.api, [self.scaled], self.namespace)

    def _secret(self, name, values):
        """A Secret, and the TriggerAuthentication that makes a parameter of each of its keys."""
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}
        targets = [{"parameter": key, "name": name, "key": key} for key in values]
        shown = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": name}}
        apply.objects(self.api, [secret, shown | {"spec": {"secretTargetRef": targets}}], self.namespace)

    def authenticate(self, name):
        """Have the trigger use the TriggerAuthentication of that name."""
        self.scaled["spec"]["triggers"][0]["authenticationRef"] = {"name": name}
        apply.objects(self.api, [self.scaled], self.namespace)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        client.CoreV1Api(self.api).delete_namespace(self.namespace)

    def replicas(self):
        """What the Deployment is told; the API leaves a 0 out of a scale."""
        return client.AppsV1Api(self.api).read_namespaced_deployment_scale("consumer", self.namespace).spec.replicas or 0

    def metrics(self):
        """The metrics' names of the HPA KEDA made; none while there is no HPA."""
        listed = client.AutoscalingV2Api(self.api).list_namespaced_horizontal_pod_autoscaler(self.namespace)
        return [metric.external.metric.name for item in listed.items for metric in item.spec.metrics]

    def average(self):
        """The metric per replica in the HPA's status; None while it has none."""
        listed = client.AutoscalingV2Api(self.api).list_namespaced_horizontal_pod_autoscaler(self.namespace)
        current = [metric.external for item in listed.items for metric in item.status.current_metrics or () if metric.external]
        return float(hpa_spec.parse_quantity(current[0].current.average_value)) if current else None

    def status(self):
        """The status of the ScaledObject."""
        return self.objects.get(name="consumer", namespace=self.namespace).to_dict().get("status") or {}

    def conditions(self):
        """The conditions of the ScaledObject, by type."""
        return {item["type"]: item for item in self.status().get("conditions", [])}

    def scaled_while_active(self, replicas):
        """Wait for that number, and until KEDA has noted when its trigger was active: without it no cooldownPeriod is kept."""
        self.scaled_to(replicas)
        until(lambda: "lastActiveTime" in self.status(), DEADLINE_S, "lastActiveTime")

    def condition(self, kind):
        """Status and reason of a condition of the ScaledObject."""
        found = self.conditions().get(kind, {})
        return found.get("status"), found.get("reason")

    def scaled_to(self, replicas):
        """Wait until the Deployment is told that number."""
        until(lambda: self.replicas() == replicas, DEADLINE_S, f"{replicas} replicas")

    def stays_at(self, replicas):
        """For some polls of KEDA's and syncs of the HPA's."""
        try:
            until(lambda: self.replicas() != replicas, POLLS_S, "a change")
        except LabFault:
            return
        raise AssertionError(f"{self.replicas()} replicas, where {replicas} were to stay")


def test_lag_that_lasts_scales_and_what_does_not_does_not(cluster):
    """25 messages at 10 a pod: three pods when they have lasted, one when they are committed; names are from variables."""
    with running() as (address, _), Scaled(cluster, address) as scaled:
        until(lambda: scaled.metrics() == [f"s0-persistent-lag-{scaled.topic.name}"], DEADLINE_S, "the HPA")
        until(lambda: scaled.condition("Ready")[0] == "True", DEADLINE_S, "Ready")
        scaled.topic.produce(25)
        until(lambda: scaled.condition("Active")[0] == "True", DEADLINE_S, "Active")
        scaled.scaled_to(3)
        scaled.topic.commit(25)
        scaled.scaled_to(1)


def test_bad_metadata_is_on_the_scaledobjects_condition(cluster):
    """Not Ready, and no HPA; that no metric is named is all KEDA says there: the field is named in its log and ours."""
    with running() as (address, _), Scaled(cluster, address, lagThreshold="many") as scaled:
        until(lambda: scaled.condition("Ready") == ("False", "ScaledObjectCheckFailed"), DEADLINE_S, "the condition")
        assert "no metric specs returned from scalers" in scaled.conditions()["Ready"]["message"]
        assert scaled.metrics() == []
        assert scaled.replicas() == 1


def test_from_zero_and_back(cluster):
    """Lag wakes the group; when all is committed it goes to sleep again."""
    with running() as (address, _), Scaled(cluster, address, least=0) as scaled:
        scaled.scaled_to(0)
        scaled.topic.produce(25)
        scaled.scaled_to(3)
        scaled.topic.commit(25)
        scaled.scaled_to(0)


def test_never_to_zero_on_an_error(cluster):
    """With Kafka's topic gone the scaler has errors for an answer, never that the group is inactive, and the replicas stay.

    Within cooldownPeriod: after it KEDA may go to zero on errors by itself (docs/upstream/keda-zero-on-error).
    """
    with running() as (address, _), Client(address) as one, Scaled(cluster, address, least=0, cooldown=600) as scaled:
        scaled.topic.produce(25)
        scaled.scaled_while_active(3)
        until(lambda: scaled.topic.active(one), DEADLINE_S, "the first reading of this test's own trigger")
        said = {True}
        topics.delete(scaled.topic.bootstrap, [scaled.topic.name], scaled.topic.login)
        until(
            lambda: said.add(scaled.topic.active(one)) or scaled.condition("Ready") == ("False", "TriggerError"),
            DEADLINE_S,
            "the error",
        )
        scaled.stays_at(3)
        assert said | {scaled.topic.active(one)} == {True, None}


@pytest.mark.parametrize(("kind", "threshold", "after"), [("external", 3, 3), ("external-push", 3, 3), ("external-push", 0, 5)])
def test_a_scaler_that_cant_be_reached(cluster, kind, threshold, after):
    """The replicas stay, and no fallback fires, as KEDA has lost the metric's name (keda #8056), unless it was streamed.

    With external-push KEDA keeps the name until the first error that is not yet a fallback: failureThreshold 0 falls back.
    """
    fallback = {"failureThreshold": threshold, "replicas": 5}
    with running() as (address, _):
        scaled = Scaled(cluster, address, kind, fallback)
        scaled.topic.produce(25)
        scaled.scaled_to(3)
    with scaled:
        if after != 3:
            scaled.scaled_to(after)
        scaled.stays_at(after)


def test_the_age_of_the_oldest_uncommitted_record_scales(cluster):
    """Three records at 6 s a pod, in messages never a second pod: the HPA has P x age in seconds, P x lagSeconds at most."""
    changes = {"lagThreshold": "", "lagSeconds": "6", "allowIdleConsumers": "false"}
    with running() as (address, _), Scaled(cluster, address, **changes) as scaled:
        until(lambda: scaled.average() == 0, DEADLINE_S, "a metric")
        begun, shown = time.monotonic(), []
        scaled.topic.produce(3)
        # The HPA has no value where KEDA was not answered in time.
        until(lambda: shown.append(scaled.average() or 0) or shown[-1] > 4, DEADLINE_S, "two partitions' 2 s")
        assert shown[-1] <= 2 * (time.monotonic() - begun + 1)  # to an interval the age is known
        scaled.scaled_to(2)
        until(lambda: scaled.average() == 6, DEADLINE_S, "lagSeconds a replica")
        scaled.topic.commit(3)
        scaled.scaled_to(1)


def test_a_stream_wakes_a_group_that_is_not_polled(cluster):
    """From 0 by external-push: KEDA's next own question would be ten minutes later."""
    changes = {"kind": "external-push", "least": 0, "polling": 600, "replicas": 0}
    with running() as (address, _), Scaled(cluster, address, **changes) as scaled:
        until(lambda: scaled.condition("Ready")[0] == "True", DEADLINE_S, "Ready")
        scaled.stays_at(0)
        scaled.topic.produce(25)
        scaled.scaled_to(3)


@pytest.fixture
def other(tmp_path):
    """The certificate of an authority the scaler has nothing from."""
    return Authority(tmp_path / "other").cert.read_text()


def test_tls_with_the_authoritys_certificate_alone(cluster, authority):
    """caCert makes KEDA speak TLS, without enableTLS."""
    made, pair = authority
    secrets = {"scaler": {"caCert": made.cert.read_text()}}
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}"]
    with running(*flags) as (address, _), Scaled(cluster, address, secrets=secrets) as scaled:
        scaled.topic.produce(25)
        scaled.scaled_to(3)


def test_tls_both_ways_and_never_to_zero_for_a_wrong_authority(cluster, authority, other):
    """With another authority KEDA refuses the scaler: what it held is held, though all is committed. With the right one: 0.

    Held within cooldownPeriod, as for any error.
    """
    made, pair = authority
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", f"--tls-client-ca={made.cert}"]
    own = {"tlsClientCert": pair.cert.read_text(), "tlsClientKey": pair.key.read_text()}
    secrets = {"right": own | {"caCert": made.cert.read_text()}, "wrong": own | {"caCert": other}}
    with (
        running(*flags) as (address, _),
        Scaled(cluster, address, least=0, cooldown=600, secrets=secrets, enableTLS="true") as scaled,
    ):
        scaled.topic.produce(25)
        scaled.scaled_while_active(3)
        scaled.authenticate("wrong")
        until(lambda: scaled.condition("Ready")[0] == "False", DEADLINE_S, "the refusal")
        scaled.topic.commit(25)
        scaled.stays_at(3)
        scaled.scaled["spec"]["cooldownPeriod"] = 2
        scaled.authenticate("right")
        scaled.scaled_to(0)


def test_tls_that_lacks_something_is_not_ready_and_scales_nothing(cluster, authority, other):
    """A wrong authority; enableTLS with one that the operator does not know; no certificate of KEDA's own; plaintext."""
    made, pair = authority
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", f"--tls-client-ca={made.cert}"]
    own = {"tlsClientCert": pair.cert.read_text(), "tlsClientKey": pair.key.read_text()}
    lacking = [{"secrets": {"scaler": own | {"caCert": other}}}, {"secrets": {"scaler": own}, "enableTLS": "true"}]
    lacking += [{"secrets": {"scaler": {"caCert": made.cert.read_text()}}}, {}]
    with running(*flags) as (address, _), contextlib.ExitStack() as stack:
        every = [stack.enter_context(Scaled(cluster, address, least=0, **changes)) for changes in lacking]
        for scaled in every:
            until(
                lambda one=scaled: one.condition("Ready") == ("False", "ScaledObjectCheckFailed"), DEADLINE_S, "the condition"
            )
        every[-1].stays_at(1)
        assert [(scaled.replicas(), scaled.metrics()) for scaled in every] == [(1, [])] * len(every)


def _answers(url):
    """What a scaler counts of its answers to GetMetrics, by status, and the last metric it would give, if any."""
    text = urllib.request.urlopen(f"{url}/metrics", timeout=60).read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    counts = [one for one in samples if one.name == "lagscaler_request_seconds_count"]
    answered = {one.labels["code"]: one.value for one in counts if one.labels["method"] == "GetMetrics"}
    return answered, {one.value for one in samples if one.name == "lagscaler_metric"}


def test_of_two_replicas_one_that_has_just_started_is_passed_over(cluster):
    """Behind one name, as of a headless Service: the new one's answers are errors until they are the old one's, and never 0."""
    seen = set()
    with running() as (one, first), named("127.0.0.1", "127.0.0.2") as server:
        port = one.rpartition(":")[2]
        flags = ["--pod-ip=127.0.0.2", f"--grpc-port={port}"]
        target = f"dns://{server}/lag-scaler.lag-scaler.svc:{port}"
        with Scaled(cluster, target, least=0, sustainSeconds="6") as scaled:
            with running(*flags) as (_, second):
                scaled.topic.produce(25)
                scaled.scaled_to(3)
                until(lambda: all(_answers(each)[0].get("OK", 0) > 0 for each in (first, second)), DEADLINE_S, "both are asked")
            before = _answers(first)[0]["OK"]
            with running(*flags) as (_, second):

                def served():
                    answered, metrics = _answers(second)
                    seen.update(metrics)
                    assert scaled.replicas() == 3
                    return answered.get("OK", 0) > 0 and answered.get("UNAVAILABLE", 0) > 0

                until(served, DEADLINE_S, "the new one's errors, then its answers")
                assert _answers(first)[0]["OK"] > before
                assert seen == {25}
                scaled.topic.commit(25)
                scaled.scaled_to(0)
