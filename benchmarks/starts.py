"""What a pod's start costs: 20 and 48 consumers on a whole cluster, forked from the zygote against executed.

Both kinds run on the same node in turns. ``python -B -m`` is no command that the zygote takes, and it does the same.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from kubernetes import client

from benchmarks.simulate import Show
from lab import clock, paths, yamlfile
from lab.cluster import apply, binary
from lab.host import processes
from lab.inputs import scale
from lab.inputs.workload import Workload
from lab.kafka import topics
from lab.kubelet import forking
from lab.trial.addresses import login_objects
from lab.trial.listen import Listener
from lab.wait import until

FEW, MANY = 20, 48
ROUNDS = 5
DEADLINE_S = 120.0
COMMANDS = {"forked": ["python", "-m", "lab.programs.consumer"], "executed": ["python", "-B", "-m", "lab.programs.consumer"]}


@dataclass(frozen=True)
class Start:
    """A step from 0 to some pods: seconds from the step until the last has subscribed, and until the last owns a partition.

    ``own_s`` is from its process's start until a pod has subscribed, median. ``cpu_s`` is the pods' and the zygote's CPU until
    all have subscribed, ``busy_s`` the whole machine's. ``memory_mb`` is their PSS at the end, with the zygote's.
    """

    subscribed_s: float
    owning_s: float
    own_s: float
    cpu_s: float
    busy_s: float
    memory_mb: float


def measure(show: Show) -> None:
    """Both kinds in turns, the first one first in every other round, on one cluster."""
    cluster = binary.up(scale.load("quick"))
    try:
        for count, rounds in ((FEW, ROUNDS), (MANY, 2)):
            found: dict[str, list[Start]] = {kind: [] for kind in COMMANDS}
            for number in range(rounds):
                for kind in list(COMMANDS)[:: 1 if number % 2 else -1]:
                    found[kind].append(start(cluster, kind, count, MANY, number))
            _print(show, count, found)
    finally:
        cluster.down()


def _print(show: Show, count: int, found: dict[str, list[Start]]) -> None:
    rows = (
        ("created to subscribed, the last", "s", lambda one: one.subscribed_s),
        ("created to a partition, the last", "s", lambda one: one.owning_s),
        ("process start to subscribed, the median", "s", lambda one: one.own_s),
        ("CPU of the pods until all have subscribed", "s", lambda one: one.cpu_s),
        ("CPU of the machine until all have subscribed", "s", lambda one: one.busy_s),
        ("memory of all, PSS", "MB", lambda one: one.memory_mb),
    )
    figure: Callable[[Start], float]
    for name, unit, figure in rows:
        values = {kind: [figure(one) for one in starts] for kind, starts in found.items()}
        show(f"{count} pods, {name}", median(values["forked"]), median(values["executed"]), unit, "executed pods")
        print("; ".join(f"{kind}: {', '.join(f'{one:.2f}' for one in sorted(them))}" for kind, them in values.items()))


def start(cluster: binary.Binary, kind: str, count: int, partitions: int, number: int) -> Start:
    """Scale a new Deployment of this ``kind`` from 0 to ``count`` on a topic of ``partitions``, look, and take it down."""
    zygote = processes.remembered(cluster.run, forking.NAME)[0]
    with _deployment(cluster, f"{kind}-{count}-{number}", COMMANDS[kind], partitions) as (reports, step):
        before, worked = _cpu([zygote]), busy()
        begun = clock.now()
        step(count)
        until(lambda: len(_times(reports, "subscribed")) == count, DEADLINE_S, "the pods' subscribing", cluster.check, 0.02)
        pods = processes.remembered(cluster.run, "pod/")
        cpu, worked = _cpu([*pods, zygote]) - before, busy() - worked
        until(lambda: len(_times(reports, "assigned")) == count, DEADLINE_S, "a partition for each", cluster.check)
        assert len(pods) == count
        made = {row["pod"]: float(row["created"]) for row in _rows(reports) if row["event"] == "started"}
        subscribed = _times(reports, "subscribed")
        return Start(
            subscribed_s=max(subscribed.values()) - begun,
            owning_s=max(_times(reports, "assigned").values()) - begun,
            own_s=median(subscribed[pod] - made[pod] for pod in made),
            cpu_s=cpu,
            busy_s=worked,
            memory_mb=sum(one.memory_full_info().pss for one in [*pods, *([zygote] if kind == "forked" else [])]) / 1e6,
        )


def _rows(reports: Path) -> list[dict[str, Any]]:
    """The reports so far; a last line that is being written is left for the next time."""
    return [json.loads(line) for line in reports.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _times(reports: Path, event: str) -> dict[str, float]:
    """When each pod first said ``event`` (of ``assigned``, with a partition), epoch seconds."""
    found: dict[str, float] = {}
    for row in _rows(reports):
        if row["event"] == event and row.get("owned", 1):
            found.setdefault(row["pod"], float(row["t"]))
    return found


def _cpu(of: list[psutil.Process]) -> float:
    """Seconds, with those of ended children: the zygote has one for each fork."""
    return sum(sum(one.cpu_times()[:4]) for one in of)


def busy() -> float:
    """CPU seconds that this machine's cores have worked."""
    times = psutil.cpu_times()
    return float(times.user + times.system + times.nice + times.irq + times.softirq)


@contextmanager
def _deployment(
    cluster: binary.Binary, name: str, command: list[str], partitions: int
) -> Iterator[tuple[Path, Callable[[int], None]]]:
    """A consumer Deployment without pods in a namespace of its own: the file of its reports, and what scales it.

    No pod is left after.
    """
    api, run = cluster.api(), f"starts-{name}"
    names = {
        "BOOTSTRAP_SERVERS": cluster.pod_bootstrap,
        "TOPIC": f"events-{run}",
        "GROUP": f"enrich-{run}",
        "RECEIPTS_TOPIC": f"receipts-{run}",
        "REPORTS_TOPIC": f"reports-{run}",
    }
    wanted = {names["TOPIC"]: partitions, names["RECEIPTS_TOPIC"]: 1, names["REPORTS_TOPIC"]: 1}
    topics.create(cluster.bootstrap, wanted, cluster.kafka_settings)
    consumer: dict[str, Any] = copy.deepcopy(yamlfile.read(paths.MANIFESTS / "consumer" / "deployment.yaml"))
    consumer["spec"]["replicas"] = 0
    container = consumer["spec"]["template"]["spec"]["containers"][0]
    container["command"] = command
    container["resources"]["requests"]["cpu"] = "1m"  # the scheduler is to place more pods than the machine has cores for
    data = names | Workload().environment(scale.load("quick"))
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trial"}, "data": data}
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run}}])
    apply.objects(api, [*login_objects(cluster.kafka_settings, cluster.pod_bootstrap), settings, consumer], run)
    apps = client.AppsV1Api(api)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reports.jsonl"
        reports = Listener(cluster.bootstrap, [names["REPORTS_TOPIC"]], file, lambda: None, cluster.kafka_settings)

        def step(count: int) -> None:
            apps.patch_namespaced_deployment_scale("consumer", run, {"spec": {"replicas": count}})

        try:
            yield file, step
        finally:
            step(0)
            reports.close()
            until(lambda: not processes.remembered(cluster.run, "pod/"), DEADLINE_S, "the pods' end", cluster.check)
