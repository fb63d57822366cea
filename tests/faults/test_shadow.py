"""A live group is shadowed and explained with no more rights than the committed Role's: each sync of its HPA is decided again.

The lab's own binary control plane stands for a cluster that someone runs, or with ``--cluster kind`` one of kind. The group's
pods are never scheduled, and its lag is made by commits, so there are two syncs a second.
"""

import json
import random
import re
import threading
from collections import Counter

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import paths, yamlfile, yamltext
from lab.__main__ import main
from lab.cluster import apply
from lab.errors import BREACHED, FAULT, HELD
from lab.foresee import shadow
from lab.foresee.explain import Explanation, decided_by
from lab.model import hpa, hpa_log
from lab.record import live
from lab.record.tables import Watched
from lab.trial.watch import HPA
from tests import explained
from tests.defects import target as defects
from tests.defects.topic import Topic
from tests.faults.test_existing import context

pytestmark = pytest.mark.services

ROLE = paths.MANIFESTS / "shadow" / "rbac.yaml"
ACCOUNT = "elastic-lab-shadow"
# By runtime: s to watch, of two syncs a second, of which some are within the HPA's memory; the syncs that must be judged at
# least, and the percent that agree. On kind it is what was asked of a control plane that is not the lab's own.
WATCHED = {"binary": (240, 300, 99.0), "kind": (640, 1_000, 99.9)}
# Of explain, before the first run: right as often as of records (tests.explained), and one in two steps told, as no more than
# two syncs fit between two scrapes.
RIGHT, TOLD = 0.95, 0.5
LATE_S = 1.5  # a scrape and a sync
MOST_LAG = 200
# The HPA remembers 10 s; a step down waits for 6 s, and halves at most.
UP = {"stabilizationWindowSeconds": 1, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 5}]}
DOWN = {"stabilizationWindowSeconds": 6, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 10}]}


@pytest.fixture
def group(request, cluster, target):
    """A topic with messages, and the live group on its lag, which no cap hides."""
    if cluster.runtime == "kind":  # whose pods see Kafka at another address than this process
        orders, there = Topic(cluster.bootstrap), {"bootstrapServers": cluster.pod_bootstrap}
    else:
        orders, there = request.getfixturevalue("topic")(), {}
    orders.produce(MOST_LAG)
    trigger = orders.trigger(allowIdleConsumers="true", **there)
    scaled = target(trigger, behavior={"scaleUp": UP, "scaleDown": DOWN}, maxReplicaCount=20)
    scaled.ready()
    return orders, scaled


def login(cluster, namespace, folder):
    """The kubeconfig of the account, by a certificate or on kind by a token."""
    if cluster.runtime != "kind":
        return cluster.plane.service_account(namespace, ACCOUNT)
    asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    with cluster.api() as api:
        token = client.CoreV1Api(api).create_namespaced_service_account_token(ACCOUNT, namespace, asked).status.token
    content = yamlfile.read(cluster.run / "kubeconfig")
    content["users"][0]["user"] = {"token": token}
    file = folder / "account.kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.fixture
def shadowing(cluster, scale, group, tmp_path):
    """The flags that shadow the live group by an account which has the rights of the committed Role alone."""
    _, scaled = group
    text = re.sub(r"\bnamespace: orders\b", f"namespace: {scaled.namespace}", ROLE.read_text())
    text = text.replace("[keda-hpa-orders]", f"[{defects.HPA}]").replace("[orders]", f"[{defects.NAME}]")
    with cluster.api() as api:
        apply.objects(api, [one.content for one in yamltext.documents(text, ROLE)])
    account = login(cluster, scaled.namespace, tmp_path)
    where = [f"--kubeconfig={account}", f"--context={context(account)}", f"--namespace={scaled.namespace}"]
    return ["shadow", *where, f"--name={defects.NAME}", f"--hpa-sync-s={scale.hpa_sync_s}"], account


@pytest.fixture
def explaining(cluster, shadowing, capsys):
    """A function that explains the live group's past by the same rights, from Prometheus and the HPA's events."""

    def ask(*times):
        capsys.readouterr()
        assert main(["explain", *shadowing[0][1:], f"--prometheus={cluster.prometheus_url}", *times, "--json"]) == HELD
        answer = json.loads(capsys.readouterr().out)
        assert not [one for one in answer["notes"] if "events" in one]  # they were read
        return [Explanation(**one) for one in answer["explanations"]]

    return ask


def steps(file, sync_s):
    """The steps in the file of a watch that the model decides as the live HPA did, and what decided them."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    hpas, deployments = (
        [Watched(one["t"], one["name"], one["event"], one["object"]) for one in rows if one["kind"] == kind]
        for kind in (HPA, "Deployment")
    )
    period = live.period(hpas, sync_s)
    for one in shadow.decide(live.syncs(hpas, deployments, period, rows[-1]["t"]), hpa.DEFAULTS, period):
        sync = one.live.sync
        if one.word == shadow.AGREED and sync.current != sync.desired:
            totals = tuple(sum(value) / 1000 if isinstance(value, tuple) else None for value in one.observed)
            yield explained.Truth(sync.at, sync.current, sync.desired, decided_by(one.replayed.decision, totals, (None,))[0])


def rescales(logged):
    """The steps in the controller's own log: time, replicas before and after."""
    for one in logged:
        if one.outcome.words == hpa_log.RESCALED:
            yield one.outcome.t, one.outcome.replicas["currentReplicas"], one.outcome.replicas["desiredReplicas"]


def among(t, before, after, logged):
    """Whether such a step is in the log."""
    return any(abs(t - at) <= LATE_S and (before, after) == (one, other) for at, one, other in logged)


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
def test_the_model_decides_as_the_live_hpa_does(cluster, scale, shadowing, group, explaining, tmp_path, capsys):
    """Hundreds of syncs of a lag that changes all the time: the controller's log has as many, and explain tells its steps."""
    orders, scaled = group
    flags, _ = shadowing
    watched_s, least, percent = WATCHED[cluster.runtime]
    over, drawn = threading.Event(), random.Random(7)

    def commit():
        while not over.wait(drawn.choice([0.3, 1.0, 2.0, 6.0])):
            orders.leave(drawn.choice([0, 10, 40, 45, 90, 150, MOST_LAG]))

    (tmp_path / "candidate.yaml").write_text(json.dumps(cheaper(scaled.scaled_object())))
    committing = threading.Thread(target=commit, daemon=True)
    committing.start()
    try:
        given = [f"--for-s={watched_s}", f"--candidate={tmp_path / 'candidate.yaml'}", f"--save={tmp_path / 'watched.jsonl'}"]
        code = main([*flags, *given, "--json"])
    finally:
        over.set()
        committing.join()
    answer = json.loads(capsys.readouterr().out)
    trust, asked = answer["trust"], answer["candidate"]
    assert (code, trust["reasons"]) == (HELD, []), answer["disagreements"]
    assert trust["judged"] >= least
    assert trust["agreement"] >= percent
    assert trust["steps"] >= 20
    logged = [one for one in scaled.syncs() if answer["since"] < one.outcome.t < answer["until"]]
    assert trust["syncs"] == pytest.approx(len(logged), rel=0.05)  # silent ones, most of them, are counted by their time alone
    rescaled = list(rescales(logged))
    assert asked["live"]["steps"] <= len(rescaled)
    assert asked["asked"]["pod_minutes"] < asked["live"]["pod_minutes"]
    assert main(["shadow", f"--watched={tmp_path / 'watched.jsonl'}", flags[-1]]) == HELD
    assert capsys.readouterr().out.splitlines()[1].startswith(f"trust: of {trust['judged']:,} syncs the model decided ")
    truths = list(steps(tmp_path / "watched.jsonl", scale.hpa_sync_s))
    assert all(among(one.t, one.before, one.after, rescaled) for one in truths)
    told = explaining(f"--from={answer['since']}", f"--to={answer['until']}")
    said = Counter(explained.judge(one, told, answer["sync_s"]) for one in truths)
    assert said[explained.RIGHT] >= RIGHT * (said[explained.RIGHT] + said[explained.WRONG]), said
    assert said[explained.RIGHT] >= TOLD * len(truths), said


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


@pytest.mark.nightly
def test_a_change_that_just_happened_is_explained(group, explaining):
    """A step up and one down in the last hour: what is told is what the controller logged, and one is told at least."""
    orders, scaled = group
    orders.leave(80)
    scaled.reach(8)
    orders.leave(10)
    scaled.wait(lambda: scaled.replicas() <= 4, "half of the pods or fewer")
    seen = lambda: any(one.after <= 4 and one.after < one.before for one in explaining())  # noqa: E731
    scaled.wait(seen, "the step in Prometheus")
    told = [one for one in explaining() if one.by and one.before != one.after]
    logged = list(rescales(scaled.syncs()))
    assert told
    assert all(among(one.at, one.before, one.after, logged) for one in told), (told, logged)


def cheaper(live):
    """The live ScaledObject with twice the lagThreshold."""
    live["metadata"] = {"name": live["metadata"]["name"]}
    live["spec"]["triggers"][0]["metadata"]["lagThreshold"] = str(
        2 * int(live["spec"]["triggers"][0]["metadata"]["lagThreshold"])
    )
    return {name: value for name, value in live.items() if name != "status"}
