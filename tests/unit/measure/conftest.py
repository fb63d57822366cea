"""A small record, written by hand: every number a measure should find is known."""

import pytest

from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.record.trial import Offsets

from . import built
from .built import deployment, pod, receipt, report, sample

SPIKE, END = 1000.0, 1020.0


TRANSITIONS = [
    deployment(980, 4, 4),
    deployment(1002, 24, 4),
    pod(1002.5, "new", "ADDED", ready=False),
    pod(1005, "new"),
    deployment(1010, 24, 24),
    deployment(1060, 4, 24),
    deployment(1070, 4, 4),
]
REPORTS = [
    report(979, "producer", "profile", start=980.0, total=100),
    report(980, "producer", "phase", phase="baseline", at=980.0),
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
    samples = built.lags(lag) + [sample(t, "kafka_consumergroup_lag", messages, partition="0") for t, messages in lag.items()]
    return built.record(
        folder,
        inputs=chosen,
        id=chosen.id,
        offsets={0: Offsets(100, 98)},
        times={"settling": 970, "driving": 975, "ended": 1130},
        finished=1140.0,
        transitions=transitions,
        group_events=reports,
        samples=samples,
        receipts=[receipt("new", 1006.2, 1006.5, 100) | {"first": 0, "last": 99, "checksum": 1}],
    )


@pytest.fixture
def record(tmp_path):
    """The record as written above."""
    return build(tmp_path, TRANSITIONS, REPORTS)
