"""The environment of a pod's process: everything it asks for, and nothing of the session's."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.kubelet.environment import expand, service

from .harness import IMAGES, SERVER, container, node, pod, shell

FIELDS = {
    "NAME": "metadata.name",
    "NAMESPACE": "metadata.namespace",
    "UID": "metadata.uid",
    "APP": "metadata.labels['app']",
    "NOTE": "metadata.annotations['example.com/note']",
    "NODE": "spec.nodeName",
    "ACCOUNT": "spec.serviceAccountName",
    "IP": "status.podIP",
    "HOST": "status.hostIP",
}


async def test_the_environment_is_what_the_pod_says_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, references, fields and whole ConfigMaps and Secrets are resolved in order; the session's variables stay out.

    The variables by which a pod finds the API are there to refer to, and one that the container sets itself wins.
    """
    monkeypatch.setenv("SECRET_OF_THE_SESSION", "leaked")
    env = [
        {"name": "PLAIN", "value": "a"},
        {"name": "JOINED", "value": "$(PLAIN)-$(FROM_MAP)-$(UNKNOWN)-$$(PLAIN)"},
        {"name": "URL", "value": "https://$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"},
        {"name": "KUBERNETES_SERVICE_PORT", "value": "443"},
        {"name": "LATER", "value": "$(KUBERNETES_SERVICE_PORT)"},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        {"name": "NO_KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x", "optional": True}}},
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in FIELDS.items()),
    ]
    env_from = [
        {"prefix": "FROM_", "configMapRef": {"name": "upper"}},
        {"secretRef": {"name": "login"}},
        {"configMapRef": {"name": "none", "optional": True}},
    ]
    metadata = {"labels": {"app": "web"}, "annotations": {"example.com/note": "n"}}
    async with node(tmp_path) as n:
        n.api.objects = {
            ("ConfigMap", "settings"): {"rate": "7"},
            ("ConfigMap", "upper"): {"MAP": "m"},
            ("Secret", "login"): {"password": "p"},
        }
        obj = pod(container("env", env=env, envFrom=env_from), policy="Never", metadata=metadata, serviceAccountName="sa")
        made = n.apply(obj)
        await n.phase("Succeeded")
        found = dict(line.split("=", 1) for line in n.text(made).splitlines())
        assert found.pop("PATH").split(":")[0] == str(IMAGES.folders["elastic-lab"])
        assert found == {
            "HOME": str(made.folder), "HOSTNAME": "pod", "LANG": "C.UTF-8", "TZ": "UTC",
            "ELASTIC_LAB_RUN": str(tmp_path.resolve()),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT_HTTPS": "6443",
            "URL": SERVER, "KUBERNETES_SERVICE_PORT": "443", "LATER": "443",
            "PLAIN": "a", "JOINED": "a-m-$(UNKNOWN)-$(PLAIN)",
            "KEY": "7", "PASSWORD": "p", "password": "p", "FROM_MAP": "m",
            "NAME": "pod", "NAMESPACE": "ns", "UID": obj["metadata"]["uid"], "APP": "web", "NOTE": "n", "NODE": "node-1",
            "ACCOUNT": "sa", "IP": "127.77.0.1", "HOST": "127.0.0.1",
        }  # fmt: skip


def test_the_api_without_a_port_is_on_443() -> None:
    """As every https address."""
    assert service("https://api.example")["KUBERNETES_SERVICE_PORT"] == "443"


async def test_command_arguments_and_folder_are_as_given(tmp_path: Path) -> None:
    """``$(VAR)`` is expanded in command and args, the image's folder is searched first, and workingDir is where it runs."""
    async with node(tmp_path) as n:
        script = "import os, sys; print(sys.executable, os.getcwd(), *sys.argv[1:])"
        more = {"args": ["$(WORD)", "$(HOSTNAME)"], "workingDir": "/usr", "env": [{"name": "WORD", "value": "x"}]}
        made = n.apply(pod(container("python", "-c", script, **more), policy="Never"))
        await n.phase("Succeeded")
        assert n.text(made).split() == [str(IMAGES.folders["elastic-lab"] / "python"), "/usr", "x", "pod"]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"configMapKeyRef": {"name": "m", "key": "k"}}, 'configmap "m" not found'),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, 'secret "s" not found'),
        ({"configMapKeyRef": {"name": "there", "key": "k"}}, "couldn't find key k in ConfigMap ns/there"),
    ],
)
async def test_a_missing_source_makes_the_container_wait(tmp_path: Path, env: dict[str, object], message: str) -> None:
    """The container waits with CreateContainerConfigError and the kubelet's words, and a deletion ends the wait."""
    async with node(tmp_path) as n:
        n.api.objects = {("ConfigMap", "there"): {}}
        obj = pod(shell("sleep 60", env=[{"name": "A", "valueFrom": env}]))
        n.apply(obj)
        await n.api.until(lambda: n.api.statuses)
        assert n.api.shown()[-1]["state"] == {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
        assert n.api.statuses[-1]["phase"] == "Pending"
        n.delete(obj, 30)
        ended = await n.ended(obj)
        assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


async def test_pods_that_start_together_read_a_configmap_once(tmp_path: Path) -> None:
    """A scale-up of ten pods costs one read of the ConfigMap they share, and gives each its own address.

    The wait for a missing one ends with its creation, without a restart being counted.
    """
    async with node(tmp_path) as n:
        spec = shell("sleep 60", envFrom=[{"configMapRef": {"name": "shared"}}])
        pods = [n.apply(pod(spec, metadata={"name": f"pod-{i}", "uid": f"u{i}"})) for i in range(10)]
        await n.api.until(lambda: len(n.api.statuses) >= len(pods))
        assert n.api.reads == 1
        n.api.objects[("ConfigMap", "shared")] = {"A": "b"}
        await n.api.until(lambda: all(made.containers[0].pid for made in pods))
        assert {entry["restartCount"] for entry in n.api.shown()} == {0}
        assert len({made.ip for made in pods}) == 10


def test_expansion_is_the_kubelets() -> None:
    """What Kubernetes' own scanner (third_party/forked/golang/expansion) makes of a text, however a reference ends."""
    wanted = {
        "$(A)": "1", "$(A)$(B)": "1$(C)", "$$(A)": "$(A)", "$$$(A)": "$1", "$$$$(A)": "$$(A)", "$(X)": "$(X)", "$()": "$()",
        "$(A": "$(A", "$A": "$A", "$": "$", "$$": "$", "a$": "a$", "$($(A))": "$($(A))", "$(A))": "1)", "$ (A)": "$ (A)",
    }  # fmt: skip
    assert {text: expand(text, {"A": "1", "B": "$(C)", "C": "2"}) for text in wanted} == wanted
