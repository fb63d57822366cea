"""--from-records: stored records are judged without a cluster, also by the bounds of a user's own files."""

import json
import os
import re
import subprocess
from dataclasses import astuple
from types import SimpleNamespace

import pytest

from lab import paths
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.project import USER_FILES
from lab.trial.user_files import UserFiles
from tests import expected
from tests.suite import NESTED_S, experiments

from .measure.built import sealed
from .measure.conftest import REPORTS, TRANSITIONS, build

pytestmark = pytest.mark.services

EXAMPLES = paths.PROJECT / "docs" / "examples"
BROUGHT = UserFiles(EXAMPLES / "orders.yaml", EXAMPLES / "evening-peak.yaml", EXAMPLES / "enricher.yaml")


REACTION = "reaction, all of it divided by the scale"
FILES = [f"tests/experiments/test_{name}.py" for name in ("acceptance", "2_reaction_and_drain")]


def suite(*options, environment=None, tests=FILES):
    """What a session of two experiments prints with ``options``, and its exit code."""
    words = experiments(*options, tests=tests)
    how = {"cwd": paths.PROJECT, "env": environment, "capture_output": True, "text": True, "timeout": NESTED_S}
    ran = subprocess.run(words, check=False, **how)
    return ran.returncode, ran.stdout + ran.stderr


def judged(folder, chosen, *options):
    """The suite's verdicts on a hand-written record of ``chosen`` that went from 4 to 24 replicas, without a reconciliation."""
    record = folder / "records" / chosen.id
    (record / "inputs").mkdir(parents=True)
    build(record, TRANSITIONS, REPORTS)
    sealed(record, id=chosen.id, inputs=chosen, scale=str(chosen.scale))
    code, printed = suite(*options, f"--from-records={folder}", f"--results={folder}")
    rows = {row["objective"]: row for row in json.loads((folder / "verdicts.json").read_text())}
    return SimpleNamespace(code=code, printed=printed, rows=rows, folder=folder)


@pytest.fixture(scope="module")
def spike(tmp_path_factory):
    """Experiment 2's first test."""
    chosen = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    return judged(tmp_path_factory.mktemp("stored"), chosen, "-k", "a_10x_spike_is_absorbed")


@pytest.fixture(scope="module")
def acceptance(tmp_path_factory):
    """The acceptance of the examples."""
    plan = BROUGHT.plan()
    traffic, policy, work = (plan.pop(name) for name in ("profile", "policy", "workload"))
    chosen = inputs.read(traffic, policy, work, 1, scales.load("medium"), "binary", **plan)
    options = [f"--lab-{option}={file}" for option, file in zip(USER_FILES, astuple(BROUGHT)[:3], strict=True)]
    return judged(tmp_path_factory.mktemp("stored"), chosen, *options)


def test_a_number_is_held_and_a_missing_table_is_no_data(spike):
    """The reaction of the record, 2 s and a start of 4.5 s, is held. Without a reconciliation nothing is proved: red.

    Judging is reading: no cluster comes up.
    """
    row = spike.rows[REACTION]
    assert (row["verdict"], row["bound"], row["unit"], row["operator"]) == ("held", 90 / 30, "s", "<")  # of quick
    assert row["measured"] == pytest.approx(2 + 4.5 / 30)
    assert spike.rows["messages that were not delivered exactly once"]["verdict"] == "no data"
    assert spike.code == 1
    assert "messages that were not delivered exactly once: no data" in spike.printed
    assert "1 failed" in spike.printed
    assert "cluster up" not in spike.printed


@pytest.mark.parametrize(
    ("option", "code", "line"),
    [
        ("--cluster=kind", 3, "no cluster: no docker command on PATH: install Docker, or use --cluster binary, which needs"),
        ("--from-records=nowhere", 2, "--from-records: 'nowhere' is not allowed; allowed: a folder of records"),
    ],
)
def test_an_option_that_can_not_work_is_one_clear_line(option, code, line, tmp_path):
    """Exit code 2, or 3 where the machine lacks what is needed, the line, and nothing started: PATH is empty."""
    apart = ("-k", "not 10x_spike")  # which asks how fast the machine is
    ended, printed = suite(option, f"--results={tmp_path}", *apart, environment=os.environ | {"PATH": str(tmp_path)})
    assert ended == code
    assert line in printed
    assert "cluster up" not in printed


@pytest.mark.parametrize("given", ["nothing", "the committed file", "a file that differs"])
def test_a_real_session_is_red_by_a_difference_alone(given, tmp_path):
    """A claim that no run of the archive's session held: red, green where that is expected, red with both numbers where not."""
    text = expected.FILE.read_text(encoding="utf-8")
    if given == "a file that differs":
        text = re.sub(r"(CPU asks for nothing:\n      held: )\d+(\n      of: )(\d+)", r"\1\3\2\3", text)  # in all runs
    (tmp_path / "expected.yaml").write_text(text)
    option = [] if given == "nothing" else [f"--expected={tmp_path / 'expected.yaml'}:extended"]
    words = ["-k", "request_is_a_free", "--repeat=3", "--from-records=evidence:2026-11-23-three-runs", f"--results={tmp_path}"]
    code, printed = suite(*words, *option, tests=["tests/experiments/test_1_signal.py"])
    assert code == (0 if given == "the committed file" else 1)
    expectation = {"the committed file": ", as expected", "a file that differs": ""}.get(given, "")
    assert f"1 claim was breached{expectation}." in printed
    differs = re.search(r"\(expected held \(1 steps, (\d+) of \1 held\), now held 0 of 3 \(1 steps\)\)", printed)
    assert bool(differs) is (given == "a file that differs")


BROUGHT_BOUNDS = {
    REACTION: (2 + 4.5 / 15, "held"),
    "flips": (0, "held"),
    "replicas wanted outside of the policy's bounds": (12, "breached"),
    "replicas wanted beyond the partitions": (12, "breached"),
    "replicas above the floor at the end": (1, "breached"),
    "messages that were not delivered exactly once": (None, "no data"),
}


def test_the_acceptance_is_judged_alone_by_the_users_own_bounds(acceptance):
    """24 replicas where 12 are allowed on 12 partitions, 4 left where the floor is 3, and no ledger.

    One test, failed by what was breached and by what was not there; its description says what was replaced. All of the
    record's messages are on one partition, which takes 150/s, and a pod gives 100: no drain can be compared.
    """
    found = {name: (acceptance.rows[name]["measured"], acceptance.rows[name]["verdict"]) for name in BROUGHT_BOUNDS}
    assert found == {name: (pytest.approx(measured), verdict) for name, (measured, verdict) in BROUGHT_BOUNDS.items()}
    assert acceptance.rows[REACTION]["bound"] == 90 / 15  # of medium
    assert {row["experiment"] for row in acceptance.rows.values()} == {"acceptance"}
    assert (acceptance.code, "1 failed" in acceptance.printed) == (1, True)
    row = next(row for name, row in acceptance.rows.items() if name.startswith("drain time over the best"))
    assert (row["verdict"], row["measured"], "as much arrives" in row["note"]) == ("no data", None, True)
    (result,) = (acceptance.folder / "allure-results").glob("*-result.json")
    described = json.loads(result.read_text())["descriptionHtml"]
    for text in ("Replaced in the ScaledObject as it was brought", "spec.triggers[0].metadata.topic", "Hypothesis."):
        assert text in described
