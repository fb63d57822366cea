"""A small record, written by hand: every number a measure should find is known."""

import json

import pandas as pd
import pytest

from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.record.store import Record
from lab.record.trial import Offsets

from . import whole

SPIKE, END = 1000.0, 1020.0


def deployment(t, desired, ready):
    """A watch event of the consumer Deployment, whose pods exist at once."""
    item = {"spec": {"replicas": desired}, "status": {"replicas": desired, "readyReplicas": ready}}
    return {"t": t, "kind": "Deployment", "name": "consumer", "event": "MODIFIED", "object": json.dumps(item)}


def pod(t, event, ready):
    """A watch event of the new pod."""
    created = "1970-01-01T00:16:42Z"  # 1002
    item = {
        "metadata": {"name": "new", "labels": {"app": "consumer"}, "creationTimestamp": created},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }
    return {"t": t, "kind": "Pod", "name": "new", "event": event, "object": json.dumps(item)}


def report(t, who, event, **fields):
    """A reported event; fields that are columns stay columns."""
    columns = {"partitions": None, "owned": None, "seconds": None, "created": None}
    detail = {key: value for key, value in fields.items() if key not in columns}
    kept = columns | {key: value for key, value in fields.items() if key in columns}
    return {"t": t, "mono": t, "pod": who, "event": event, **kept, "detail": json.dumps(detail)}


TRANSITIONS = [
    deployment(980, 4, 4),
    deployment(1002, 24, 4),
    pod(1002.5, "ADDED", False),
    pod(1005, "MODIFIED", True),
    deployment(1010, 24, 24),
    deployment(1060, 4, 24),
    deployment(1070, 4, 4),
]
REPORTS = [
    report(979, "producer", "profile", start=980.0, total=100),
    report(SPIKE, "producer", "phase", phase="spike", at=SPIKE),
    report(1003.5, "new", "started", created=1003.0),
    report(1004, "new", "subscribed"),
    report(END, "producer", "phase", phase="drain", at=END),
    report(1006, "new", "assigned", partitions=[0], owned=1, seconds=0.1),
    report(1130, "producer", "produced", sent=100, acked=100, unknown=0, failed=0),
]
LAG = {990: 500, 1000: 600, 1001: 12_600, 1020: 150_000, 1030: 90_000, 1031: 90_900, 1050: 40_000, 1060: 1_500, 1070: 400}


def build(folder, transitions, reports, lag=LAG):
    """Write the tables as a trial would."""
    chosen = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    ended = {"times": {"settling": 970, "driving": 975, "ended": 1130}, "finished": 1140.0}
    whole.trial(chosen, id=chosen.id, offsets={0: Offsets(100, 98)}, **ended).write(folder)
    pd.DataFrame(transitions).to_parquet(folder / "transitions.parquet")
    pd.DataFrame(reports).to_parquet(folder / "group_events.parquet")
    labels = json.dumps({"partition": "0"}, sort_keys=True)
    samples = [{"t": t, "metric": "kafka_consumergroup_lag_sum", "pod": "", "labels": "{}", "value": v} for t, v in lag.items()]
    samples += [{"t": t, "metric": "kafka_consumergroup_lag", "pod": "", "labels": labels, "value": v} for t, v in lag.items()]
    pd.DataFrame(samples).astype({"t": float, "value": float}).to_parquet(folder / "samples.parquet")
    receipts = [
        {"pod": "new", "partition": 0, "first": 0, "last": 99, "count": 100, "checksum": 1, "start": 1006.2, "end": 1006.5}
    ]
    pd.DataFrame(receipts).to_parquet(folder / "receipts.parquet")
    return Record(folder)


@pytest.fixture
def record(tmp_path):
    """The record as written above."""
    return build(tmp_path, TRANSITIONS, REPORTS)
