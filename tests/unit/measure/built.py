"""Records built from just the rows a test is about."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd

from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.record import trial
from lab.record.store import Record
from lab.record.trial import Step
from lab.record.views import Views

from . import whole

COLUMNS = {
    "transitions": ["t", "kind", "name", "event", "object"],
    "group_events": ["t", "mono", "pod", "event", "partitions", "owned", "seconds", "created", "detail"],
    "samples": ["t", "metric", "pod", "labels", "value"],
    "receipts": ["pod", "partition", "first", "last", "count", "checksum", "start", "end"],
    "rates": ["bin_s", "t", "series", "pod", "messages"],
}


class Shown(SimpleNamespace):
    """A record that shows what it is given, and its replicas at a time."""

    inputs = SimpleNamespace(workload=Workload())
    wanted_at, ready_at, _replicas_at = Views.wanted_at, Views.ready_at, Views._replicas_at


def record(folder, *, inputs=None, times=None, steps=(), **more):
    """A record with the tables that are given, each as its rows, and what else is given in its trial.json.

    Other tables are absent; ``inputs`` are whole, or those that matter.
    """
    folder.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    tables = {name: more.pop(name) for name in COLUMNS if name in more}
    spans = {} if times is None else {"times": times}
    chosen = inputs if isinstance(inputs, Inputs) else whole.inputs(**(inputs or {}))
    made = whole.trial(chosen, steps=tuple(Step(**row) for row in steps), **spans, **more)
    for name, rows in tables.items():
        pd.DataFrame(rows, columns=COLUMNS[name]).to_parquet(folder / f"{name}.parquet")
    made.sealed(folder).write(folder)
    return Record(folder)


def sealed(folder, **more):
    """The record in ``folder`` with ``more`` in its trial.json, and the checksums of what is there now."""
    replace(trial.read(folder), **more).sealed(folder).write(folder)
    return Record(folder)


def deployment(t, desired, ready):
    """A watch event of the consumer Deployment, whose pods exist at once."""
    item = {"spec": {"replicas": desired}, "status": {"replicas": desired, "readyReplicas": ready}}
    return {"t": t, "kind": "Deployment", "name": "consumer", "event": "MODIFIED", "object": json.dumps(item)}


def report(t, who, event, **fields):
    """A reported event; fields that are columns stay columns."""
    columns = {"partitions": None, "owned": None, "seconds": None, "created": None}
    detail = {key: value for key, value in fields.items() if key not in columns}
    kept = columns | {key: value for key, value in fields.items() if key in columns}
    return {"t": t, "mono": t, "pod": who, "event": event, **kept, "detail": json.dumps(detail)}


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
