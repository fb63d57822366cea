"""The identity of trials over time: the committed records' inputs, read again from today's files, have the ids of today."""

import hashlib
import json
from dataclasses import replace

import pytest

from lab import paths
from lab.inputs import events, inputs, profile
from lab.inputs import scale as scales
from lab.inputs.events import Grow, Kill
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from tests.records.today import inputs_today, names_today

FOLDER = paths.PROJECT / "tests" / "records" / "judged"
RECORDS = sorted((FOLDER / "records").iterdir())
NAMES = names_today(FOLDER)
PLAIN = ("partitions", "until", "repetition", "driver")


def read_again(stored):
    """The inputs that an experiment would read today to get the record with these ``stored`` inputs."""
    how = {name: stored[name] for name in PLAIN if name in stored}
    how["during"] = {}
    for phase, event in events.stored(stored, profile.build(stored["profile"], "stored"), "stored"):
        how["during"].setdefault(phase, []).append(event)
    workload = Workload(**stored["workload"])
    names = stored["profile_name"], stored["policy_name"]
    return inputs.read(*names, workload, stored["seed"], scales.load(stored["scale"]["name"]), stored["runtime"], **how)


def test_there_are_records_with_events():
    """One of them grows its topic, so the ids below depend on an event too."""
    assert [folder.name for folder in RECORDS if folder.name.startswith("repartition-")]


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_a_committed_record_is_found_by_the_id_of_today(folder):
    """Same inputs as plain data, but for what was renamed: neither a setting nor an event that came later changes the id."""
    trial = json.loads((folder / "trial.json").read_text())
    chosen = read_again(inputs_today(trial["inputs"]))
    assert chosen.to_dict() == inputs_today(trial["inputs"])
    assert NAMES[chosen.id] == trial["id"] == folder.name


@pytest.mark.parametrize("folder", RECORDS, ids=lambda folder: folder.name)
def test_the_id_is_the_hash_of_the_inputs(folder):
    """Computed here without the lab's code, so that the test above can't agree with itself."""
    trial = json.loads((folder / "trial.json").read_text())
    digest = hashlib.sha256(json.dumps(trial["inputs"], sort_keys=True).encode()).hexdigest()[:8]
    assert trial["id"].endswith(digest)


def test_a_sync_period_of_ones_own_is_another_trial():
    """It is in the identity and comes back from it; kube-controller-manager's own period is in none."""
    usual = scales.load("quick")
    brisk = replace(usual, sync_s=5.0)
    trials = [inputs.read("bursty", "lag-4500", Workload(), 1, one, "binary") for one in (usual, brisk)]
    assert trials[0].id != trials[1].id
    assert ["sync_s" in one.to_dict()["scale"] for one in trials] == [False, True]
    assert [Inputs.from_dict(one.to_dict(), "here").scale.hpa_sync_s for one in trials] == [0.5, 5 / 30]


def test_the_trial_with_a_kill_keeps_its_id():
    """No committed record has a kill: the id is that of scenario zero loss before events were data, with its commits."""
    work = Workload(
        process_ms="5-15", concurrency=1, cpu_request_m=50, fail_rate=0.01, poison_rate=0.001, commit_interval_ms=250
    )
    policy = paths.MANIFESTS / "zeroloss" / "scaledobject.yaml"
    chosen = inputs.read("zero-loss", policy, work, 1, scales.load("medium"), "binary", during={"sigkill": Kill()})
    assert chosen.id == "zero-loss-scaledobject-5b0976a2"


def test_what_was_hashed_before_there_was_a_list_of_events_has_none():
    """Growing in phase "repartition" and killing in phase "sigkill" are the fields that they were."""
    grown = inputs.read("repartition", "grow", Workload(), 1, scales.load("quick"), "binary", during={"repartition": Grow(48)})
    assert grown.to_dict()["partitions_after"] == grown.partitions_after == 48
    assert "events" not in grown.to_dict()
