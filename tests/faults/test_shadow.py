"""A live group is shadowed with no more rights than the committed Role's: every sync of its HPA is found and decided again.

The lab's own binary control plane stands for a cluster that someone runs. The group's pods are never scheduled, and its lag is
made by commits, so there are two syncs a second.
"""

import json
import random
import re
import threading

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import paths, yamltext
from lab.__main__ import main
from lab.cluster import apply
from lab.errors import BREACHED, FAULT, HELD
from lab.model import hpa_log
from tests.defects import target as defects
from tests.faults.test_existing import context

pytestmark = pytest.mark.services

ROLE = paths.MANIFESTS / "shadow" / "rbac.yaml"
ACCOUNT = "elastic-lab-shadow"
WATCHED_S = 240  # of two syncs a second, of which some are within the HPA's memory
MOST_LAG = 200
# The HPA remembers 10 s; a step down waits for 6 s, and halves at most.
UP = {"stabilizationWindowSeconds": 1, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 5}]}
DOWN = {"stabilizationWindowSeconds": 6, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 10}]}


@pytest.fixture
def group(topic, target):
    """A topic with messages, and the live group on its lag, which no cap hides."""
    orders = topic()
    orders.produce(MOST_LAG)
    scaled = target(orders.trigger(allowIdleConsumers="true"), behavior={"scaleUp": UP, "scaleDown": DOWN}, maxReplicaCount=20)
    scaled.ready()
    return orders, scaled


@pytest.fixture
def shadowing(cluster, scale, group):
    """The flags that shadow the live group by an account which has the rights of the committed Role alone."""
    _, scaled = group
    text = re.sub(r"\bnamespace: orders\b", f"namespace: {scaled.namespace}", ROLE.read_text())
    text = text.replace("[keda-hpa-orders]", f"[{defects.HPA}]").replace("[orders]", f"[{defects.NAME}]")
    with cluster.api() as api:
        apply.objects(api, [one.content for one in yamltext.documents(text, ROLE)])
    account = cluster.plane.service_account(scaled.namespace, ACCOUNT)
    where = [f"--kubeconfig={account}", f"--context={context(account)}", f"--namespace={scaled.namespace}"]
    return ["shadow", *where, f"--name={defects.NAME}", f"--hpa-sync-s={scale.hpa_sync_s}"], account


def test_every_write_is_denied_and_a_right_that_lacks_is_one_line(shadowing, group, capsys):
    """The account reads the HPA. It can't scale, and it can't read the same kinds by another name, or another kind."""
    flags, account = shadowing
    with apply.connect(account) as api:
        hpas = client.AutoscalingV2Api(api)
        place = group[1].namespace
        assert hpas.read_namespaced_horizontal_pod_autoscaler(defects.HPA, place).spec.max_replicas == 20
        writes = [
            lambda: client.AppsV1Api(api).patch_namespaced_deployment_scale(defects.NAME, place, {"spec": {"replicas": 9}}),
            lambda: hpas.patch_namespaced_horizontal_pod_autoscaler(defects.HPA, place, {"spec": {"maxReplicas": 9}}),
            lambda: hpas.delete_namespaced_horizontal_pod_autoscaler(defects.HPA, place),
            lambda: hpas.list_namespaced_horizontal_pod_autoscaler(place),
            lambda: client.CoreV1Api(api).list_namespaced_secret(place),
        ]
        for write in writes:
            with pytest.raises(ApiException) as denied:
                write()
            assert denied.value.status == 403
    assert main([*flags, "--for-s=1"]) == BREACHED  # too few syncs for a verdict
    capsys.readouterr()
    assert main([*flags[:-2], "--name=other", "--for-s=1"]) == FAULT
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert 'scaledobjects.keda.sh "other" is forbidden' in line
    assert "which needs the rights of manifests/shadow/rbac.yaml" in line


@pytest.mark.nightly
def test_the_model_decides_as_the_live_hpa_does(shadowing, group, tmp_path, capsys):
    """More than 300 syncs under a lag that changes all the time, 99 % at least; the controller's log has as many syncs."""
    orders, scaled = group
    flags, _ = shadowing
    over, drawn = threading.Event(), random.Random(7)

    def commit():
        while not over.wait(drawn.choice([0.3, 1.0, 2.0, 6.0])):
            orders.leave(drawn.choice([0, 10, 40, 45, 90, 150, MOST_LAG]))

    (tmp_path / "candidate.yaml").write_text(json.dumps(cheaper(scaled.scaled_object())))
    committing = threading.Thread(target=commit, daemon=True)
    committing.start()
    try:
        given = [f"--for-s={WATCHED_S}", f"--candidate={tmp_path / 'candidate.yaml'}", f"--save={tmp_path / 'watched.jsonl'}"]
        code = main([*flags, *given, "--json"])
    finally:
        over.set()
        committing.join()
    answer = json.loads(capsys.readouterr().out)
    trust, asked = answer["trust"], answer["candidate"]
    assert (code, trust["reasons"]) == (HELD, []), answer["disagreements"]
    assert trust["judged"] >= 300
    assert trust["agreement"] >= 99
    assert trust["steps"] >= 20
    logged = [one for one in scaled.syncs() if answer["since"] < one.outcome.t < answer["until"]]
    assert trust["syncs"] == pytest.approx(len(logged), rel=0.05)  # silent ones, most of them, are counted by their time alone
    rescaled = sum(one.outcome.words == hpa_log.RESCALED for one in logged)
    assert asked["live"]["steps"] <= rescaled
    assert asked["asked"]["pod_minutes"] < asked["live"]["pod_minutes"]
    assert main(["shadow", f"--watched={tmp_path / 'watched.jsonl'}", flags[-1]]) == HELD
    assert capsys.readouterr().out.splitlines()[1].startswith(f"trust: of {trust['judged']:,} syncs the model decided ")


@pytest.mark.nightly
def test_its_past_is_in_prometheus(cluster, scale, group, tmp_path, capsys):
    """What kube-state-metrics shows of it is found under a real Prometheus' labels; a scrape a second is one in two syncs."""
    orders, scaled = group
    orders.leave(80)
    scaled.reach(8)
    orders.leave(10)
    scaled.wait(lambda: scaled.replicas() <= 4, "half of the pods or fewer")
    (tmp_path / "live.yaml").write_text(json.dumps(scaled.scaled_object()))
    where = [f"--prometheus={cluster.prometheus_url}", f"--namespace={scaled.namespace}", f"--hpa-sync-s={scale.hpa_sync_s}"]
    code = main(["shadow", "--backtest=1m", f"--scaledobject={tmp_path / 'live.yaml'}", *where, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code in (HELD, BREACHED)
    assert (answer["hpa"], answer["scrape_s"]) == (defects.HPA, pytest.approx(1, rel=0.2))
    assert answer["trust"]["judged"] > 0
    assert answer["trust"]["agreed"] > answer["trust"]["judged"] / 2


def cheaper(live):
    """The live ScaledObject with twice the lagThreshold."""
    live["metadata"] = {"name": live["metadata"]["name"]}
    live["spec"]["triggers"][0]["metadata"]["lagThreshold"] = str(
        2 * int(live["spec"]["triggers"][0]["metadata"]["lagThreshold"])
    )
    return {name: value for name, value in live.items() if name != "status"}
