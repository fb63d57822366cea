"""What the process node can't do is refused in words, never ignored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lab.kubelet.backoff import refusal_delay
from lab.kubelet.refusal import refusals

from .harness import IMAGES, Json, alone, node, pod, shell

NOT = "is not supported on the process node; allowed:"
NO_VOLUMES = "no volumes; pass settings as environment variables"
TOKEN = {"name": "kube-api-access-x", "projected": {"sources": []}}

POD_CASES: list[tuple[Json, str]] = [
    *(
        ({"volumes": [{"name": "v", kind: {}}]}, f"spec.volumes[0].{kind}: 'v' {NOT} {NO_VOLUMES}")
        for kind in ("emptyDir", "configMap", "secret", "hostPath", "persistentVolumeClaim", "projected", "downwardAPI", "csi")
    ),
    (
        {"volumes": [TOKEN]},
        f"spec.volumes[0].projected: 'kube-api-access-x' {NOT} no volumes; "
        "set automountServiceAccountToken: false on the pod or its service account",
    ),
    ({"initContainers": [{"name": "i"}]}, f"spec.initContainers: [{{'name': 'i'}}] {NOT} containers only"),
    (
        {"ephemeralContainers": [{"name": "e"}]},
        f"spec.ephemeralContainers: [{{'name': 'e'}}] {NOT} kubectl logs, and the machine's own tools on the pod's process",
    ),
    ({"hostNetwork": True}, f"spec.hostNetwork: True {NOT} unset; every pod has an address of its own in 127/8"),
    ({"hostPID": True}, f"spec.hostPID: True {NOT} unset"),
    ({"hostIPC": True}, f"spec.hostIPC: True {NOT} unset"),
    ({"hostUsers": False}, f"spec.hostUsers: False {NOT} unset"),
    ({"dnsPolicy": "None"}, f"spec.dnsPolicy: 'None' {NOT} unset; the machine's own resolver is used"),
    ({"activeDeadlineSeconds": 5}, f"spec.activeDeadlineSeconds: 5 {NOT} a deadline on the Job"),
    (
        {"securityContext": {"runAsUser": 5}},
        f"spec.securityContext: {{'runAsUser': 5}} {NOT} unset; the process runs as the user who runs the lab",
    ),
    ({"runtimeClassName": "gvisor"}, f"spec.runtimeClassName: 'gvisor' {NOT} unset"),
    ({"inventedLater": 1}, f"spec.inventedLater: 1 {NOT} unset"),
]
CONTAINER_CASES: list[tuple[Json, str]] = [
    ({"image": "nginx:1"}, f"image: 'nginx:1' {NOT} elastic-lab (with any tag or /part)"),
    ({"command": []}, f"command: no command {NOT} a command; an image has no entrypoint here"),
    ({"lifecycle": {"preStop": {}}}, f"lifecycle: {{'preStop': {{}}}} {NOT} unset; handle SIGTERM in the program"),
    (
        {"startupProbe": {"exec": {}}},
        f"startupProbe: {{'exec': {{}}}} {NOT} readinessProbe and livenessProbe, with initialDelaySeconds",
    ),
    ({"readinessProbe": {"grpc": {"port": 1}}}, f"readinessProbe.grpc: {{'port': 1}} {NOT} httpGet, tcpSocket, exec"),
    ({"livenessProbe": {"grpc": {"port": 1}}}, f"livenessProbe.grpc: {{'port': 1}} {NOT} httpGet, tcpSocket, exec"),
    (
        {"readinessProbe": {"httpGet": {"port": "web"}}},
        f"readinessProbe.httpGet.port: 'web' {NOT} a port's number, or its name in the container's ports",
    ),
    (
        {"ports": [{"containerPort": 1, "hostPort": 80}]},
        f"ports[0].hostPort: 80 {NOT} unset; the pod's own address is reachable",
    ),
    ({"volumeMounts": [{"name": "v"}]}, f"volumeMounts: [{{'name': 'v'}}] {NOT} {NO_VOLUMES}"),
    ({"volumeDevices": [{"name": "v"}]}, f"volumeDevices: [{{'name': 'v'}}] {NOT} unset"),
    ({"tty": True}, f"tty: True {NOT} unset"),
    ({"restartPolicy": "Always"}, f"restartPolicy: 'Always' {NOT} unset"),
    ({"terminationMessagePath": "/m"}, f"terminationMessagePath: '/m' {NOT} /dev/termination-log"),
    ({"terminationMessagePolicy": "FallbackToLogsOnError"}, f"terminationMessagePolicy: 'FallbackToLogsOnError' {NOT} File"),
    ({"resources": {"claims": [{"name": "c"}]}}, f"resources.claims: [{{'name': 'c'}}] {NOT} unset"),
    (
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
        f"env[0].valueFrom.resourceFieldRef: 'A' {NOT} fieldRef, configMapKeyRef, secretKeyRef",
    ),
    ({"envFrom": [{"inventedRef": {}}]}, f"envFrom[0].inventedRef: {{}} {NOT} configMapRef, secretRef"),
]
HARMLESS: list[Json] = [
    {
        "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "default",
        "serviceAccountName": "default", "terminationGracePeriodSeconds": 0, "priority": 0, "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority", "hostNetwork": False, "hostUsers": True,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "b"}, "imagePullSecrets": [{"name": "s"}],
    },
]  # fmt: skip


@pytest.mark.parametrize(("spec", "line"), POD_CASES, ids=lambda value: next(iter(value)) if isinstance(value, dict) else None)
def test_a_field_of_the_pod_is_refused(spec: Json, line: str) -> None:
    """One line names the field, its value and what is allowed."""
    assert [str(refusal) for refusal in refusals(pod(shell("true"), **spec), IMAGES)] == [line]


@pytest.mark.parametrize(
    ("more", "line"), CONTAINER_CASES, ids=lambda value: next(iter(value)) if isinstance(value, dict) else None
)
def test_a_field_of_a_container_is_refused(more: Json, line: str) -> None:
    """One line names the container, the field, its value and what is allowed."""
    assert [str(refusal) for refusal in refusals(pod(shell("true") | more), IMAGES)] == [f"spec.containers[0].{line}"]


@pytest.mark.parametrize("spec", HARMLESS)
def test_what_the_api_server_fills_in_is_accepted(spec: Json) -> None:
    """Defaults and the scheduler's fields are no reason to refuse a pod, nor are resource limits."""
    more: dict[str, Any] = {
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "securityContext": {},
    }
    assert refusals(pod(shell("true", **more), **spec), IMAGES) == []


def test_the_automounted_token_is_named_once() -> None:
    """The token's volume and its mount make one line, which says how to do without."""
    mounted = shell("true", volumeMounts=[{"name": TOKEN["name"], "mountPath": "/var/run/secrets"}])
    assert len(refusals(pod(mounted, volumes=[TOKEN]), IMAGES)) == 1


@alone
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


def test_a_refused_template_does_not_make_a_storm_of_pods(tmp_path: Path) -> None:
    """The first pod of an owner fails at once; its replacement stays Pending for a while, with its event written."""

    async def body() -> None:
        async with node(tmp_path) as n:
            for index in range(2):
                owned = {"name": f"pod-{index}", "uid": f"u{index}", "ownerReferences": [{"uid": "owner"}]}
                n.apply(pod(shell("true", image="nginx"), metadata=owned))
            await n.api.until(lambda: len(n.api.events) == 2 and n.api.statuses)
            assert len(n.api.statuses) == 1

    asyncio.run(body())
    assert [refusal_delay(count) for count in (0, 1, 2, 3, 50)] == [0, 1, 2, 4, 60]
