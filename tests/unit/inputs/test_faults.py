"""A schedule of faults: drawn by its seed alone, bounded, over before the profile is, and an input of its trial."""

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs import duet, faults
from lab.inputs.faults import COMPONENTS, CONSUMER, KILL, KINDS, STOP, TERMINATE, Faults, Injection, Timing, schedule
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.record.store import write_json
from tests.unit.inputs.written import refused, trial

PLANS = st.builds(
    Faults,
    seed=st.integers(0, 999_999),
    interval_s=st.none() | st.floats(1, 60),
    kinds=st.sets(st.sampled_from(KINDS), min_size=1).map(lambda kinds: (KILL, *sorted(kinds - {KILL}))),
    victims=st.lists(st.sampled_from(COMPONENTS), min_size=1, unique=True).map(tuple),
)
TIMINGS = st.builds(
    Timing, driven_s=st.floats(1, 3000), session_s=st.floats(1, 60), work_s=st.floats(0.001, 60), away_s=st.floats(5, 60)
)
STRUCK = Injection(10.0, "keda-operator", KILL, 2.0, 0.5)
read = partial(trial, profile="step-10x", policy="lag")


@given(PLANS, TIMINGS)
def test_a_schedule_is_bounded_and_over_before_the_profile(plan, timing):
    """Same seed, same schedule: at most so many, of what the plan names, in order, none twice at a time."""
    found = schedule(plan, timing)
    assert found == schedule(plan, timing)
    assert len(found) <= faults.MOST
    assert {(one.component, one.kind) for one in found} <= set(plan.pairs)
    assert list(found) == sorted(found)
    for one in found:
        one.check(timing.driven_s - faults.REST_S, "a schedule")
        if (one.component, one.kind) == (CONSUMER, STOP):
            assert one.for_s > timing.session_s
        if one.kind == TERMINATE:
            assert one.for_s <= timing.work_s + 0.001  # it is rounded
        minute = [other for other in found if one.at - faults.MINUTE_S < other.at <= one.at and other.component == CONSUMER]
        assert one.component != CONSUMER or len(minute) <= faults.MOST_SHAKES
    for component in COMPONENTS:
        own = [one for one in found if one.component == component and (component != CONSUMER or one.kind == STOP)]
        assert all(one.at + one.for_s < other.at for one, other in pairwise(own))


def test_seeds_differ_and_an_hour_has_every_kind():
    """Half of the injections strike a consumer, as long as the minute allows it."""
    timing = Timing(driven_s=3600, session_s=10, work_s=0.05, away_s=60)
    one, other = (schedule(Faults(seed, interval_s=20), timing) for seed in (1, 2))
    assert one != other
    assert {(each.component, each.kind) for each in one + other} == set(Faults(0).pairs)
    assert len(one) == faults.MOST
    assert 0.3 < sum(each.component == CONSUMER for each in one) / len(one) < 0.7
    dense = Faults(1, interval_s=1, victims=(CONSUMER,))
    assert len(schedule(dense, replace(timing, driven_s=60))) == faults.MOST_SHAKES


@pytest.mark.parametrize(
    ("workload", "session_s"),
    [(Workload(), 10), (Workload(client_settings="stock"), 45), (Workload(balancer="consumer"), 45)],
    ids=["lab", "stock", "KIP-848"],
)
def test_a_stop_outlasts_the_session_of_its_client(workload, session_s):
    """Whoever decides it: the consumer, or the broker."""
    stops = read(workload=workload, faults=Faults(1, kinds=(STOP,), victims=(CONSUMER,))).faults
    assert stops
    assert all(session_s < one.for_s <= 1.5 * session_s for one in stops)


def test_a_schedule_is_an_input_of_its_trial():
    """By a plan or by the list that it draws: the same trial, and another one than without. It is read from plain data."""
    drawn = read(faults=Faults(3))
    assert drawn.faults
    assert drawn.id != read().id
    assert "faults" not in read().identity()
    assert read(faults=drawn.faults[::-1]).id == drawn.id
    again = Inputs.from_dict(json.loads(json.dumps(drawn.to_dict())), "a test")
    assert (again.faults, again.id) == (drawn.faults, drawn.id)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"faults": Faults(1), "runtime": "kind"}, "faults: Faults(seed=1"),
        ({"faults": Faults(1, interval_s=0.1)}, "faults.interval_s: 0.1 | 1 to 3600 s"),
        ({"faults": Faults(1, kinds=("sighup",))}, "faults.kinds: ('sighup',) | some of sigkill, sigstop, sigterm"),
        ({"faults": Faults(1, victims=("etcd",))}, "faults.victims: ('etcd',) | some of consumer, lag-exporter, "),
        ({"faults": Faults(1, kinds=(TERMINATE,), victims=("prometheus",))}, "faults.kinds: ('sigterm',) | sigterm for a con"),
        ({"faults": (replace(STRUCK, at=139.0),)}, "| from 0 to 140 s, when the profile is over"),
        ({"faults": (replace(STRUCK, draw=1.0),)}, "and a draw below 1"),
        ({"faults": (replace(STRUCK, kind=TERMINATE),)}, "| sigkill or sigstop or sigterm of one of consumer, "),
    ],
)
def test_faults_that_can_not_be_are_one_clear_line(how, line):
    """Before anything starts."""
    said = refused(read, **how)
    assert said.startswith("trial: faults")
    assert line in said


def test_a_profile_that_is_over_at_once_has_no_faults(tmp_path):
    """None fits into a second, and a trial without would pass for one with faults."""
    short = tmp_path / "short.yaml"
    short.write_text("{kind: steady, rate: 1, duration: 30}")
    assert "| a longer profile: none is over 5 s before 1 s" in refused(read, profile=short, faults=Faults(1))


def test_the_sides_of_a_duet_have_none():
    """Each would strike what both stand on."""
    assert refused(duet.sides, read(faults=Faults(1)), read()).startswith("duet: faults")


def test_a_record_s_faults_are_read_again(tmp_path):
    """From its trial.json, or from a list that someone has made shorter; what holds none is refused."""
    file, drawn = tmp_path / "trial.json", read(faults=Faults(5))
    write_json(file, {"inputs": drawn.to_dict()})
    assert faults.load(file) == drawn.faults
    write_json(file, [vars(one) for one in drawn.faults[:2]])
    assert faults.load(file) == drawn.faults[:2]
    for content in ({"inputs": read().to_dict()}, {"inputs": None}, {}, []):
        write_json(file, content)
        assert "a trial.json, or a list of injections" in refused(faults.load, file)
    write_json(file, [vars(STRUCK) | {"at": "soon"}])
    assert "faults[0].at: 'soon'" in refused(faults.load, file)
