"""A recorder's watch outlives its API server: real etcd and kube-apiservers, one of them killed and started again."""

import json

import psutil
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab.cluster import apply, controlplane
from lab.components import build
from lab.host import processes, resources, runs
from lab.inputs import scale as scales
from lab.trial.watch import Transitions

pytestmark = pytest.mark.services

NAMESPACE = "default"
DEADLINE_S = 240  # an API server starts in 4 s on a quiet machine


@pytest.fixture
def plane():
    """A control plane of this test's own; ended with it."""
    pods = resources.claim_pod_network()
    with runs.guarded() as run, pods.holder:
        yield controlplane.start(run, build.ensure(), scales.load("quick"), pods)


def start(plane, name, command):
    """Start the API server that ``command`` describes, and wait for it."""
    daemon = processes.start(plane.run, name, command)
    (port,) = (part.split("=")[1] for part in command if part.startswith("--secure-port="))
    server = f"https://127.0.0.1:{port}"
    apply.wait_for_apiserver(server, plane.authority.cert, plane.admin, DEADLINE_S, daemon.check)
    return server


def put(core, name, value):
    """Make the ConfigMap ``name``, or change it."""
    body = {"metadata": {"name": name}, "data": {"value": value}}
    try:
        core.create_namespaced_config_map(NAMESPACE, body)
    except ApiException:
        core.replace_namespaced_config_map(name, NAMESPACE, body)


def test_a_watch_goes_on_when_its_api_server_was_restarted(plane, tmp_path):
    """What another API server did meanwhile is noticed: an end, a change, a beginning, each once; nothing is told again."""
    (first,) = (one for one in plane.daemons if one.name == "kube-apiserver")
    command = psutil.Process(first.process.pid).cmdline()
    port = processes.free_ports(1)[0]
    beside = [f"--secure-port={port}" if part.startswith("--secure-port=") else part for part in command]
    watching, changing = plane.api(), plane.api()
    changing.configuration.host = start(plane, "kube-apiserver-beside", beside)
    core = client.CoreV1Api(changing)
    for name in ("stays", "changes", "goes"):
        put(core, name, "before")
    file = tmp_path / "transitions.jsonl"
    seen = Transitions(watching, NAMESPACE, file, (("v1", "ConfigMap"),))

    def value(name):
        return seen.field("ConfigMap", name, "data", "value")

    try:
        seen.wait(lambda: value("goes") == "before", DEADLINE_S, "first list")
        processes.stop(plane.run, first, grace_s=0)
        core.delete_namespaced_config_map("goes", NAMESPACE)
        put(core, "changes", "meanwhile")
        put(core, "comes", "meanwhile")
        start(plane, "kube-apiserver", command)
        seen.wait(lambda: value("comes") == "meanwhile", DEADLINE_S, "second list")
        put(core, "stays", "after")
        seen.wait(lambda: value("stays") == "after", DEADLINE_S, "watched again")
    finally:
        seen.close()
    ours = ("stays", "changes", "goes", "comes")
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if row["name"] in ours]
    assert sorted((row["event"], row["name"]) for row in rows[:3]) == [("ADDED", name) for name in sorted(ours[:3])]
    assert sorted((row["event"], row["name"]) for row in rows[3:6]) == [
        ("ADDED", "comes"),
        ("DELETED", "goes"),
        ("MODIFIED", "changes"),
    ]
    assert [(row["event"], row["name"]) for row in rows[6:]] == [("MODIFIED", "stays")]
    (gap,) = seen.gaps
    assert gap.begin < min(row["t"] for row in rows[3:6]) <= gap.until
