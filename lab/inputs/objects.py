"""What a trial applies in its namespace: the objects as the API server gets them, with the scale's compression."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lab import paths, yamlfile
from lab.inputs import clients, lag_metric, manifests, own_consumer, store
from lab.inputs.controller import LagController
from lab.inputs.inputs import Inputs
from lab.inputs.policy import PlainHpa
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.steps import ReplicaSteps
from lab.inputs.triggers.external import External
from lab.inputs.workload import STATEFUL_SET

STORE = "store/store"
CONSUMERS_BOOTSTRAP = "CONSUMERS_BOOTSTRAP_SERVERS"  # of an environment: Kafka as consumers alone see it, where that is another


def applied(inputs: Inputs, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Every object that a trial of ``inputs`` applies before its producer, in order; ``environment`` is its stage's."""
    work = inputs.workload
    consumer = yamlfile.read(paths.MANIFESTS / "consumer" / "deployment.yaml")
    consumer["spec"]["replicas"] = inputs.policy.start
    pod = consumer["spec"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = work.grace_s
    pod["containers"][0]["resources"]["requests"]["cpu"] = f"{work.cpu_request_m}m"
    pod["containers"][0]["livenessProbe"]["periodSeconds"] = work.liveness_s // 12  # it fails six times
    if work.client != clients.PYTHON:
        own = {"image": f"{clients.IMAGE}/{work.client}", "command": [clients.program(work.client)]}
        pod["containers"][0] |= own
        pod["containers"][0]["resources"]["requests"]["memory"] = clients.MEMORY[work.client]
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trial"}, "data": environment}
    exporter = yamlfile.read(paths.MANIFESTS / "kafka" / "lag-exporter.yaml")
    others = [item for name in inputs.beside for item in manifests.beside(inputs.library.manifest(name), inputs.scale)]
    if work.store_slots:
        others += manifests.beside(inputs.library.manifest(STORE), inputs.scale)
        address = {"name": store.ADDRESS, "value": ""}  # known when the store is there
        pod["containers"][0]["env"] += [address, store.TOKEN]
    if CONSUMERS_BOOTSTRAP in environment:
        pod["containers"][0]["env"].append({"name": "BOOTSTRAP_SERVERS", "value": environment[CONSUMERS_BOOTSTRAP]})
    if work.own:
        given = {"command": work.command, "image": work.image, "env": work.env, "rung": work.rung}
        consumer = own_consumer.put(consumer, **given, runtime=inputs.runtime)
    if work.rung != own_consumer.RECEIPTS:
        observer = yamlfile.read(paths.MANIFESTS / "kafka" / "observer.yaml")
        if work.rung == own_consumer.REPORTS:  # it says itself who owns what
            observer["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "MEMBERS", "value": "off"})
        others.append(observer)
    owner = stateful_set(consumer) if work.pod_owner == STATEFUL_SET else consumer
    return [settings, exporter, *others, owner, *_deciding(inputs, consumer, environment)]


def _deciding(inputs: Inputs, consumer: dict[str, Any], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """What decides the replicas of ``consumer``, or stands beside it where no one does."""
    policy = inputs.policy
    if isinstance(policy, ReplicaSteps):
        return [bystander(consumer)]
    if isinstance(policy, LagController):
        return yamlfile.documents(paths.MANIFESTS / "controller" / "controller.yaml")
    if isinstance(policy, ScaledObject) and any(isinstance(one, External) for one in policy.triggers):
        return [lag_scaler(), policy.content]
    if isinstance(policy, PlainHpa) and policy.lag_threshold is not None:
        return [*lag_metric.objects(inputs.scale), lag_metric.with_topic(policy.content, environment)]
    return [policy.content]


def producer(inputs: Inputs) -> dict[str, Any]:
    """The Job that replays the profile."""
    file = inputs.library.manifest(inputs.driver)
    return manifests.with_programs(yamlfile.read(file), file)


def metrics(inputs: Inputs) -> tuple[str, ...]:
    """The metrics to record beside those of every trial: what the manifests of what else runs in it declare."""
    files = [*inputs.beside, *([STORE] if inputs.workload.store_slots else []), inputs.driver]
    declared = [one for file in files for one in manifests.declarations(inputs.library.manifest(file))]
    return tuple(dict.fromkeys(name for one in declared for name in one.metrics))


def lag_scaler() -> dict[str, Any]:
    """The persistent-lag scaler's Deployment as a trial has it: of its own, one replica, so that its record is all there is.

    Its confinement is the runtime's (:mod:`lab.cluster.fit`): the process node refuses any.
    """
    file = paths.MANIFESTS / "lagscaler" / "lag-scaler.yaml"
    deployment = next(item for item in yamlfile.documents(file) if item["kind"] == "Deployment")
    del deployment["metadata"]["namespace"]
    deployment["spec"] |= {"replicas": 1, "minReadySeconds": 0}
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    del pod["securityContext"], container["securityContext"]
    container["resources"]["requests"]["cpu"] = "50m"  # beside 24 consumers on two cores
    return deployment


def stateful_set(deployment: dict[str, Any]) -> dict[str, Any]:
    """The ``deployment`` as a StatefulSet, whose pods keep their names. It starts and stops pods at the same time, too."""
    made = copy.deepcopy(deployment)
    made["kind"] = "StatefulSet"
    made["spec"] |= {"podManagementPolicy": "Parallel", "updateStrategy": made["spec"].pop("strategy")}
    return made


def bystander(consumer: dict[str, Any]) -> dict[str, Any]:
    """The Deployment ``consumer`` again, without replicas yet, whose pods start alike but never join the group."""
    twin = copy.deepcopy(consumer)
    twin["metadata"] = {"name": "bystander", "labels": {"app": "bystander"}}
    twin["spec"]["replicas"] = 0
    twin["spec"]["selector"]["matchLabels"] = {"app": "bystander"}
    twin["spec"]["template"]["metadata"]["labels"] = {"app": "bystander"}
    twin["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "JOIN", "value": "off"})
    return twin
