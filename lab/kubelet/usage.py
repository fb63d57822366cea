"""CPU and memory of the node and its containers, in the words of a kubelet's /metrics/resource."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from lab.kubelet.process import sessions

# metrics-server drops a pod whose CPU is exactly 0, as a young process's is: the kernel's clock ticks at 10 ms.
LEAST_CPU_S = 0.001


@dataclass(frozen=True)
class Usage:
    """A container's processes: CPU since the start, resident memory now; pages shared with the zygote count in each."""

    namespace: str
    pod: str
    container: str
    started_s: float
    cpu_s: float
    memory_bytes: int


def of_processes(pids: Iterable[int]) -> tuple[float, int]:
    """The CPU seconds, with those of ended children, and the resident bytes of some processes together."""
    cpu, memory = 0.0, 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            with process.oneshot():
                times = process.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
                memory += process.memory_info().rss
    return cpu, memory


def measured(running: Sequence[tuple[str, str, str, float, int]]) -> list[Usage]:
    """The usage of each running container, given as (namespace, pod, container, start, pid)."""
    members = sessions()
    found = []
    for namespace, pod, container, started_s, pid in running:
        cpu, memory = of_processes(members.get(pid, ()))
        found.append(Usage(namespace, pod, container, started_s, max(cpu, LEAST_CPU_S), memory))
    return found


def node() -> tuple[float, int]:
    """The CPU seconds that this machine has spent, and the bytes of its memory in use."""
    times = psutil.cpu_times()._asdict()
    # guest time is part of user time already
    cpu = sum(value for key, value in times.items() if key not in ("idle", "iowait", "guest", "guest_nice"))
    memory = psutil.virtual_memory()
    return cpu, memory.total - memory.available


def exposition(node_cpu_s: float, node_memory_bytes: int, usages: Sequence[Usage], now_ms: int | None = None) -> str:
    """The Prometheus text; every sample but the start times has its time in milliseconds. Pure when ``now_ms`` is given."""
    at = int(time.time() * 1000) if now_ms is None else now_ms
    pods: dict[tuple[str, str], tuple[float, int]] = {}
    for usage in usages:
        cpu, memory = pods.get((usage.namespace, usage.pod), (0.0, 0))
        pods[usage.namespace, usage.pod] = (cpu + usage.cpu_s, memory + usage.memory_bytes)

    each = [({"container": one.container, "namespace": one.namespace, "pod": one.pod}, one) for one in usages]
    whole = [({"namespace": namespace, "pod": pod}, used) for (namespace, pod), used in pods.items()]
    lines = [
        *_metric("container_cpu_usage_seconds_total", "counter", [(labels, one.cpu_s, at) for labels, one in each]),
        *_metric("container_memory_working_set_bytes", "gauge", [(labels, one.memory_bytes, at) for labels, one in each]),
        *_metric("container_start_time_seconds", "gauge", [(labels, one.started_s, None) for labels, one in each]),
        *_metric("node_cpu_usage_seconds_total", "counter", [({}, node_cpu_s, at)]),
        *_metric("node_memory_working_set_bytes", "gauge", [({}, node_memory_bytes, at)]),
        *_metric("pod_cpu_usage_seconds_total", "counter", [(labels, cpu, at) for labels, (cpu, _) in whole]),
        *_metric("pod_memory_working_set_bytes", "gauge", [(labels, memory, at) for labels, (_, memory) in whole]),
        *_metric("resource_scrape_error", "gauge", [({}, 0, None)]),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, samples: Iterable[tuple[Mapping[str, str], float, int | None]]) -> Iterable[str]:
    rows = []
    for labels, value, at in samples:
        shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
        rows.append(f"{name}{{{shown}}} {value!r}" if shown else f"{name} {value!r}")
        if at is not None:
            rows[-1] += f" {at}"
    return [f"# TYPE {name} {kind}", *rows] if rows else []
