"""Predicted beside recorded: a record made of the simulator's own curve is met exactly, and a false one is not."""

from dataclasses import asdict

import numpy as np
import pytest

from lab import paths
from lab.errors import NoData
from lab.foresee.curve import Curve
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate
from lab.inputs import policy, scale, scaledobject
from lab.inputs.profile import Profile, Step
from lab.inputs.workload import Workload
from lab.measure import calibration, prediction
from lab.measure.calibration import Calibration
from lab.measure.prediction import compare
from lab.record.store import Record
from lab.record.trial import Deadlines

from .built import lags, record, replicas, sealed
from .conftest import report
from .whole import decreed

START = 100.0
TRAFFIC = Profile((Step(0, 180, "baseline"), Step(5, 1800, "spike"), Step(25, 180, "drain")), 40.0, zipf=0.7)
KNOWN = Calibration(Consumers(100.0, 3.0), 0.0, 0.0)
DEADLINES = Deadlines(settle_s=90, replay_s=100, end_s=200, ledger_s=300)


def inputs(**changes):
    """The inputs of a trial of lag-4500 at quick scale."""
    applied = policy.load(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml").compressed(scale.load("quick"))
    workload = asdict(Workload(process_ms="5-15", concurrency=1))
    given = {"profile": TRAFFIC.to_dict(), "policy": applied.content, "workload": workload, "seed": 1, "partitions": 24}
    return given | {"scale": asdict(scale.load("quick"))} | changes


QUEUE = inputs()["policy"]  # with a second trigger, of a scaler that is not known
QUEUE["spec"]["triggers"].append({"type": "external", "metadata": {"scalerAddress": "queue:6000"}})


def built(folder, monkeypatch, later=0.0, more=1.0):
    """A record in which happens what is predicted, ``later`` s later and with ``more`` times the lag."""
    monkeypatch.setattr(Record, "hpa_syncs", [])
    times = {"settling": 90, "driving": 95, "ended": START + 40}
    told = [report(START, "producer", "profile", start=START)]
    told += [report(START + step.at, "producer", "phase", phase=step.phase, at=START + step.at) for step in TRAFFIC.steps]
    given = {"inputs": inputs(), "times": times, "deadlines": DEADLINES, "group_events": told}
    empty = record(folder, **given)
    curve = simulate(prediction.situation(empty, KNOWN), scaledobject.parse(inputs()["policy"], "x"))
    steps = [(START + at + later, after, after) for at, _, after in curve.changes]
    at = np.arange(0, 40.1, 0.1)
    seen = {START + one: value * more for one, value in zip(at, np.interp(at, curve.t, curve.lag), strict=True)}
    return record(folder, **given, transitions=replicas((START - 5, 4, 4), *steps), samples=lags(seen))


def test_what_happens_as_predicted_has_no_error(tmp_path, monkeypatch):
    """The same curve: every figure agrees, but for the lag between two samples."""
    found = compare(built(tmp_path, monkeypatch), KNOWN)
    assert found.within_one_pod.value == 100
    assert found.equal.value > 99.5
    assert abs(found.peak_error.value) < 2
    assert abs(found.drain_error.value) < 2
    assert found.predicted.flips == found.recorded.flips
    assert found.predicted.pod_minutes == pytest.approx(found.recorded.pod_minutes, rel=0.02)


def test_a_wrong_prediction_is_seen(tmp_path, monkeypatch):
    """A group that scales 4 s later, with a quarter more lag."""
    found = compare(built(tmp_path, monkeypatch, later=4.0, more=1.25), KNOWN)
    assert found.within_one_pod.value < 90
    assert found.peak_error.value == pytest.approx(-20, abs=2)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"policy": decreed(2, 3)}, "a ReplicaSteps"),
        ({"policy": QUEUE}, r"spec.triggers: \['kafka', 'external'\]"),
        ({"events": [{"phase": "spike", "event": "grow", "partitions": 48}]}, "new partitions"),
        ({"events": [{"phase": "baseline", "event": "delete"}]}, "events of a trial"),
        ({"faults": [{"at": 1.0, "component": "consumer", "kind": "sigkill", "for_s": 0.0, "draw": 0.5}]}, "faults are not"),
        ({"workload": asdict(Workload(store_slots=12))}, "a store that pods share"),
        ({"workload": asdict(Workload(drain="off"))}, "die without leaving"),
        ({"workload": asdict(Workload(grace_s=1))}, "die without leaving"),
    ],
)
def test_what_is_not_simulated_is_no_data(tmp_path, changes, reason):
    """Named, and never a figure."""
    with pytest.raises(NoData, match=reason):
        prediction.predict(record(tmp_path, inputs=inputs(**changes)), KNOWN)


def test_nothing_of_the_outcome_but_the_syncs_goes_in(tmp_path, monkeypatch):
    """The same trial that took longer to come to its end is predicted alike."""
    made = built(tmp_path, monkeypatch)
    longer = sealed(made.folder, times=made.trial.times | {"ended": made.end + 30})
    assert prediction.situation(Record(made.folder), KNOWN).tail_s == prediction.situation(longer, KNOWN).tail_s


def test_a_trial_that_drains_is_over_when_the_group_is_back_at_its_floor():
    """After the profile's end, and not where it was at its floor before."""
    t = np.array([0.0, 5.0, 10.0, 15.0, 20.0])
    curve = Curve(t, np.zeros(5), np.array([4, 8, 8, 4, 4]), np.array([4, 4, 8, 8, 4]))
    assert prediction.at_rest(curve, 10.0, 4).t.tolist() == t.tolist()
    assert prediction.at_rest(curve, 0.0, 4).t.tolist() == [0.0]
    longer = Curve(np.append(t, 25.0), np.zeros(6), np.append(curve.replicas, 4), np.append(curve.working, 4))
    assert prediction.at_rest(longer, 10.0, 4).t.tolist() == t.tolist()


def test_another_run_of_the_same_trial_does_not_calibrate_it(tmp_path, monkeypatch):
    """Its outcome is the prediction's own; what another trial shows goes in."""
    asked = []
    monkeypatch.setattr(calibration, "calibration", lambda records: asked.append([one.folder.name for one in records]))
    made = {}
    for name, changes in {"one": {}, "again": {"repetition": 2}, "other": {"seed": 9}}.items():
        made[name] = record(tmp_path / name, inputs=inputs(**changes), id=name)
    calibration.calibration_from_others(made["one"], list(made.values()), alike=True)
    assert asked == [["other"]]
