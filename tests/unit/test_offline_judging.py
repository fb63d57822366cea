"""--from-records: stored records are judged without a cluster, and a breach, a gap and a pass are told apart."""

import json
import os
import subprocess

import pytest

from lab import paths
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from tests.suite import NESTED_S, experiments

from .measure.built import sealed
from .measure.conftest import REPORTS, TRANSITIONS, build

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The suite's verdicts on a hand-written record of experiment 2 that has no reconciliation; (run, verdicts by name)."""
    folder = tmp_path_factory.mktemp("stored")
    chosen = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    record = folder / "records" / chosen.id
    (record / "inputs").mkdir(parents=True)
    build(record, TRANSITIONS, REPORTS)
    sealed(record)
    command = experiments("-k", "a_10x_spike", f"--from-records={folder}", f"--results={folder}")
    ran = subprocess.run(command, cwd=paths.PROJECT, capture_output=True, text=True, timeout=NESTED_S, check=False)
    return ran, {row["objective"]: row for row in json.loads((folder / "verdicts.json").read_text())}


def test_a_number_within_its_bound_is_held(judged):
    """The reaction of the record, 6.5 s, is held to 90 s."""
    row = judged[1]["reaction"]
    assert (row["verdict"], row["bound"], row["unit"], row["operator"]) == ("held", 90, "s", "<")
    assert row["measured"] == pytest.approx(6.5)


def test_a_missing_table_is_no_data_and_fails(judged):
    """Without a reconciliation nothing is proved, so the test does not pass."""
    ran, verdicts = judged
    assert verdicts["messages that were not delivered exactly once"]["verdict"] == "no data"
    assert ran.returncode == 1
    assert "messages that were not delivered exactly once: no data" in ran.stdout
    assert "1 failed" in ran.stdout


def test_no_component_was_started(judged):
    """Judging is reading: the log knows no cluster."""
    assert "cluster up" not in judged[0].stdout


@pytest.mark.parametrize(
    ("option", "code", "line"),
    [
        (
            "--cluster=kind",
            3,
            "no cluster: no docker command on PATH: install Docker, or use --cluster binary, which needs none",
        ),
        ("--lab-hpa-sync-s=0.5", 2, "command line: --lab-hpa-sync-s: 0.5 is not allowed; allowed: 1 to 60 s"),
        ("--scale=huge", 2, "scale: 'huge' is not allowed; allowed: one of quick, medium, standard, close, real"),
        ("--from-records=nowhere", 2, "--from-records: 'nowhere' is not allowed; allowed: a folder of records"),
        ("--repeat=0", 2, "--repeat: 0 is not allowed; allowed: a whole number from 1"),
        ("--lab-order-seed=-1", 2, "--lab-order-seed: -1 is not allowed; allowed: a whole number from 0 to 999,999"),
    ],
)
def test_an_option_that_can_not_work_is_one_clear_line(option, code, line, tmp_path):
    """Exit code 2, or 3 where the machine lacks what is needed, the line, and nothing started: PATH is empty."""
    command = experiments(option, f"--results={tmp_path}")
    alone = os.environ | {"PATH": str(tmp_path)}
    ran = subprocess.run(command, cwd=paths.PROJECT, env=alone, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert ran.returncode == code
    assert line in ran.stdout + ran.stderr
    assert "cluster up" not in ran.stdout
