"""Records built from just the rows a test is about."""

import json

import pandas as pd

from lab.record import seal
from lab.record.store import Record, write_json

from .conftest import deployment, report

SCALED = {"kind": "ScaledObject", "spec": {"triggers": [{"type": "kafka", "metadata": {"lagThreshold": "100"}}]}}
COLUMNS = {
    "transitions": ["t", "kind", "name", "event", "object"],
    "group_events": ["t", "mono", "pod", "event", "partitions", "owned", "seconds", "created", "detail"],
    "samples": ["t", "metric", "pod", "labels", "value"],
    "receipts": ["pod", "partition", "first", "last", "count", "checksum", "start", "end"],
    "rates": ["bin_s", "t", "series", "pod", "messages"],
}


def record(folder, *, inputs=None, times=None, steps=(), **tables):
    """A record with the tables that are given, each as its rows; the others are absent."""
    given = {"partitions": 4, "policy": SCALED, "scale": {"time": 1}} | (inputs or {})
    spans = {"settling": 0, "driving": 0, "ended": 100} if times is None else times
    content = {"id": "built", "inputs": given, "times": spans, "steps": list(steps)}
    write_json(folder / "trial.json", content | {"offsets": {"0": {"end": 0, "committed": 0}}})
    for name, rows in tables.items():
        pd.DataFrame(rows, columns=COLUMNS[name]).to_parquet(folder / f"{name}.parquet")
    return sealed(folder)


def sealed(folder, **more):
    """The record in ``folder`` as a trial that went to its end leaves it: with ``more`` in trial.json, and checksums."""
    end = {"ended": "complete", "missing": {}} | more | {"files": seal.checksums(folder)}
    write_json(folder / "trial.json", Record(folder).trial | end)
    return Record(folder)


def receipt(pod, start, end, count, partition=0):
    """``count`` messages done from ``start`` to ``end``."""
    return {"pod": pod, "partition": partition, "count": count, "start": float(start), "end": float(end)}


def assigned(t, pod, *partitions, owned=None):
    """A member's report of what it was assigned."""
    return report(t, pod, "assigned", partitions=list(partitions), owned=len(partitions) if owned is None else owned)


def given_up(t, pod, *partitions, event="revoked"):
    """A member's report of what it gave up, owning nothing after."""
    return report(t, pod, event, partitions=list(partitions), owned=0)


def sample(t, metric, value, pod="", **labels):
    """A Prometheus sample."""
    return {"t": float(t), "metric": metric, "pod": pod, "labels": json.dumps(labels), "value": float(value)}


def lags(curve):
    """Samples of the group's lag, from {t: messages}."""
    return [sample(t, "kafka_consumergroup_lag_sum", value) for t, value in curve.items()]


def pod(t, name, event="MODIFIED", ready=True, leaving=False):
    """A watch event of the consumer pod ``name``."""
    metadata = {"name": name, "labels": {"app": "consumer"}} | ({"deletionTimestamp": "x"} if leaving else {})
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    item = {"metadata": metadata, "status": status}
    return {"t": float(t), "kind": "Pod", "name": name, "event": event, "object": json.dumps(item)}


def replicas(*rows):
    """Watch events of the Deployment, from (t, desired, ready)."""
    return [deployment(float(t), desired, ready) for t, desired, ready in rows]


def profile(start, duration, *steps):
    """The producer's reports and the inputs of a profile of (at, phase) that began at ``start``."""
    content = {"steps": [{"at": at, "rate": 1, "phase": phase} for at, phase in steps], "duration": duration}
    told = [report(start, "producer", "profile", start=start)]
    told += [report(start + at, "producer", "phase", phase=phase, at=start + at) for at, phase in steps]
    return {"profile": content}, told
