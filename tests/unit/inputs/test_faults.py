"""A schedule of faults: drawn by its seed alone, bounded, over before the profile is, and an input of its trial."""

import json
import random
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import LabFault
from lab.inputs import duet, faults
from lab.inputs.events import Brokers, KillBroker, ScaleTo, StartBrokers
from lab.inputs.faults import (
    BROKER,
    COMPONENTS,
    CONSUMER,
    CUT,
    DAEMONS,
    DRAIN,
    EVICT,
    GROUP,
    KILL,
    KINDS,
    LAG_SCALER,
    NETWORK,
    NETWORK_NEEDS,
    ROLLOUT,
    ROOTS,
    SHAKEN,
    STOP,
    STORE,
    TERMINATE,
    Faults,
    Injection,
    Timing,
    schedule,
)
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.record.store import write_json
from lab.trial.minimise import halve, minimised
from tests.unit.inputs.written import refused, trial
from tests.unit.trial.test_trials import Session, trials

PLANS = st.builds(
    Faults,
    seed=st.integers(0, 999_999),
    interval_s=st.none() | st.floats(1, 60),
    kinds=st.sets(st.sampled_from((*KINDS, *NETWORK)), min_size=1).map(lambda kinds: (KILL, *sorted(kinds - {KILL}))),
    victims=st.lists(st.sampled_from(COMPONENTS), min_size=1, unique=True).map(tuple),
)
TIMINGS = st.builds(
    Timing, driven_s=st.floats(1, 3000), session_s=st.floats(1, 60), work_s=st.floats(0.001, 60), away_s=st.floats(5, 60)
)
STRUCK = Injection(10.0, "keda-operator", KILL, 2.0, 0.5)
read = partial(trial, profile="step-10x", policy="lag")
WHOLE = {"policy": "lasting-4500", "workload": Workload(store_slots=4), "brokers": Brokers()}


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
        if one.component == CONSUMER and one.kind in (STOP, CUT):
            assert one.for_s > timing.session_s
        if (one.component, one.kind) == (CONSUMER, TERMINATE):
            assert one.for_s <= timing.work_s + 0.001  # it is rounded
        minute = [other for other in found if one.at - faults.MINUTE_S < other.at <= one.at and other.component in SHAKEN]
        assert one.component not in SHAKEN or len(minute) <= faults.MOST_SHAKES
        assert one.component != GROUP or one.for_s <= faults.MINUTE_S
        away = [other for other in found if other.component in ROOTS and other.at - one.for_s < one.at < other.at + other.for_s]
        assert away in ([], [one]) or not (one.component in DAEMONS or one.kind in (EVICT, ROLLOUT, DRAIN))
    for component in COMPONENTS:
        for kinds in ((STOP,), *((kind,) for kind in NETWORK)) if component == CONSUMER else (KINDS,):
            own = [one for one in found if one.component == component and one.kind in kinds]
            assert all(one.at + one.for_s < other.at for one, other in pairwise(own))


def test_seeds_differ_and_hours_have_every_kind():
    """In some of them. Half of the injections shake the group, as long as the minute allows it."""
    timing = Timing(driven_s=3600, session_s=10, work_s=0.05, away_s=60)
    one, *others = (schedule(Faults(seed, interval_s=20), timing) for seed in range(1, 7))
    assert one != others[0]
    assert {(each.component, each.kind) for each in sum(others, one)} == set(Faults(0).pairs)
    assert len(one) == faults.MOST
    assert 0.3 < sum(each.component in SHAKEN for each in one) / len(one) < 0.7
    dense = Faults(1, interval_s=1, victims=SHAKEN)
    assert len(schedule(dense, replace(timing, driven_s=60, away_s=5))) == faults.MOST_SHAKES


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
        ({"faults": Faults(1, victims=("kubelet",))}, "faults.victims: ('kubelet',) | some of consumer, group, node, "),
        (
            {"faults": Faults(1, kinds=(TERMINATE,), victims=("prometheus",))},
            "faults.kinds: ('sigterm',) | sigkill or sigstop for prom",
        ),
        ({"faults": (replace(STRUCK, at=139.0),)}, "| from 0 to 140 s, when the profile is over"),
        ({"faults": (replace(STRUCK, draw=1.0),)}, "and a draw below 1"),
        ({"faults": (replace(STRUCK, kind=TERMINATE),)}, "| sigkill or sigstop or cut for keda-operator"),
        ({"faults": (replace(STRUCK, component="kubelet"),)}, "| one of consumer, group, node, "),
        ({"faults": (STRUCK, replace(STRUCK, at=9.0), replace(STRUCK))}, "| each injection once"),
        (
            {"faults": Faults(1, victims=(CONSUMER, BROKER))},
            "faults.victims: 'broker' | a trial with brokers of its own: brokers=",
        ),
        ({"faults": Faults(1, victims=(STORE,))}, "faults.victims: 'store' | a workload with store_slots"),
        ({"faults": Faults(1, kinds=("slow",))}, "faults.kinds: 'slow' | a workload with store_slots"),
        ({"faults": (replace(STRUCK, component=LAG_SCALER),)}, "| a policy with an external trigger"),
        ({"faults": Faults(1, kinds=(CUT,)), "brokers": Brokers()}, f"faults.kinds: 'cut' | {NETWORK_NEEDS}"),
        ({"faults": Faults(1, kinds=(KILL, CUT)), "workload": Workload(client_settings="stock")}, NETWORK_NEEDS),
        ({"faults": Faults(1, kinds=(CUT,), victims=("keda-operator",)), "policy": "up-and-down"}, "| a policy with a kafka"),
        (
            {"faults": Faults(1, victims=ROOTS[:1]), "during": {"baseline": ScaleTo(3)}},
            "'etcd' | no event, and no step by decree",
        ),
        ({"faults": Faults(1, victims=ROOTS), "policy": "up-and-down"}, "'etcd' | no event, and no step by decree"),
        (
            {
                "faults": Faults(1, victims=(BROKER,)),
                "brokers": Brokers(),
                "during": {"baseline": [KillBroker(), StartBrokers()]},
            },
            "'broker' | no KillBroker beside it",
        ),
    ],
)
def test_faults_that_can_not_be_are_one_clear_line(how, line):
    """Before anything starts."""
    said = refused(read, **how)
    assert said.startswith("trial: faults")
    assert line in said


def test_a_plan_strikes_what_its_trial_has():
    """All components of one that has them all, and of a plain one no broker, store or lag scaler: its session may have both."""
    found = {
        name: {one.component for seed in range(12) for one in read(faults=Faults(seed, interval_s=6), **how).faults}
        for name, how in (("plain", {}), ("whole", WHOLE))
    }
    assert found["whole"] == set(COMPONENTS)
    assert found["plain"] == set(COMPONENTS) - {BROKER, STORE, LAG_SCALER}


def test_the_network_is_struck_where_that_is_named():
    """A proxy is then between consumers and broker: no schedule has it by itself, and so no other trial."""
    drawn = [one for seed in range(12) for one in read(faults=Faults(seed, interval_s=6, kinds=(KILL, *NETWORK))).faults]
    assert {one.kind for one in drawn} == {KILL, *NETWORK}
    assert {(one.component, one.kind) for one in drawn} >= {*((CONSUMER, kind) for kind in NETWORK), ("keda-operator", CUT)}
    assert {one.component for one in drawn if one.kind in NETWORK} == {CONSUMER, "keda-operator"}
    plain = [one for seed in range(12) for one in read(faults=Faults(seed, interval_s=6)).faults]
    assert not {one.kind for one in plain} & set(NETWORK)


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


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.sets(st.integers(0, 11), max_size=3),
    st.integers(0, 99),
    st.integers(1, 6) | st.just(300),
)
def test_what_halving_leaves_fails_with_nothing_to_spare(whole, places, seed, most):
    """Whether a cause fails or any part may: in its order, never in more runs, and where these do it passes without any one."""
    asked, cause = [], {whole[place % len(whole)] for place in places}

    def fails(part):
        asked.append(part)
        found = cause <= set(part) if cause else random.Random(f"{seed} {part}").random() < 0.4
        return part == tuple(whole) or found

    found = halve(whole, fails, most)
    assert len(asked) == found.runs <= most
    assert found.minimal or found.runs == most
    rest = iter(whole)
    assert all(one in rest for one in found.left)
    assert fails(found.left)
    if found.minimal:
        assert not any(fails(found.left[:place] + found.left[place + 1 :]) for place in range(len(found.left)))


@pytest.mark.parametrize(("cause", "most"), [({41}, 13), ({0, 63}, 40), (set(), 1)])
def test_one_cause_of_64_is_found_in_a_dozen_runs(cause, most):
    """Two of them in 40; what fails by itself has none."""
    found = halve(range(64), lambda part: cause <= set(part), most)
    assert (set(found.left), found.minimal) == (cause, True)


@pytest.fixture
def red(tmp_path):
    """Runs a trial in which the fifth fault loses messages and any other alone is late, and looks for the fewest that lose.

    Returns all faults, the file of the fewest, the inputs that were run, and the trial's record.
    """
    drawn, ran, session = read(faults=Faults(3)).faults, [], Session(tmp_path)

    def execute(sides, turn):
        ran.extend(sides)
        return session(sides, turn)

    def run(most, *, alone=False):
        def breaches(record):
            found = record.inputs.faults
            return ["lost"] if drawn[4] in found or (alone and not found) else ["late"] if len(found) == 1 else []

        made = trials(minimised(execute, breaches, tmp_path, most), faults=Faults(3))
        (record,) = made.run(profile="step-10x", policy="lag")
        return drawn, tmp_path / f"faults-{record.id}.json", ran, record

    return run


def test_a_trial_that_breaks_leaves_the_fewest_of_its_faults(red):
    """Those that break the same of it, in a file that is run again by itself. The record of all of them is judged."""
    drawn, file, ran, record = red(20)
    assert record.inputs.faults == drawn
    assert (faults.load(file), faults.load(file).source) == ((drawn[4],), str(file))
    assert ran[0].faults_from == "seed 3"
    assert all(one.faults_from == f"{len(one.faults)} of the {len(drawn)} faults of trial {record.id}" for one in ran[1:])
    assert len({one.id for one in ran}) == len(ran)


@pytest.mark.parametrize(("most", "alone", "left"), [(2, False, True), (1, True, False)])
def test_what_is_not_known_of_a_trial_blames_no_fault(red, most, alone, left):
    """Too few runs leave more faults, all of which break it together; a trial that breaks without a fault leaves none."""
    drawn, file, ran, _ = red(most, alone=alone)
    assert file.exists() is left
    assert len(ran) == 1 + most
    if left:
        assert {drawn[4]} < set(faults.load(file))


@pytest.mark.parametrize("third", ["judged", "broken", "unknown"])
def test_a_run_that_is_not_judged_is_no_pass(tmp_path, caplog, third):
    """The log counts it. It keeps neither the other runs from leaving the fewest nor the record of all faults from its test."""
    drawn, ran, session = read(faults=Faults(3)).faults, [], Session(tmp_path)

    def execute(sides, turn):
        ran.append(sides)
        if third == "broken" and len(ran) == 3:
            raise LabFault("power cut")
        return session(sides, turn)

    def breaches(record):
        if third == "unknown" and len(ran) == 3:
            return None
        return ["lost"] if drawn[4] in record.inputs.faults else []

    caplog.set_level("INFO", logger="lab")
    (record,) = trials(minimised(execute, breaches, tmp_path, 30), faults=Faults(3)).run(profile="step-10x", policy="lag")
    assert record.inputs.faults == drawn
    assert faults.load(tmp_path / f"faults-{record.id}.json") == (drawn[4],)
    (last,) = (line for line in caplog.messages if f"breaks by 1 of its {len(drawn)} faults" in line)
    assert ("passes without any one of them" in last) is (third == "judged")
    assert (f"1 of {len(ran) - 1} runs could not be judged" in last) is (third != "judged")
    assert ("power cut" in caplog.text) is (third == "broken")


def test_a_record_s_faults_are_the_same_trial_again(tmp_path):
    """The list as it was drawn, and where it is from; a list that a test has in its text is from nowhere."""
    (record,) = trials(Session(tmp_path / "drawn"), faults=Faults(3)).run(profile="step-10x", policy="lag")
    ran = []
    again = trials(lambda sides, turn: ran.extend(sides) or Session(tmp_path / "again")(sides, turn))
    again.faults = faults.load(record.folder / "trial.json")
    (replayed,) = again.run(profile="step-10x", policy="lag")
    assert (replayed.id, replayed.inputs.faults) == (record.id, record.inputs.faults)
    assert [one.faults_from for one in ran] == [f"trial {record.id}"]
    assert read(faults=record.inputs.faults).faults_from == read().faults_from == ""
