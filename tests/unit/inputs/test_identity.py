"""The identity of trials: the hash of what is not at its default, the same from plain data, and of the committed records."""

import json
from dataclasses import replace

import pytest

from lab import paths
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.events import Grow, Kill
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.record import trial

RECORDS = sorted((paths.PROJECT / "tests" / "records" / "judged" / "records").iterdir())
WRITTEN = {"profile_name", "policy_name", "profile", "policy", "workload", "seed", "scale", "runtime"}


def read(workload=None, seed=1, **how):
    """The inputs of a trial at quick."""
    return inputs.read("bursty", "lag-4500", workload or Workload(), seed, scales.load("quick"), "binary", **how)


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_committed_record_has_the_id_of_its_inputs(folder):
    """Else no session would find it."""
    kept = trial.read(folder)
    assert kept.inputs.id == kept.id == folder.name


def test_what_is_at_its_default_is_not_hashed():
    """So a new input or setting changes no id; trial.json has all of them."""
    plain = read()
    assert plain.identity().keys() == WRITTEN
    assert plain.identity()["workload"] == {}
    assert "sync_s" not in plain.identity()["scale"]
    assert plain.to_dict()["workload"].keys() >= {"dlq", "topics", "store_slots", "membership", "start_s"}


@pytest.mark.parametrize(
    ("how", "name", "value"),
    [
        ({"seed": 2}, "seed", 2),
        ({"partitions": 48}, "partitions", 48),
        ({"workload": Workload(topics=2)}, "workload", {"topics": 2}),
        ({"until": "replayed"}, "until", "replayed"),
        ({"repetition": 2}, "repetition", 2),
        ({"during": {"burst": Kill()}}, "events", [{"phase": "burst", "event": "kill"}]),
        ({"during": {"burst": Grow(48)}}, "events", [{"phase": "burst", "event": "grow", "partitions": 48}]),
        ({"workload": Workload(start_s=6)}, "workload", {"start_s": 6.0}),
    ],
)
def test_what_differs_is_hashed(how, name, value):
    """By its name, and the id is another."""
    changed = read(**how)
    assert changed.identity()[name] == value
    assert changed.id != read().id
    assert Inputs.from_dict(json.loads(json.dumps(changed.to_dict())), "here").id == changed.id


def test_a_number_is_the_same_setting_with_and_without_a_point():
    """A test writes 6, a record has 6.0."""
    assert read(Workload(start_s=6)).id == read(Workload(start_s=6.0)).id


def test_a_sync_period_of_ones_own_is_another_trial():
    """It is in the identity and comes back from it; kube-controller-manager's own period is in none."""
    usual = scales.load("quick")
    brisk = replace(usual, sync_s=5.0)
    trials = [inputs.read("bursty", "lag-4500", Workload(), 1, one, "binary") for one in (usual, brisk)]
    assert trials[0].id != trials[1].id
    assert [Inputs.from_dict(one.to_dict(), "here").scale.hpa_sync_s for one in trials] == [0.5, 5 / 30]


def test_long_names_are_cut_to_what_a_namespace_may_have():
    """trial-, the id and the number of the run are 63 characters at most."""
    named = replace(read(), profile_name="a" * 20, policy_name="b" * 40)
    assert len(f"trial-{named.id}-0000") == 63
