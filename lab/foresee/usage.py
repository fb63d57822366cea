"""The CPU and memory that the pods of a simulated group use, and metrics-server's samples of them. Times in s.

Each pod uses as much as the mean pod: it would change a decision only where some don't count, having just started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from lab.inputs.clients import DEMANDS, PYTHON
from lab.inputs.triggers.resource import CPU, MEMORY
from lab.inputs.workload import PARTITIONS, Workload
from lab.model import hpa

MIB = 2**20
# CPU of a message, s: in the consumer and in the producer (docs/decisions/21 and 22), and in the broker, which takes or
# gives it (an estimate of large fetches: 0.4 cores at 97,000 messages/s in and 74,000 out).
CONSUMED, PRODUCED, BROKERED = 3.2e-6, 5.4e-6, 2.3e-6
BASE_CORES = 0.5  # Kubernetes, KEDA, Prometheus and the recorder
SPARE = 0.8  # of a machine's cores: beyond it what is measured may be the queue for them
LIMIT_M = 1000.0  # millicores: a pod computes on one thread, and its limit is one core
LONG_AGO = -3600.0  # when the pods started that are there at 0 s: no period of a controller is as long


@dataclass(frozen=True)
class Footprint:
    """A pod's use: ``each_ms``, CPU of one message, ms; ``request_m``, what it requests, and ``at_work_m``, what it takes at
    any rate, millicores; ``held``, its memory, bytes, of which it requests none. With None its memory is not known: it counts
    as nothing of what is requested."""

    request_m: int
    each_ms: float
    at_work_m: float = DEMANDS[PYTHON].at_work * 1000
    held: int | None = DEMANDS[PYTHON].held

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """The footprint of a trial's pod: its ``burn`` of each message's cost, and what the lab's consumer itself takes."""
        own = DEMANDS[workload.client]
        each_ms = workload.cost.mean * workload.burn / 100 + CONSUMED * 1000
        return cls(workload.cpu_request_m, each_ms, own.at_work * 1000, own.held)

    @classmethod
    def of_theirs(cls, workload: Workload) -> Self:
        """The footprint of a user's own pod, as ``workload`` declares it: idle, it takes no CPU."""
        return cls(workload.cpu_request_m, workload.cost.mean * workload.burn / 100, at_work_m=0.0, held=None)

    def cpu_m(self, rate: float) -> float:
        """The CPU of a pod that processes ``rate`` messages/s, millicores."""
        return min(LIMIT_M, self.at_work_m + rate * self.each_ms)


UNKNOWN = Footprint(request_m=1, each_ms=0.0, at_work_m=0.0, held=None)  # of pods of which a rate is all that is said


def carried_rate(cores: int) -> float:
    """The most messages/s that a trial on so many ``cores`` produces and processes, with a pod for each partition."""
    held = BASE_CORES + PARTITIONS * DEMANDS[PYTHON].at_work
    return max(0.0, SPARE * cores - held) / (PRODUCED + 2 * BROKERED + CONSUMED)


class MetricsServer:
    """Metrics-server's last sample of one group. It takes one every ``every_s``, of the CPU since the one before."""

    def __init__(self, footprint: Footprint, every_s: float) -> None:
        self._footprint, self._every_s = footprint, every_s
        self._samples = 0
        self._served = 0.0
        self._at = LONG_AGO
        self._sample: dict[str, hpa.Usage] = {}

    @property
    def due(self) -> float:
        """The time of the next sample."""
        return self._samples * self._every_s

    def sample(self, now: float, served: float, pods: int) -> None:
        """Take the sample at ``now``, when ``pods`` pods have processed ``served`` messages since 0 s."""
        rate = (served - self._served) / self._every_s / pods if pods else 0.0
        self._samples, self._served, self._at = self._samples + 1, served, now
        milli = {CPU: round(self._footprint.cpu_m(rate)), MEMORY: (self._footprint.held or 0) * 1000}
        self._sample = {resource: hpa.Usage(value, now, self._every_s) for resource, value in milli.items()}

    def usage(self, resource: str, joined: Sequence[float]) -> dict[str, hpa.Usage]:
        """The last sample of ``resource`` for the pods that were there, which joined the group at the times ``joined``."""
        return {str(number): self._sample[resource] for number, at in enumerate(joined) if at <= self._at}

    def pods(self, joined: Sequence[float], wanted: int) -> list[hpa.Pod]:
        """The group's pods as the HPA sees them: ``wanted`` are asked for, and those that have not joined yet are pending."""
        requests = {CPU: self._footprint.request_m} | ({MEMORY: MIB} if self._footprint.held is None else {})
        times = enumerate(joined[:wanted])
        here = [hpa.Pod(str(number), started=at, ready_changed=at, requests=requests) for number, at in times]
        coming = range(len(here), wanted)
        return here + [hpa.Pod(str(number), "Pending", None, None, requests=requests) for number in coming]
