"""A trial of a user's own consumer, which tells nothing of itself: what can be said of it is said, the rest has no data."""

import sys

import pytest

from lab.errors import LabFault
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.own_consumer import BLACK_BOX
from lab.inputs.workload import Workload
from lab.measure.delivery import COMMITTED, EXACTLY_ONCE
from lab.measure.drain import best_drain
from lab.measure.progress import progress
from lab.measure.reaction.step import reaction

pytestmark = [pytest.mark.services, pytest.mark.nightly]
LABS = f"{sys.executable} -m lab.programs.consumer"  # as a stranger's: with what it finds in its environment


def brought(command, **work):
    """A trial of a consumer that is started so."""
    workload = Workload(command=command, rung=BLACK_BOX, **work)
    return inputs.read("short-step", "lag", workload, 1, scales.load("quick"), "binary")


def test_a_black_box_reacts_and_drains(run):
    """By its commits, by the pods that its members' client ids name, and by lag."""
    (record,) = run(brought(LABS))
    assert record.trial.ended == "complete"
    assert 0 < reaction(record).total_s.number < 60
    assert best_drain(record).seconds.number > 0
    assert 0 < progress(record).longest_s.number < 10
    assert COMMITTED.missing(record).number == 0
    assert "rung: black-box" in EXACTLY_ONCE.missing(record).why
    assert set(record.pods) >= {one.pod for one in record.handovers}


@pytest.mark.parametrize(
    ("command", "work", "line"),
    [
        (f"{sys.executable} -c 'raise SystemExit(\"no such table\")'", {}, "with code 1; its last line: no such table"),
        (LABS, {"env": "GROUP=another"}, "has no member that owns a partition"),
        (LABS, {"env": "TOPIC=$(OUTPUT_TOPIC)", "emit": "on"}, "its members read output-"),
    ],
)
def test_a_stranger_that_does_not_come_to_work_is_one_line(run, command, work, line):
    """It ends the trial before any traffic."""
    with pytest.raises(LabFault, match=line):
        run(brought(command, **work))
