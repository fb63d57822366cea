"""The acceptance on a stored record: each objective judged by the user's bounds, and what was replaced said in the report."""

import json
import subprocess
from dataclasses import astuple

import pytest

from lab import paths
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.options import OWN
from lab.trial.user_files import Own
from tests.suite import NESTED_S, experiments

from .measure.built import sealed
from .measure.conftest import REPORTS, TRANSITIONS, build

pytestmark = pytest.mark.services

EXAMPLES = paths.PROJECT / "docs" / "examples"
FILES = {"scaledobject": "orders", "profile": "evening-peak", "workload": "enricher"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """(run, verdicts by name, folder) of the examples on a hand-written record that went from 4 to 24 replicas and back."""
    folder = tmp_path_factory.mktemp("stored")
    brought = Own(**{option: EXAMPLES / f"{name}.yaml" for option, name in FILES.items()})
    plan = brought.plan()
    traffic, policy, work = (plan.pop(name) for name in ("profile", "policy", "workload"))
    chosen = inputs.read(traffic, policy, work, 1, scales.load("medium"), "binary", **plan)
    record = folder / "records" / chosen.id
    (record / "inputs").mkdir(parents=True)
    build(record, TRANSITIONS, REPORTS)
    sealed(record, id=chosen.id, inputs=chosen, scale=str(chosen.scale))
    options = [f"--{option}={file}" for option, file in zip(OWN, astuple(brought), strict=True)]
    command = experiments(*options, f"--from-records={folder}", f"--results={folder}")
    ran = subprocess.run(command, cwd=paths.PROJECT, capture_output=True, text=True, timeout=NESTED_S, check=False)
    return ran, {row["objective"]: row for row in json.loads((folder / "verdicts.json").read_text())}, folder


def test_only_the_acceptance_was_judged(judged):
    """One test, failed by what was breached and by what was not there."""
    ran, verdicts, _ = judged
    assert {row["experiment"] for row in verdicts.values()} == {"acceptance"}
    assert ran.returncode == 1
    assert "1 failed" in ran.stdout


@pytest.mark.parametrize(
    ("objective", "measured", "verdict"),
    [
        ("reaction", 6.5, "held"),
        ("flips", 0, "held"),
        ("replicas wanted outside of the policy's bounds", 12, "breached"),
        ("replicas wanted beyond the partitions", 12, "breached"),
        ("replicas above the floor at the end", 1, "breached"),
        ("messages that were not delivered exactly once", None, "no data"),
    ],
)
def test_the_users_own_bounds_are_what_counts(judged, objective, measured, verdict):
    """24 replicas where 12 are allowed on 12 partitions, 4 left where the floor is 3, and no ledger."""
    row = judged[1][objective]
    assert (row["measured"], row["verdict"]) == (pytest.approx(measured), verdict)


def test_a_drain_that_can_not_be_compared_is_no_data(judged):
    """All of the record's messages are on one partition, which takes 150/s, and a pod gives 100."""
    row = next(row for name, row in judged[1].items() if name.startswith("drain time over the best"))
    assert (row["verdict"], row["measured"]) == ("no data", None)
    assert "as much arrives" in row["note"]


def test_the_report_says_what_was_replaced(judged):
    """In the description of the test, beside its hypothesis and method."""
    (result,) = (judged[2] / "allure-results").glob("*-result.json")
    described = json.loads(result.read_text())["descriptionHtml"]
    assert "Replaced in the ScaledObject as it was brought" in described
    assert "spec.triggers[0].metadata.topic" in described
    assert "Hypothesis." in described
