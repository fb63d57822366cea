"""What a workload has a trial apply, as a shared store and pods that keep their names; and what a manifest declares."""

from __future__ import annotations

import pytest

from lab import paths
from lab.__main__ import main
from lab.foresee.estimate import estimate
from lab.inputs import manifests, objects
from lab.inputs.workload import STATEFUL_SET, Workload
from lab.trial.addresses import asks_store, located
from lab.trial.deadlines import deadlines
from tests.unit.inputs.written import refused, trial

STATIC = Workload(membership="static", pod_owner=STATEFUL_SET)
ORDERS = paths.PROJECT / "docs" / "examples" / "orders.yaml"


def applied(workload, policy="lag-4500"):
    """What the trial applies."""
    chosen = trial("plateau", policy, workload)
    return objects.applied(chosen, chosen.environment("127.0.0.1:9092", "x"))


def test_the_store_comes_before_the_pods_that_write_to_it():
    """Its settings are those of the trial's ConfigMap, and its metrics are recorded; other trials have none."""
    shared = Workload(store_slots=12, store_contention=50)
    made = applied(shared)
    names = [item["metadata"]["name"] for item in made]
    assert names == ["trial", "lag-exporter", "store", "consumer", "consumer"]
    assert [asks_store(item) for item in made] == [False, False, False, True, False]
    assert (made[0]["data"]["STORE_SLOTS"], made[0]["data"]["STORE_CONTENTION"]) == ("12", "50")
    assert "store_open_writes" in objects.metrics(trial(workload=shared))
    assert "store" not in [item["metadata"]["name"] for item in applied(Workload())]
    assert not any(map(asks_store, applied(Workload())))
    assert "store_open_writes" not in objects.metrics(trial(workload=Workload()))


def test_a_pod_is_given_the_stores_address():
    """The consumer's variable is filled in where the store's IP is known, and the file as it was stays as it was."""
    (consumer,) = (item for item in applied(Workload(store_slots=1)) if asks_store(item))
    (container,) = located(consumer, "trial-1", "", "", shared="127.1.2.3")["spec"]["template"]["spec"]["containers"]
    assert [one for one in container["env"] if one["name"].startswith("STORE_")] == [
        {"name": "STORE_ADDRESS", "value": "127.1.2.3:7092"},
        {"name": "STORE_TOKEN", "valueFrom": {"secretKeyRef": {"name": "trial-login", "key": "token"}}},
    ]
    assert asks_store(consumer)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"store_contention": 50}, "store_contention: 50 | 0, unless store_slots is 1 or more"),
        ({"store_slots": 12, "burn": 50}, "burn: 50 | 0 with store_slots"),
        ({"store_slots": 1001}, "store_slots: 1001 | 0 to 1,000"),
        ({"start_s": -1}, "start_s: -1 | 0 to 3,600"),
        # The next pod of a Deployment has another name: the group would wait for a member that never comes back.
        ({"membership": "static"}, "membership: 'static' | dynamic, unless pod_owner is StatefulSet"),
        ({"client": "go"}, "client: 'go' | one of python, franz-go, java"),
        ({"client": "java", "emit": "on"}, "emit: 'on' | off with client java, whose program lacks it"),
        ({"client": "franz-go", "max_poll_ms": 20_000}, "max_poll_ms: 20000 | 300000 with client franz-go"),
        ({"partition_fetch_kib": 65}, "partition_fetch_kib: 65 | 64 with client python"),
        (
            {"client": "java", "auto_offset_reset": "by_duration:PT"},
            "auto_offset_reset: 'by_duration:PT' | earliest or latest; with",
        ),
        ({"auto_offset_reset": "by_duration:PT1H"}, "auto_offset_reset: 'by_duration:PT1H' | earliest or latest with client"),
    ],
)
def test_what_a_workload_can_t_have_is_one_clear_line(content, line):
    """File, field, value and range."""
    assert refused(Workload.of, content, "my.yaml").startswith(f"my.yaml: {line}")


def test_a_policy_that_scales_a_deployment_has_one():
    """Its scaleTargetRef names a Deployment, which would not be there."""
    line = "trial: pod_owner: 'StatefulSet' | Deployment, which is what the policy scales"
    assert refused(trial, workload=Workload(pod_owner=STATEFUL_SET)).startswith(line)


@pytest.mark.parametrize(
    ("pods", "contention", "rate"), [(4, 100, 800), (12, 100, 2400), (18, 100, 1600), (24, 100, 1200), (24, 0, 2400)]
)
def test_what_a_group_processes_by_its_store(pods, contention, rate):
    """Pods of 200 messages/s and 12 slots: the law of the store's own program."""
    shared = Workload(process_ms="5-15", concurrency=2, store_slots=12, store_contention=contention)
    assert shared.group_rate(pods) == rate
    assert Workload(process_ms="5-15", concurrency=2).group_rate(pods) == 200 * pods


def test_a_trial_waits_for_what_a_slow_store_leaves():
    """24 pods on 12 slots take twice as long for a backlog where waiting costs as much as a write."""
    plain, slow = (
        deadlines(trial(workload=Workload(process_ms="5-15", concurrency=2, store_slots=12, store_contention=contention))).end_s
        for contention in (0, 100)
    )
    assert slow > plain


def test_a_store_is_not_simulated(tmp_path, capsys):
    """No estimate of a backlog is made up, and the command says so in one line."""
    assert estimate(trial(workload=Workload(store_slots=12))).peak_lag is None
    file = tmp_path / "pods.yaml"
    file.write_text("kind: Workload\nstore_slots: 12\n")
    assert main(["simulate", f"--scaledobject={ORDERS}", f"--workload={file}", "--profile=plateau"]) == 2
    line = "pods.yaml:2: store_slots: 12 is not allowed; allowed: 0: a store that pods share"
    assert line in capsys.readouterr().err


def test_a_static_member_is_a_pod_of_a_stateful_set():
    """The template and the replicas are the Deployment's; what stands beside the group stays a Deployment."""
    usual, found = (
        {(item["kind"], item["metadata"]["name"]): item for item in applied(work, "three-pods")}
        for work in (Workload(), STATIC)
    )
    assert usual.keys() ^ found.keys() == {("Deployment", "consumer"), ("StatefulSet", "consumer")}
    consumer, before = found["StatefulSet", "consumer"], usual["Deployment", "consumer"]
    assert consumer["spec"]["template"] == before["spec"]["template"]
    assert consumer["spec"]["replicas"] == 3
    assert consumer["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert "strategy" not in consumer["spec"]  # the API server would refuse it
    assert found["ConfigMap", "trial"]["data"]["MEMBERSHIP"] == "static"


@pytest.mark.parametrize("client", ["franz-go", "java"])
def test_another_client_is_another_program_with_the_same_environment(client):
    """Its image and its command are its own; all else of the pod but its memory is that of the Python program."""
    stock, own = ({item["kind"]: item for item in applied(Workload(client=one))} for one in ("python", client))
    (before,), (after,) = (one["Deployment"]["spec"]["template"]["spec"]["containers"] for one in (stock, own))
    assert (after["image"], after["command"]) == (f"elastic-lab/clients/{client}", [f"consumer-{client}"])
    same = before.keys() - {"image", "command", "resources"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert own["ConfigMap"]["data"] == stock["ConfigMap"]["data"] | {"CLIENT": client}


def deployment(**declared):
    """A Deployment of two containers with annotations ``elastic-lab/...``."""
    containers = [{"name": "one", "env": [{"name": "A", "value": "1"}]}, {"name": "two"}]
    noted = {f"elastic-lab/{name}": value for name, value in declared.items()}
    return {
        "kind": "Deployment",
        "metadata": {"name": "x", "annotations": {"example.org/other": "kept", **noted}},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def test_an_object_declares_metrics_and_sides(tmp_path):
    """Metrics with commas between them, two sides by "yes"; one without annotations declares nothing and is taken as it is."""
    file, item = tmp_path / "x.yaml", {"kind": "Job", "metadata": {"name": "x"}}
    assert manifests.read(deployment(metrics="a_total, b:c", duet="yes"), file).metrics == ("a_total", "b:c")
    assert [manifests.read(deployment(duet=word), file).duet for word in ("yes", "no")] == [True, False]
    assert manifests.read(item, file) == manifests.Declarations()
    assert manifests.with_programs(item, file) == item


def test_the_folder_of_the_programs_is_taken_from_the_manifests(tmp_path):
    """Every container imports from it; the manifest itself names no place of this machine, and is left as it was."""
    (tmp_path / "manifests").mkdir()
    file, item = tmp_path / "manifests" / "x.yaml", deployment(pythonpath="..")
    one, two = manifests.with_programs(item, file)["spec"]["template"]["spec"]["containers"]
    assert one["env"] == [{"name": "A", "value": "1"}, {"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert two["env"] == [{"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert item == deployment(pythonpath="..")


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ({"pythonpath": "nowhere"}, "elastic-lab/pythonpath: 'nowhere' | a folder, seen from that of the file"),
        ({"metrics": "a_total,b-c"}, "elastic-lab/metrics: 'a_total,b-c' | names of metrics, separated by commas"),
        ({"duet": True}, "elastic-lab/duet: True | yes or no, in quotes"),
        ({"metrics": ""}, "elastic-lab/metrics: '' | names of metrics, separated by commas"),
        ({"metric": "a"}, "elastic-lab/metric: 'a' | did you mean elastic-lab/metrics?"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path, declared, line):
    """It names the file, the annotation and what is allowed."""
    assert f"x.yaml: metadata.annotations.{line}" in refused(manifests.read, deployment(**declared), tmp_path / "x.yaml")
