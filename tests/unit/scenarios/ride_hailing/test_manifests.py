"""Pods that the process node runs, policies that a trial adopts, and what the text got wrong, refused by name."""

import subprocess
import sys

import pytest

from lab import paths, yamlfile
from lab.inputs import inputs, manifests, objects, scaledobject
from lab.inputs import scale as scales
from lab.inputs.adopt import adopt
from lab.inputs.workload import Workload
from lab.kubelet.podspec import Images
from lab.kubelet.refusal import refusals
from lab.model import lag
from tests.scenarios.ride_hailing.programs import service

FOLDER = paths.MANIFESTS / "ridehailing"
BESIDE = ("ingestion", "analytics", "pipeline", "rider-api", "driver-matching", "contested")
SCALERS = {
    "rider-api-on-cpu": ("HorizontalPodAutoscaler", "rider-api"),
    "rider-api-on-requests": ("ScaledObject", "rider-api-scaler"),
}


def documents():
    """Every object of the folder, with its file's name."""
    return [(file.stem, item) for file in sorted(FOLDER.glob("*.yaml")) for item in yamlfile.documents(file)]


@pytest.mark.parametrize(("name", "item"), [one for one in documents() if one[1]["kind"] in ("Deployment", "Job")])
def test_the_process_node_runs_every_pod(name, item, tmp_path):
    """No field of theirs is refused, and from any folder the container finds the program of its command."""
    template = manifests.with_programs(item, FOLDER / f"{name}.yaml")["spec"]["template"]
    assert [str(one) for one in refusals(template, Images({"elastic-lab": tmp_path}))] == []
    for container in template["spec"]["containers"]:
        given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        module = container["command"][2]
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=given, check=False).returncode == 0


def test_a_pods_grace_outlasts_what_it_has_to_end():
    """What clients have not heard yet, then twice the time that aiohttp waits, then what the producer flushes.

    Of 500 riders at three matching pods a third is found a driver within the shutdown.
    """
    for name in ("ingestion", "rider-api", "driver-matching"):
        pod = yamlfile.documents(FOLDER / f"{name}.yaml")[0]["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > service.LINGER_S + 2 * service.SHUTDOWN_S + 2
    given = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert 500 / 3 * int(given["MATCH_MS"]) / 1000 / int(given["SLOTS"]) < 2 * service.SHUTDOWN_S


@pytest.mark.parametrize("name", ["trip-analytics", "fare-reconciliation"])
def test_a_trial_adopts_the_authors_scaledobject(name):
    """And can name its namespace."""
    chosen = inputs.read("trips", FOLDER / f"{name}.yaml", Workload(), 1, scales.load("medium"), "binary", partitions=20)
    assert {one.field for one in chosen.replaced} >= {"metadata.namespace", "spec.scaleTargetRef"}
    assert len(f"trial-{chosen.id}-abcd") <= 63


@pytest.mark.parametrize("scaler", SCALERS)
def test_what_stands_beside_is_read_with_the_trial(scaler):
    """Deployments, HPAs and ScaledObjects of each, compressed like the trial's own policy."""
    beside = tuple(f"ridehailing/{name}" for name in (*BESIDE, scaler))
    more = {"partitions": 20, "beside": beside, "driver": "ridehailing/riders"}
    policy = FOLDER / "trip-analytics.yaml"
    chosen = inputs.read("trips-rides", policy, Workload(), 1, scales.load("medium"), "binary", **more)
    applied = objects.applied(chosen, chosen.environment("127.0.0.1:1", "run"))
    names = [(item["kind"], item["metadata"]["name"]) for item in applied]
    assert {*(("Deployment", name) for name in BESIDE), ("ScaledObject", "driver-matching-scaler")} <= set(names)
    assert [name for name in SCALERS.values() if name in names] == [SCALERS[scaler]]
    assert objects.producer(chosen)["metadata"]["name"] == "producer"


def test_what_the_text_gets_wrong_is_put_right_and_nothing_else():
    """Only the metric's name in the matching's ScaledObject. A new group of fares as written is never at zero: KEDA's default,
    latest, counts 1 for each of 20 partitions without a commit, which is above the activation of 1. Earliest: 0.
    """
    wrong = yamlfile.read(FOLDER / "driver-matching-as-written.yaml")
    del wrong["spec"]["triggers"][0]["metadata"]["metricName"]
    assert wrong == yamlfile.documents(FOLDER / "driver-matching.yaml")[1]
    for name, active in {"fare-reconciliation-as-written": True, "fare-reconciliation": False}.items():
        scaled, _ = adopt(scaledobject.parse(yamlfile.read(FOLDER / f"{name}.yaml"), name))
        partitions = {number: lag.Partition(end=0, committed=None) for number in range(20)}
        assert lag.read(scaled.triggers[0], {"fares": partitions}, {}).active is active
