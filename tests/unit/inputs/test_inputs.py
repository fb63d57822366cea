"""A trial's identity, the same from plain data and of the committed records, and what its pods are told."""

import dataclasses
import json
from functools import partial

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.inputs import lag_metric, objects, profile, scaledobject
from lab.inputs.events import Grow, Kill, Pause, Resume
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.model import keda
from lab.record import trial as record
from lab.record.store import find
from tests.unit.inputs.written import refused, trial

read = partial(trial, profile="step-10x", policy="lag")
bursty = partial(trial, profile="bursty")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"profile": "nope"}, "profile: 'nope' | one of acceptance, backlog, "),
        ({"policy": "nope"}, "policy: 'nope' | one of arrivals-170, backlog, bystanders, "),
        ({"until": "done"}, "trial: until: 'done' | drained or replayed"),
        ({"during": {"spike": Grow(12)}}, "trial: during.spike: Grow(partitions=12) | more than 24"),
        ({"during": {"repartition": Grow(48)}}, "during: 'repartition' | a phase of the profile: baseline, spike, drain"),
        ({"scale": "huge"}, "scale: 'huge' | one of quick, medium, standard, close, real"),
        ({"beside": ("lagscaler/none",)}, "manifest: 'lagscaler/none' | one of lagscaler/lag-scaler, "),
        ({"driver": "lagscaler/none"}, "manifest: 'lagscaler/none' | one of lagscaler/lag-scaler, "),
        ({"workload": Workload(auto_offset_reset="none")}, "workload: auto_offset_reset: 'none' |"),
        ({"workload": Workload(grace_s=0)}, "workload: grace_s: 0 |"),
        ({"workload": Workload(balancer="fair")}, "workload: balancer: 'fair' | one of "),
        ({"workload": Workload(process_ms="0")}, "workload: process_ms: '0' |"),
        ({"workload": Workload(concurrency=0)}, "workload: concurrency: 0 |"),
        ({"workload": Workload(dlq="maybe")}, "workload: dlq: 'maybe' | on or off"),
        ({"workload": Workload(poison="3")}, "workload: poison: '3' | PARTITION:OFFSET"),
        ({"workload": Workload(fail_rate=0.6, poison_rate=0.5)}, "poison_rate: 0.5 | at most 1 - fail_rate"),
        ({"workload": Workload(client="java"), "runtime": "existing"}, "trial: client: 'java' | python on an existing cluster"),
    ],
)
def test_bad_inputs_are_one_clear_line(changes, line):
    """Before anything starts."""
    assert line in refused(read, **changes)


def test_a_record_that_is_not_stored_names_those_that_are(tmp_path):
    """--from-records says what there is."""
    (tmp_path / "records" / "other").mkdir(parents=True)
    (tmp_path / "records" / "other" / "trial.json").write_text("{}")
    with pytest.raises(InputError, match="a stored trial; there are: other"):
        find(tmp_path, "mine")


def test_the_objects_of_a_trial():
    """The consumer starts at the policy's floor; an external trigger brings one replica of its scaler, in the namespace."""
    chosen = read()
    environment = chosen.environment("127.0.0.1:1", "run")
    assert profile.build(yaml.safe_load(environment["PROFILE_YAML"]), "test") == chosen.profile
    assert all(isinstance(value, str) for value in environment.values())
    _, exporter, consumer, scaled = made = objects.applied(chosen, environment)
    assert [item["kind"] for item in made] == ["ConfigMap", "Deployment", "Deployment", "ScaledObject"]
    assert consumer["spec"]["replicas"] == chosen.policy.min_replicas
    assert consumer["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > chosen.workload.drain_timeout
    *_, scaler, _ = objects.applied(read(policy="lasting-4500"), {})
    assert {one["metadata"]["name"] for one in (exporter, consumer, scaled, scaler)} == {
        "lag-exporter",
        "consumer",
        "lag-scaler",
    }
    assert (scaler["kind"], scaler["spec"]["replicas"], "namespace" in scaler["metadata"]) == ("Deployment", 1, False)


def test_the_control_starts_alike_and_never_joins():
    """A trial by decree applies no autoscaler but the bystanders: the consumer's twin without a group, none of it yet."""
    chosen = read(profile="saturate", policy="bystanders", workload=Workload(grace_s=45, cpu_request_m=60))
    made = objects.applied(chosen, chosen.environment("127.0.0.1:1", "run"))
    assert [item["metadata"]["name"] for item in made] == ["trial", "lag-exporter", "consumer", "bystander"]
    consumer, twin = (item["spec"]["template"]["spec"] for item in made[2:])
    assert (made[2]["spec"]["replicas"], made[3]["spec"]["replicas"]) == (6, 0)
    assert (chosen.profile.duration, read().profile.duration) == (5, 140)  # what a rebalance takes, no scale divides
    assert consumer["containers"][0]["command"] == twin["containers"][0]["command"]
    assert {"name": "JOIN", "value": "off"} in twin["containers"][0]["env"]
    assert {"name": "JOIN", "value": "off"} not in consumer["containers"][0]["env"]
    assert consumer["terminationGracePeriodSeconds"] == 45
    assert consumer["containers"][0]["resources"]["requests"]["cpu"] == "60m"


def test_retries_are_told_at_the_trials_scale():
    """Delays are settings of time and compressed like them; how often is not. The seed and the topic go with them."""
    failing = read(workload=Workload(fail_rate=0.01, retry_ms="1000,2000,4000"), seed=7)
    environment = failing.environment("127.0.0.1:1", "run")
    assert environment["RETRY_MS"] == "33.3333,66.6667,133.333"
    assert (environment["SEED"], environment["DLQ_TOPIC"], environment["FAIL_RATE"]) == ("7", "dead-letters-run", "0.01")
    assert failing.workload.dead_letters
    assert not Workload(fail_rate=0.01, dlq="off").dead_letters
    assert not Workload().dead_letters


NAMES = sorted(path.stem for path in paths.PROFILES.glob("*.yaml") if path.stem != "scales")
WORKLOADS = st.builds(
    Workload,
    process_ms=st.sampled_from(["6", "2-10", "5-15"]),
    concurrency=st.integers(1, 500),
    balancer=st.sampled_from(["cooperative-sticky", "range", "consumer"]),
    wake=st.sampled_from(["on", "off"]),
    grace_s=st.integers(1, 600),
    fail_rate=st.sampled_from([0.0, 0.01, 0.25]),
    poison=st.sampled_from(["", "3:1000"]),
    dlq=st.sampled_from(["on", "off"]),
)


POLICIES = ["lag", "lag-4500", "lasting-4500", "lasting-30s", "cpu", "controller-4500", "up-and-down", "bystanders"]


@given(
    name=st.sampled_from(NAMES),
    policy=st.sampled_from(POLICIES),
    workload=WORKLOADS,
    seed=st.integers(0, 2**63),
    size=st.sampled_from(["quick", "standard", "real"]),
    how=st.fixed_dictionaries(
        {},
        optional={
            "partitions": st.integers(1, 200),
            "until": st.sampled_from(["drained", "replayed"]),
            "repetition": st.integers(1, 9),
            "beside": st.sampled_from([(), ("lagscaler/lag-scaler",)]),
            "driver": st.sampled_from(["producer/job", "kafka/broker"]),
        },
    ),
)
def test_inputs_come_back_from_plain_data_with_their_id(name, policy, workload, seed, size, how):
    """As JSON too, in which a record keeps them."""
    chosen = trial(name, policy, workload, seed, size, **how)
    again = Inputs.from_dict(json.loads(json.dumps(chosen.to_dict())), "a record")
    assert again.id == chosen.id
    assert (again.workload, again.profile, again.scale) == (chosen.workload, chosen.profile, chosen.scale)
    assert again.policy.content == chosen.policy.content


def test_inputs_of_a_users_own_come_back_with_what_was_replaced():
    """Events too."""
    orders = paths.PROJECT / "docs" / "examples" / "orders.yaml"
    struck = read(scale="medium", profile="zero-loss", policy=orders, during={"sigkill": Kill()})
    grown = read(profile="repartition", during={"repartition": Grow(48)})
    paused = read(during={"spike": [Pause(), Resume(), Kill()]})
    for chosen in (struck, grown, paused):
        again = Inputs.from_dict(json.loads(json.dumps(chosen.to_dict())), "a record")
        assert (again.id, again.replaced, again.during) == (chosen.id, chosen.replaced, chosen.during)
        assert again.partitions_after == chosen.partitions_after
    assert struck.replaced


@pytest.mark.parametrize("how", [{"driver": "ridehailing/locust"}, {"beside": ("ridehailing/ingestion",)}])
def test_what_the_image_of_pods_lacks_is_not_for_kind(how):
    """Refused before anything starts, where pods would be restarted until a deadline; a process sees this machine's folders."""
    (field,) = how
    line = "none with programs of its own (elastic-lab/pythonpath) but on binary: the image of pods lacks them"
    assert refused(read, runtime="kind", **how).startswith(f"trial: {field}: 'ridehailing/")
    assert refused(read, runtime="kind", **how).endswith(line)
    assert read(**how).runtime == "binary"


def test_manifests_declare_what_else_is_recorded():
    """Of all that stand beside and of the driver, each once; a trial without them records what every trial does."""
    assert objects.metrics(read()) == ()
    chosen = read(scale="medium", beside=("ridehailing/ingestion", "ridehailing/driver-matching"), driver="ridehailing/locust")
    assert objects.metrics(chosen) == ("ingestion_events_total", "matching_pending_requests")


def test_what_decides_beside_is_compressed_like_the_trials_own():
    """A ScaledObject beside is checked and scaled; a Deployment stays as it is."""
    made = objects.applied(read(scale="medium", beside=("lagscaler/scaledobject", "kafka/lag-exporter")), {"TOPIC": "t"})
    (scaled,) = (item for item in made[:-1] if item["kind"] == "ScaledObject")
    assert scaled["spec"]["pollingInterval"] == 2
    assert scaled["spec"]["triggers"][0]["metadata"]["sustainSeconds"] == "8"
    (exporter, again) = (item for item in made if item["metadata"]["name"] == "lag-exporter")
    assert exporter == again


def test_an_hpa_on_lag_brings_what_serves_it():
    """A ScaledObject that scales nothing, its target without a pod, and the metric under the name that KEDA gives it."""
    chosen = read(policy="zero-4500-hpa")
    environment = chosen.environment("127.0.0.1:1", "run")
    target, scaled, own = objects.applied(chosen, environment)[-3:]
    assert (target["kind"], target["spec"]["replicas"], target["metadata"]["name"]) == ("Deployment", 0, "lag-metric")
    assert scaled["spec"]["scaleTargetRef"]["name"] == "lag-metric"
    assert scaled["metadata"]["annotations"] == {"autoscaling.keda.sh/paused-scale-out": "true"}
    assert scaled["spec"]["pollingInterval"] == 10
    made = keda.hpa(scaledobject.parse(scaled, "test"), environment)
    assert own["spec"]["metrics"][0]["external"]["metric"] == made["spec"]["metrics"][0]["external"]["metric"]
    assert (own["spec"]["minReplicas"], own["spec"]["scaleTargetRef"]["name"]) == (0, "consumer")
    assert lag_metric.concerns(f'scaleTarget="Deployment/trial/{target["metadata"]["name"]}"')
    assert lag_metric.concerns(f'HPA="trial/{made["metadata"]["name"]}"')
    own = f'metric="external metric {lag_metric.METRIC}({lag_metric.SELECTOR})" scaleTarget="Deployment/trial/consumer"'
    assert not lag_metric.concerns(own)


RECORDS = sorted((paths.PROJECT / "tests" / "records" / "judged" / "records").iterdir())
WRITTEN = {"profile_name", "policy_name", "profile", "policy", "workload", "seed", "scale", "runtime"}


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_committed_record_has_the_id_of_its_inputs(folder):
    """Else no session would find it."""
    kept = record.read(folder)
    assert kept.inputs.id == kept.id == folder.name


def test_what_is_at_its_default_is_not_hashed():
    """So a new input or setting changes no id; trial.json has all of them."""
    plain = bursty()
    assert plain.identity().keys() == WRITTEN
    assert plain.identity()["workload"] == {}
    assert "sync_s" not in plain.identity()["scale"]
    assert plain.to_dict()["workload"].keys() >= {"dlq", "topics", "store_slots", "membership", "start_s"}


@pytest.mark.parametrize(
    ("how", "name", "value"),
    [
        ({"seed": 2}, "seed", 2),
        ({"partitions": 48}, "partitions", 48),
        ({"workload": Workload(topics=2)}, "workload", {"topics": 2}),
        ({"until": "replayed"}, "until", "replayed"),
        ({"repetition": 2}, "repetition", 2),
        ({"during": {"burst": Kill()}}, "events", [{"phase": "burst", "event": "kill"}]),
        ({"during": {"burst": Grow(48)}}, "events", [{"phase": "burst", "event": "grow", "partitions": 48}]),
        ({"workload": Workload(start_s=6)}, "workload", {"start_s": 6.0}),  # a test writes 6, a record has 6.0
        ({"beside": ("lagscaler/lag-scaler",)}, "beside", ["lagscaler/lag-scaler"]),
        ({"driver": "kafka/broker"}, "driver", "kafka/broker"),
        ({"scale": "medium"}, "scale", {"name": "medium", "time": 15, "rate": 1.0}),
    ],
)
def test_what_differs_is_hashed(how, name, value):
    """By its name, and the id is another."""
    changed = bursty(**how)
    assert changed.identity()[name] == value
    assert changed.id != bursty().id
    assert Inputs.from_dict(json.loads(json.dumps(changed.to_dict())), "here").id == changed.id


def test_a_sync_period_of_ones_own_is_another_trial():
    """It is in the identity and comes back from it; kube-controller-manager's own period is in none."""
    usual = bursty()
    brisk = dataclasses.replace(usual, scale=dataclasses.replace(usual.scale, sync_s=5.0))
    assert usual.id != brisk.id
    assert [Inputs.from_dict(one.to_dict(), "here").scale.hpa_sync_s for one in (usual, brisk)] == [0.5, 5 / 30]


def test_long_names_are_cut_to_what_a_namespace_may_have():
    """trial-, the id and the number of the run are 63 characters at most."""
    named = dataclasses.replace(bursty(), profile_name="a" * 20, policy_name="b" * 40)
    assert len(f"trial-{named.id}-0000") == 63
