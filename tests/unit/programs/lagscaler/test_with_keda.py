"""KEDA's real operator as the client: lag that lasts scales a Deployment; what is refused or gone is held, and seen."""

import contextlib
import json
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lab.cluster.certs import Authority
from lab.inputs import hpa_spec
from lab.kafka import topics
from tests.defects.target import Target
from tests.unit.programs.lagscaler.fakes import Client, named
from tests.unit.programs.lagscaler.test_on_kafka import RULE, Topic
from tests.unit.programs.lagscaler.test_program import running

pytestmark = pytest.mark.services
POLLS_S = 8  # several pollingIntervals of 1 s and HPA syncs of 0.5 s: long enough for what must not happen to happen
FAILED = "False", "ScaledObjectCheckFailed"


@pytest.fixture(autouse=True)
def login(cluster, monkeypatch):
    """The scaler's login to Kafka, as a pod is told it."""
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps(dict(cluster.kafka_settings)))
    monkeypatch.setenv("CLUSTERS", cluster.pod_bootstrap)


def authentication(name, values):
    """A Secret, and the TriggerAuthentication that makes a parameter of each of its keys."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}
    targets = [{"parameter": key, "name": name, "key": key} for key in values]
    shown = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": name}}
    return [secret, shown | {"spec": {"secretTargetRef": targets}}]


class Scaled(Target):
    """A Deployment that the scaler at ``address`` scales on a topic of its own.

    ``changes`` are the trigger's metadata, ``spec`` fields of the ScaledObject's. ``secrets`` are TriggerAuthentications by
    name, of a value for each parameter; the first is the trigger's.
    """

    def __init__(self, cluster, address, changes=None, kind="external", secrets=None, **spec):
        self.topic = Topic(cluster.bootstrap, cluster.kafka_settings)
        names = {"BOOTSTRAP_SERVERS": cluster.pod_bootstrap, "GROUP": self.topic.name, "TOPIC": self.topic.name}
        metadata = {
            "scalerAddress": address,
            "bootstrapServersFromEnv": "BOOTSTRAP_SERVERS",
            "consumerGroupFromEnv": "GROUP",
            "topicFromEnv": "TOPIC",
            **RULE,
            **(changes or {}),
        }
        trigger = {"type": kind, "metadata": metadata}
        if secrets:
            trigger["authenticationRef"] = {"name": next(iter(secrets))}
        objects = [item for name, values in (secrets or {}).items() for item in authentication(name, values)]
        super().__init__(cluster, trigger, env=names, objects=objects, **{"maxReplicaCount": 6, **spec})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def wait(self, condition, what, deadline_s=180):
        """As a Target does; some seconds on a quiet machine."""
        super().wait(condition, what, deadline_s)

    def authenticate(self, name, **spec):
        """Have the trigger use the TriggerAuthentication of that name."""
        self.spec["triggers"][0]["authenticationRef"] = {"name": name}
        self.apply(**spec)

    def metrics(self):
        """The metrics' names of the HPA KEDA made; none while there is no HPA."""
        hpa = self.hpa()
        return [metric.external.metric.name for metric in hpa.spec.metrics] if hpa else []

    def average(self):
        """The metric per replica in the HPA's status; None while it has none."""
        hpa = self.hpa()
        current = [metric.external for metric in (hpa and hpa.status.current_metrics) or () if metric.external]
        return float(hpa_spec.parse_quantity(current[0].current.average_value)) if current else None

    def lags(self, replicas=3):
        """Wait for what 25 messages ask for, and until KEDA has noted its activity: without it no cooldownPeriod is kept."""
        self.topic.produce(25)
        self.reach(replicas)
        self.wait(lambda: "lastActiveTime" in self.scaled_object()["status"], "lastActiveTime")


def test_lag_that_lasts_scales_and_what_does_not_does_not(cluster):
    """25 messages at 10 a pod: three pods when they have lasted, one when they are committed; names are from variables."""
    with running() as (address, _), Scaled(cluster, address) as scaled:
        scaled.wait(lambda: scaled.metrics() == [f"s0-persistent-lag-{scaled.topic.name}"], "the HPA")
        scaled.wait(lambda: scaled.condition("Ready")[0] == "True", "Ready")
        scaled.topic.produce(25)
        scaled.wait(lambda: scaled.condition("Active")[0] == "True", "Active")
        scaled.reach(3)
        scaled.topic.commit(25)
        scaled.reach(1)


def test_bad_metadata_is_on_the_scaledobjects_condition(cluster):
    """Not Ready, and no HPA; that no metric is named is all KEDA says there: the field is named in its log and ours."""
    with running() as (address, _), Scaled(cluster, address, {"lagThreshold": "many"}) as scaled:
        scaled.wait(lambda: scaled.condition("Ready") == FAILED, "the condition")
        assert "no metric specs returned from scalers" in str(scaled.scaled_object()["status"]["conditions"])
        assert (scaled.metrics(), scaled.replicas()) == ([], 1)


def test_from_zero_and_back_and_never_to_zero_on_an_error(cluster):
    """Lag wakes the group, and when all is committed it goes to sleep again. With Kafka's topic gone the replicas stay.

    The scaler has errors for an answer then, never that the group is inactive. They stay within cooldownPeriod: after it KEDA
    may go to zero on errors by itself (docs/upstream/keda-zero-on-error).
    """
    with running() as (address, _), Client(address) as one, Scaled(cluster, address, minReplicaCount=0) as scaled:
        scaled.reach(0)
        scaled.lags()
        scaled.topic.commit(25)
        scaled.reach(0)
        scaled.apply(cooldownPeriod=600)
        scaled.lags()
        scaled.wait(lambda: scaled.topic.active(one), "the first reading of this test's own trigger")
        said = {True}
        topics.delete(scaled.topic.bootstrap, [scaled.topic.name], scaled.topic.login)
        failed = "False", "TriggerError"
        scaled.wait(lambda: said.add(scaled.topic.active(one)) or scaled.condition("Ready") == failed, "the error")
        assert scaled.rest(POLLS_S) == 3
        assert said | {scaled.topic.active(one)} == {True, None}


@pytest.mark.parametrize(("kind", "threshold", "after"), [("external", 3, 3), ("external-push", 3, 3), ("external-push", 0, 5)])
def test_a_scaler_that_cant_be_reached(cluster, kind, threshold, after):
    """The replicas stay, and no fallback fires, as KEDA has lost the metric's name (keda #8056), unless it was streamed.

    With external-push KEDA keeps the name until the first error that is not yet a fallback: failureThreshold 0 falls back.
    """
    fallback = {"failureThreshold": threshold, "replicas": 5}
    with running() as (address, _):
        scaled = Scaled(cluster, address, kind=kind, fallback=fallback)
        scaled.lags()
    with scaled:
        scaled.reach(after)
        assert scaled.rest(POLLS_S) == after


def test_the_age_of_the_oldest_uncommitted_record_scales(cluster):
    """Three records at 6 s a pod, in messages never a second pod: the HPA has P x age in seconds, P x lagSeconds at most."""
    changes = {"lagThreshold": "", "lagSeconds": "6", "allowIdleConsumers": "false"}
    with running() as (address, _), Scaled(cluster, address, changes) as scaled:
        scaled.wait(lambda: scaled.average() == 0, "a metric")
        begun, shown = time.monotonic(), []
        scaled.topic.produce(3)
        # The HPA has no value where KEDA was not answered in time.
        scaled.wait(lambda: shown.append(scaled.average() or 0) or shown[-1] > 4, "two partitions' 2 s")
        assert shown[-1] <= 2 * (time.monotonic() - begun + 1)  # to an interval the age is known
        scaled.reach(2)
        scaled.wait(lambda: scaled.average() == 6, "lagSeconds a replica")
        scaled.topic.commit(3)
        scaled.reach(1)


def test_a_stream_wakes_a_group_that_is_not_polled(cluster):
    """From 0 by external-push: KEDA's next own question would be ten minutes later."""
    spec = {"minReplicaCount": 0, "pollingInterval": 600, "replicas": 0}
    with running() as (address, _), Scaled(cluster, address, kind="external-push", **spec) as scaled:
        scaled.wait(lambda: scaled.condition("Ready")[0] == "True", "Ready")
        assert scaled.rest(POLLS_S) == 0
        scaled.topic.produce(25)
        scaled.reach(3)


@pytest.fixture
def tls(authority, tmp_path):
    """The flags of a scaler that asks for KEDA's certificate, and what a trigger may hold: ours, and another authority's."""
    made, pair = authority
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", f"--tls-client-ca={made.cert}"]
    own = {"tlsClientCert": pair.cert.read_text(), "tlsClientKey": pair.key.read_text()}
    return flags, own, {"caCert": made.cert.read_text()}, {"caCert": Authority(tmp_path / "other").cert.read_text()}


def test_tls_with_the_authoritys_certificate_alone(cluster, tls):
    """caCert makes KEDA speak TLS, without enableTLS."""
    flags, _, ours, _ = tls
    with running(*flags[:2]) as (address, _), Scaled(cluster, address, secrets={"scaler": ours}) as scaled:
        scaled.topic.produce(25)
        scaled.reach(3)


def test_tls_both_ways_and_never_to_zero_for_a_wrong_authority(cluster, tls):
    """With another authority KEDA refuses the scaler: what it held is held, though all is committed. With the right one: 0.

    Held within cooldownPeriod, as for any error.
    """
    flags, own, ours, other = tls
    secrets = {"right": own | ours, "wrong": own | other}
    spec = {"minReplicaCount": 0, "cooldownPeriod": 600}
    with running(*flags) as (address, _), Scaled(cluster, address, {"enableTLS": "true"}, secrets=secrets, **spec) as scaled:
        scaled.lags()
        scaled.authenticate("wrong")
        scaled.wait(lambda: scaled.condition("Ready")[0] == "False", "the refusal")
        scaled.topic.commit(25)
        assert scaled.rest(POLLS_S) == 3
        scaled.authenticate("right", cooldownPeriod=2)
        scaled.reach(0)


def test_tls_that_lacks_something_is_not_ready_and_scales_nothing(cluster, tls):
    """A wrong authority; enableTLS with one that the operator does not know; no certificate of KEDA's own; plaintext."""
    flags, own, ours, other = tls
    enabled = {"enableTLS": "true"}
    lacking = [({}, {"scaler": own | other}), (enabled, {"scaler": own}), ({}, {"scaler": ours}), ({}, None)]
    with running(*flags) as (address, _), contextlib.ExitStack() as stack:
        every = [
            stack.enter_context(Scaled(cluster, address, changes, secrets=secrets, minReplicaCount=0))
            for changes, secrets in lacking
        ]
        for scaled in every:
            scaled.wait(lambda one=scaled: one.condition("Ready") == FAILED, "the condition")
        assert every[-1].rest(POLLS_S) == 1
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
        with Scaled(cluster, target, {"sustainSeconds": "6"}, minReplicaCount=0) as scaled:
            with running(*flags) as (_, second):
                scaled.topic.produce(25)
                scaled.reach(3)
                scaled.wait(lambda: all(_answers(each)[0].get("OK", 0) > 0 for each in (first, second)), "both are asked")
            before = _answers(first)[0]["OK"]
            with running(*flags) as (_, second):

                def served():
                    answered, metrics = _answers(second)
                    seen.update(metrics)
                    assert scaled.replicas() == 3
                    return answered.get("OK", 0) > 0 and answered.get("UNAVAILABLE", 0) > 0

                scaled.wait(served, "the new one's errors, then its answers")
                assert _answers(first)[0]["OK"] > before
                assert seen == {25}
                scaled.topic.commit(25)
                scaled.reach(0)
