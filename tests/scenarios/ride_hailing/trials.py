"""What the trials of scenario ride-hailing run: its author's ScaledObjects (manifests/ridehailing) and consumers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import paths
from lab.inputs.inputs import REPLAYED
from lab.inputs.workload import Workload
from tests.scenarios.ride_hailing import claims

MANIFESTS = paths.MANIFESTS / "ridehailing"
# 50 ms a message and 200 messages/s a pod: ten at a time. With Kafka's own 5 s between commits such a pod would have 1,000
# messages uncommitted, which is all that the text's lagThreshold lets it have: so it commits sooner.
TRIPS = Workload(process_ms="50", concurrency=10, cpu_request_m=50, commit_interval_ms=750)
# The same for a tenth of the traffic: one at a time.
TENTH_OF_TRIPS = Workload(process_ms="50", concurrency=1, cpu_request_m=50)
# The same, and the group emits what it has processed: the pipeline reads that. Two sides of a duet request half as much each.
CHAIN = Workload(process_ms="50", concurrency=1, cpu_request_m=25, emit="on")
# 50 messages/s a pod: the batch outlasts the start of ten pods.
FARES = Workload(process_ms="200", concurrency=10, cpu_request_m=50)


def policy(name: str) -> Path:
    """A ScaledObject as its author deploys it, which the trial adopts."""
    return MANIFESTS / f"{name}.yaml"


# Friday evening on the text's ScaledObject, whose lagThreshold the scale divides like the time.
EVENING: dict[str, Any] = {"profile": "trips", "policy": policy("trip-analytics"), "workload": TRIPS}
EVENING |= {"partitions": claims.PARTITIONS}
BEFORE: dict[str, Any] = EVENING | {"policy": "two-pods", "until": REPLAYED}  # KEDA
# The same evening for the group whose events the pipeline reads.
PIPELINE = EVENING | {"workload": CHAIN, "until": REPLAYED, "beside": ("ridehailing/pipeline",), "driver": "ridehailing/rides"}
