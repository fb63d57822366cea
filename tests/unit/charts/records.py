"""A made-up record of a 10x step under an autoscaler, with all that is drawn of one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab.record.store import Record, write_json
from tests.unit.measure import built, whole
from tests.unit.measure.built import assigned, lags, receipt, replicas
from tests.unit.measure.conftest import report

ZERO = 1_700_000_000.0
SPIKE, END = ZERO + 10, ZERO + 90
SEQUENCE = (2, 4, 8, 4, 2)
VERSIONS = {"kubernetes": "v1.36.4", "keda": "2.21.0", "kafka": "4.3.1", "python": "3.11.2"}
INPUTS = {
    "profile_name": "step-10x",
    "policy_name": "lag",
    "policy": whole.scaled(minReplicaCount=2),
    "workload": {"balancer": "cooperative-sticky", "wake": "on", "concurrency": 6, "process_ms": "2-10"},
    "partitions": 8,
    "scale": {"name": "quick", "time": 1, "rate": 1},
}


def _pod(t: float, name: str, event: str = "MODIFIED", *, ready: bool = True) -> dict[str, Any]:
    row = built.pod(t, name, event, ready)
    item = json.loads(row["object"])
    item["metadata"]["creationTimestamp"] = datetime.fromtimestamp(int(t), UTC).isoformat()
    return row | {"object": json.dumps(item)}


def spike(results: Path) -> Record:
    """The record in ``results`` of a step that SEQUENCE answers: lag builds from 10 s on and is gone soon after the spike."""
    identity = "step-10x-lag-00000000"
    inputs, told = built.profile(ZERO, 90, (0, "baseline"), (10, "spike"), (40, "drain"))
    moves = [(ZERO, SEQUENCE[0], SEQUENCE[0])]
    pods = [_pod(ZERO, f"old-{n}", "ADDED") for n in range(SEQUENCE[0])]
    events = [*told, *(assigned(ZERO + 1, f"old-{n}", n) for n in range(SEQUENCE[0]))]
    receipts = [receipt(f"old-{n}", ZERO + 2, END - 5, 8_800) for n in range(SEQUENCE[0])]
    for place, (before, after) in enumerate(pairwise(SEQUENCE)):
        at = SPIKE + 0.9 + place * 8 + (25 if after < before else 0)
        moves += [(at, after, before), (at + 1.5, after, after)]
        for n in range(before, after):
            name, work = f"new-{place}-{n}", at + 1.9 + 0.1 * (n - before)
            pods += [_pod(at + 0.1, name, "ADDED", ready=False), _pod(at + 1.5, name)]
            events += [
                report(at + 0.4, name, "started", created=at + 0.2),
                report(at + 1.2, name, "subscribed"),
                assigned(work - 0.2, name, n % 8),
            ]
            receipts += [receipt(name, work - 0.1, work, 100), receipt(name, work, END - 10, int(100 * (END - 10 - work)))]
    events.append(report(END, "producer", "produced", sent=60_000, acked=60_000, unknown=0, failed=0))
    rates = [
        (0.2, ZERO + n * 0.2, series, "", (2_000 if 10 <= n * 0.2 < 40 + late else 200) * 0.2)
        for n in range(450)
        for series, late in (("consumed", 4), ("produced", 0))
    ]
    folder = results / "records" / identity
    folder.mkdir(parents=True, exist_ok=True)
    built.record(
        folder,
        inputs=INPUTS | inputs,
        times={"settling": ZERO, "driving": ZERO + 1, "ended": END},
        transitions=[*replicas(*moves), *pods],
        group_events=sorted(events, key=lambda row: row["t"]),
        samples=lags({ZERO + t * 0.5: _lag(t * 0.5) for t in range(180)}),
        receipts=receipts,
        rates=rates,
    )
    write_json(folder / "reconciliation.json", whole.reconciliation(produced=60_000, processed=60_000))
    return built.sealed(folder, id=identity, scale="quick", versions=VERSIONS, ended="complete")


def _lag(t: float) -> float:
    return 3_000 * min(1.0, max(0.0, (t - 10) / 6)) * (1.0 if t < 40 else max(0.0, 1 - (t - 40) / 6))
