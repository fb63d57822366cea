"""What the process node can't do is refused in words, never ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.kubelet.backoff import refusal_delay
from lab.kubelet.refusal import refusals

from .harness import IMAGES, Json, container, node, pod, shell

NOT = "is not supported on the process node; allowed:"
NO_VOLUMES = "no volumes; pass settings as environment variables"
TOKEN = {"name": "kube-api-access-x", "projected": {"sources": []}}

TOKENS = "no volumes; set automountServiceAccountToken: false on the pod or its service account"
PORT, ANY = {"port": 1}, "httpGet, tcpSocket, exec"
LIMIT = [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
CLAIMS = [{"name": "c"}]
NAMED = "a port's number, or its name in the container's ports"
VOLUMES = ("emptyDir", "configMap", "secret", "hostPath", "persistentVolumeClaim", "projected", "downwardAPI", "csi")
# Of a pod and of a container: a field, its value and what is allowed. Then, where the line shows others, the place and the
# value that it shows.
POD_CASES: list[tuple[Any, ...]] = [
    *(("volumes", [{"name": "v", kind: {}}], NO_VOLUMES, f"volumes[0].{kind}", "v") for kind in VOLUMES),
    ("volumes", [TOKEN], TOKENS, "volumes[0].projected", "kube-api-access-x"),
    ("initContainers", [{"name": "i"}], "containers only"),
    ("ephemeralContainers", [{"name": "e"}], "kubectl logs, and the machine's own tools on the pod's process"),
    ("hostNetwork", True, "unset; every pod has an address of its own in 127/8"),
    ("hostPID", True, "unset"),
    ("hostIPC", True, "unset"),
    ("hostUsers", False, "unset"),
    ("dnsPolicy", "None", "unset; the machine's own resolver is used"),
    ("activeDeadlineSeconds", 5, "a deadline on the Job"),
    ("securityContext", {"runAsUser": 5}, "unset; the process runs as the user who runs the lab"),
    ("runtimeClassName", "gvisor", "unset"),
    ("inventedLater", 1, "unset"),
]
CONTAINER_CASES: list[tuple[Any, ...]] = [
    ("readinessProbe", {"grpc": PORT}, ANY, "readinessProbe.grpc", PORT),
    ("livenessProbe", {"grpc": PORT}, ANY, "livenessProbe.grpc", PORT),
    ("readinessProbe", {"httpGet": {"port": "web"}}, NAMED, "readinessProbe.httpGet.port", "web"),
    ("ports", [{"hostPort": 80}], "unset; the pod's own address is reachable", "ports[0].hostPort", 80),
    ("resources", {"claims": CLAIMS}, "unset", "resources.claims", CLAIMS),
    ("env", LIMIT, "fieldRef, configMapKeyRef, secretKeyRef", "env[0].valueFrom.resourceFieldRef", "A"),
    ("envFrom", [{"inventedRef": {}}], "configMapRef, secretRef", "envFrom[0].inventedRef", {}),
    ("image", "nginx:1", "elastic-lab (with any tag or /part)"),
    ("lifecycle", {"preStop": {}}, "unset; handle SIGTERM in the program"),
    ("startupProbe", {"exec": {}}, "readinessProbe and livenessProbe, with initialDelaySeconds"),
    ("volumeMounts", [{"name": "v"}], NO_VOLUMES),
    ("volumeDevices", [{"name": "v"}], "unset"),
    ("tty", True, "unset"),
    ("restartPolicy", "Always", "unset"),
    ("terminationMessagePath", "/m", "/dev/termination-log"),
    ("terminationMessagePolicy", "FallbackToLogsOnError", "File"),
]
HARMLESS: Json = {
    "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "default",
    "serviceAccountName": "default", "terminationGracePeriodSeconds": 0, "priority": 0, "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority", "hostNetwork": False, "hostUsers": True, "automountServiceAccountToken": False,
    "tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "b"}, "imagePullSecrets": [{"name": "s"}],
}  # fmt: skip
HARMLESS_OF_CONTAINER: Json = {
    "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "securityContext": {},
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
}  # fmt: skip


@pytest.mark.parametrize("part", ["spec", "spec.containers[0]"])
def test_a_field_is_refused_in_one_line(part: str) -> None:
    """It names the field of the pod or the container, its value and what is allowed."""
    for field, value, allowed, *shown in POD_CASES if part == "spec" else CONTAINER_CASES:
        place, seen = shown or (field, value)
        changed = {field: value}
        obj = pod(shell("true"), **changed) if part == "spec" else pod(shell("true") | changed)
        assert [str(one) for one in refusals(obj, IMAGES)] == [f"{part}.{place}: {seen!r} {NOT} {allowed}"]


def test_a_container_without_a_command_is_refused() -> None:
    """An image has no entrypoint here."""
    (found,) = refusals(pod(container()), IMAGES)
    assert str(found) == f"spec.containers[0].command: no command {NOT} a command; an image has no entrypoint here"


def test_what_the_api_server_fills_in_is_accepted() -> None:
    """Defaults and the scheduler's fields are no reason to refuse a pod, nor are resource limits."""
    assert refusals(pod(shell("true", **HARMLESS_OF_CONTAINER), **HARMLESS), IMAGES) == []


def test_the_automounted_token_is_named_once() -> None:
    """The token's volume and its mount make one line, which says how to do without."""
    mounted = shell("true", volumeMounts=[{"name": TOKEN["name"], "mountPath": "/var/run/secrets"}])
    assert len(refusals(pod(mounted, volumes=[TOKEN]), IMAGES)) == 1


async def test_a_refused_pod_fails_with_an_event_and_runs_nothing(tmp_path: Path) -> None:
    """The pod is Failed, a Warning says why in the same words, nothing was started, and the object stays until deleted."""
    async with node(tmp_path) as n:
        obj = pod(shell("touch ran", image="nginx"), shell("true", name="two", tty=True))
        made = n.apply(obj)
        await n.api.until(lambda: n.api.statuses and n.api.events)
        status, event = n.api.statuses[-1], n.api.events[0]
        assert (status["phase"], status["reason"]) == ("Failed", "ErrImageNeverPull")
        assert status["message"] == event["message"]
        assert "containers[0].image" in event["message"]
        assert "containers[1].tty" in event["message"]
        assert (event["type"], event["reason"]) == ("Warning", "ErrImageNeverPull")
        assert event["involvedObject"]["uid"] == obj["metadata"]["uid"]
        assert not made.folder.exists()
        assert n.api.deleted == []
        n.delete(obj, 0)
        await n.removed(obj)


async def test_a_refused_template_does_not_make_a_storm_of_pods(tmp_path: Path) -> None:
    """The first pod of an owner fails at once; its replacement stays Pending for a while, with its event written."""
    async with node(tmp_path) as n:
        for index in range(2):
            owned = {"name": f"pod-{index}", "uid": f"u{index}", "ownerReferences": [{"uid": "owner"}]}
            n.apply(pod(shell("true", image="nginx"), metadata=owned))
        await n.api.until(lambda: len(n.api.events) == 2 and n.api.statuses)
        assert len(n.api.statuses) == 1
    assert [refusal_delay(count) for count in (0, 1, 2, 3, 50)] == [0, 1, 2, 4, 60]
