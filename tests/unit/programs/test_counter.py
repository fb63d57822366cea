"""Traffic of others: its profile's time is kept, it is counted, and it is refused where it can't be."""

import threading
import time

import pytest

from lab.errors import InputError
from lab.inputs.inputs import REPLAYED
from lab.inputs.own_consumer import OFF
from lab.inputs.profile import build
from lab.inputs.workload import Workload
from lab.measure.delivery import EXACTLY_ONCE
from lab.programs.counter import keep_time
from lab.trial.record_parts import has_ledger
from lab.trial.user_files import UserFiles, consumer_note
from tests.unit.inputs.written import trial
from tests.unit.measure.built import record

STEPS = [{"at": 0, "rate": 1, "phase": "baseline"}, {"at": 0.1, "rate": 9, "phase": "spike"}]
PROFILE = build({"kind": "steps", "duration": 0.2, "steps": STEPS}, "a test")


def told(stop=False):
    """What is reported of PROFILE on a topic that grows from 7 to 19."""
    said, ends, stopped = [], iter((7, 19)), threading.Event()
    if stop:
        stopped.set()
    start = time.time()
    keep_time(PROFILE, start, stopped, lambda: next(ends), lambda event, **row: said.append((event, row)))
    return said, start


def test_each_phase_is_told_and_what_was_sent_in_all():
    """As a producer tells it, so that a trial waits for the same."""
    said, start = told()
    assert said[:2] == [("phase", {"phase": "baseline", "at": start}), ("phase", {"phase": "spike", "at": start + 0.1})]
    assert said[2:] == [("produced", {"sent": 12, "acked": 12, "unknown": 0, "failed": 0, "counted": True})]
    assert time.time() >= start + PROFILE.duration


def test_a_counter_that_is_told_to_end_tells_no_tally():
    """It does not know what would have come."""
    assert told(stop=True)[0] == []


def own(runtime="existing", command="true"):
    """A trial on the traffic of others."""
    work = Workload(command=command, image="mine" if command else "")
    return trial("plateau", "lag-4500", work, scale="real", runtime=runtime, driver=OFF, until=REPLAYED)


@pytest.mark.parametrize(
    ("given", "line"), [({"runtime": "kind"}, "any other on kind"), ({"command": ""}, "any other with the lab's")]
)
def test_traffic_of_others_is_refused_where_it_cant_be(given, line):
    """On a cluster of the lab's nobody sends, and the lab's consumer reads the lab's events alone."""
    with pytest.raises(InputError, match=line):
        own(**given)


def test_nothing_is_said_of_delivery(tmp_path):
    """The topic has what the trial did not send; the files that are brought say so."""
    assert not has_ledger(own())
    assert UserFiles(own_traffic=True).plan()["driver"] == OFF
    assert "The traffic is your own" in consumer_note(own())
    made = record(tmp_path, inputs={"driver": OFF})
    assert "the traffic was your own" in EXACTLY_ONCE.missing(made).why
