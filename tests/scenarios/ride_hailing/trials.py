"""What the trials of scenario ride-hailing run: its author's ScaledObjects (manifests/ridehailing) and consumers."""

from __future__ import annotations

from pathlib import Path

from lab import paths
from lab.spec.workload import Workload

MANIFESTS = paths.MANIFESTS / "ridehailing"
# 50 ms a message and 200 messages/s a pod: ten at a time.
TRIPS = Workload(process_ms="50", concurrency=10, cpu_request_m=50)
# The same for a lagThreshold divided like the time: what is not committed yet weighs 30 times more, so it is committed sooner.
TRIPS_COMMITTED_SOONER = Workload(process_ms="50", concurrency=10, cpu_request_m=50, commit_interval_ms=50)
# The same for a tenth of the traffic: one at a time.
TENTH_OF_TRIPS = Workload(process_ms="50", concurrency=1, cpu_request_m=50)
# 50 messages/s a pod: the batch outlasts the start of ten pods.
FARES = Workload(process_ms="200", concurrency=10, cpu_request_m=50)


def policy(name: str) -> Path:
    """A ScaledObject as its author deploys it, which the trial adopts."""
    return MANIFESTS / f"{name}.yaml"
