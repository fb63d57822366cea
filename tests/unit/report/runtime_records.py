"""Made-up records of the same trials on two runtimes: a 10x step under an autoscaler, and decreed steps at saturation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

from lab.record.store import Record, write_json
from tests.unit.measure import built, whole
from tests.unit.measure.built import assigned, given_up, lags, receipt, replicas, sample
from tests.unit.measure.conftest import report

ZERO = 1_700_000_000.0
SPIKE, RELIEF, END = ZERO + 10, ZERO + 40, ZERO + 90
VERSIONS = {"kubernetes": "v1.36.4", "keda": "2.21.0", "kafka": "4.3.1", "python": "3.11.2"}
WORKLOAD = {"balancer": "cooperative-sticky", "wake": "on", "concurrency": 6, "process_ms": "2-10"}
SCALED = whole.scaled(minReplicaCount=2)
DECREED = whole.decreed(2, 3, 2)
SEQUENCE = (2, 4, 8, 4, 2)


def _inputs(runtime: str, profile: str, policy: str, content: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "profile_name": profile,
        "policy_name": policy,
        "policy": content,
        "workload": WORKLOAD | others.pop("workload", {}),
        "seed": 1,
        "runtime": runtime,
        "partitions": 8,
        "repetition": 1,
        "scale": {"name": "quick", "time": 1, "rate": 1},
    } | others


def _finish(record: Record, identity: str, **others: Any) -> Record:
    """The record with what a trial adds at its end."""
    return built.sealed(record.folder, **({"id": identity, "scale": "quick", "versions": VERSIONS} | others))


def _pod(t: float, name: str, event: str = "MODIFIED", *, ready: bool = True) -> dict[str, Any]:
    row = built.pod(t, name, event, ready)
    item = json.loads(row["object"])
    item["metadata"]["creationTimestamp"] = datetime.fromtimestamp(int(t), UTC).isoformat()
    return row | {"object": json.dumps(item)}


def spike(
    results: Path,
    runtime: str,
    *,
    slow: float = 1.0,
    sequence: Sequence[int] = SEQUENCE,
    doubled: int = 0,
    repetition: int = 1,
    without: Sequence[str] = (),
    ended: str = "complete",
    versions: Mapping[str, str] = VERSIONS,
    **others: Any,
) -> Record:
    """A step that ``sequence`` answers; pods start ``slow`` times as slowly. The tables ``without`` are absent."""
    identity = f"step-10x-lag-{runtime}-{repetition}-{crc32(json.dumps(others, sort_keys=True).encode()):08x}"
    inputs, told = built.profile(ZERO, 90, (0, "baseline"), (10, "spike"), (40, "drain"))
    moves = [(ZERO, sequence[0], sequence[0])]
    pods = [_pod(ZERO, f"old-{n}", "ADDED") for n in range(sequence[0])]
    events = [*told, *(assigned(ZERO + 1, f"old-{n}", n) for n in range(sequence[0]))]
    receipts = [receipt(f"old-{n}", ZERO + 2, END - 5, 8_800) for n in range(sequence[0])]
    for place, (before, after) in enumerate(pairwise(sequence)):
        at = SPIKE + 0.8 + 0.1 * slow + place * 8 + (25 if after < before else 0)
        moves += [(at, after, before), (at + 1.5 * slow, after, after)]
        for n in range(before, after):
            name, work = f"new-{place}-{n}", at + (1.9 + 0.1 * (n - before)) * slow
            pods += [_pod(at + 0.1, name, "ADDED", ready=False), _pod(at + 1.5 * slow, name)]
            events += [
                report(at + 0.4 * slow, name, "started", created=at + 0.2 * slow),
                report(at + 1.2 * slow, name, "subscribed"),
                assigned(work - 0.2, name, n % 8),
            ]
            receipts.append(receipt(name, work - 0.1, work, 100))
            receipts.append(receipt(name, work, END - 10, int(100 * (END - 10 - work))))
    events.append(report(END, "producer", "produced", acked=60_000, unknown=0, failed=0))
    curve = {ZERO + t * 0.5: _lag(t * 0.5, slow) for t in range(180)}
    rates = [
        (0.2, ZERO + n * 0.2, series, "", (2_000 if 10 <= n * 0.2 < 40 + late else 200) * 0.2)
        for n in range(450)
        for series, late in (("consumed", 4 * slow), ("produced", 0.0))
    ]
    rates += [(1, ZERO + n, "consumed", "", 2_000.0) for n in range(10, 44)]
    tables = {
        "transitions": [*replicas(*moves), *pods],
        "group_events": sorted(events, key=lambda row: row["t"]),
        "samples": lags(curve),
        "receipts": receipts,
        "rates": rates,
    }
    for name in without:
        tables.pop(name, None)
    folder = results / "records" / identity
    folder.mkdir(parents=True, exist_ok=True)
    given = _inputs(runtime, "step-10x", "lag", SCALED, repetition=repetition, **others) | inputs
    times = {"settling": ZERO, "driving": ZERO + 1, "ended": END}
    record = built.record(folder, inputs=given, times=times, **tables)
    if "reconciliation" not in without:
        counts = {
            "produced": 60_000,
            "processed": 60_000,
            "lost_messages": 0,
            "unseen_messages": 0,
            "doubled_messages": doubled,
        }
        write_json(folder / "reconciliation.json", whole.reconciliation(**counts))
    return _finish(record, identity, ended=ended, versions=dict(versions))


def _lag(t: float, slow: float) -> float:
    """Lag that builds from 10 s on, the more the slower the pods, and is gone soon after the spike."""
    peak = 3_000 * slow
    return peak * min(1.0, max(0.0, (t - 10) / 6)) * (1.0 if t < 40 else max(0.0, 1 - (t - 40) / (6 * slow)))


def stepped(
    results: Path, runtime: str, *, depth: float = 0.1, balancer: str = "cooperative-sticky", control: bool = False
) -> Record:
    """Decreed steps up and down, each without a message for about ``depth`` s; a ``control`` has control steps alone."""
    policy = "bystanders" if control else "up-and-down"
    identity = f"saturate-{policy}-{balancer}-{runtime}"
    folder = results / "records" / identity
    folder.mkdir(parents=True, exist_ok=True)
    inputs, told = built.profile(ZERO, 5, (0, "fill"))
    steps, receipts, moves = [], [], [(ZERO, 2, 2)]
    events = [*told, assigned(ZERO + 1, "a", 0, 1), assigned(ZERO + 1, "b", 2, 3)]
    samples = [sample(ZERO + t, "kafka_consumergroup_lag", 900, partition="0") for t in range(60)]
    samples += lags({ZERO + t: 100_000 - 900 * t for t in range(60)})
    rates = []
    begin = ZERO + 5
    for n in range(8):
        at, kind = ZERO + 10 + 6 * n, "up" if n % 2 == 0 else "down"
        before, after = (2, 3) if kind == "up" else (3, 2)
        if control:
            kind, after = "control", before
        own = depth * (1 + 0.1 * n)
        hole = (at + 1, at + 1 + own)
        receipts += [receipt("a", begin, hole[0], int(1_000 * (hole[0] - begin)))]
        begin = hole[1]
        events += [given_up(at + 0.9, "b", 3), assigned(at + 1 + own, "b", 3)]
        steps.append({"t": at, "kind": kind, "before": before, "after": after, "settled": at + 2, "until": at + 6})
        moves.append((at, after, after))
    receipts.append(receipt("a", begin, ZERO + 70, int(1_000 * (ZERO + 70 - begin))))
    rates = [(0.2, ZERO + n * 0.2, "consumed", "", 200.0) for n in range(25, 350)]
    given = _inputs(runtime, "saturate", policy, DECREED, workload={"balancer": balancer}) | inputs
    times = {"settling": ZERO, "driving": ZERO + 1, "stepping": ZERO + 10, "ended": ZERO + 60}
    record = built.record(
        folder,
        inputs=given,
        times=times,
        steps=steps,
        transitions=[*replicas(*moves), _pod(ZERO, "a", "ADDED"), _pod(ZERO, "b", "ADDED")],
        group_events=sorted(events, key=lambda row: row["t"]),
        samples=samples,
        receipts=receipts,
        rates=rates,
    )
    return _finish(record, identity)


def both(folder: Path) -> tuple[Path, Path]:
    """Two folders of results: slower pods on kind, one trial with other decisions, three of decreed steps, a control."""
    sides = folder / "binary", folder / "kind"
    for results, runtime, slow in zip(sides, ("binary", "kind"), (1.0, 1.4), strict=True):
        versions = VERSIONS | ({} if runtime == "binary" else {"containerd": "2.1.3"})
        for repetition in (1, 2):
            spike(results, runtime, slow=slow + 0.05 * repetition, repetition=repetition, versions=versions)
        sequence = SEQUENCE if runtime == "binary" else (2, 4, 6, 8, 4, 2)
        spike(results, runtime, slow=slow * 1.2, sequence=sequence, workload={"wake": "off"}, versions=versions)
        for balancer, depth in (("range", 0.3), ("cooperative-sticky", 0.08), ("consumer", 0.17)):
            stepped(results, runtime, depth=depth * slow, balancer=balancer)
        stepped(results, runtime, depth=0.03 * slow, control=True)
    spike(sides[0], "binary", seed=2)
    spike(sides[1], "kind", seed=3, ended="interrupted")
    return sides


if __name__ == "__main__":
    both(Path(sys.argv[1]))
