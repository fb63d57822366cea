"""Events of a trial as data: in the order of the profile's phases, checked before anything starts, and in the identity."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs import events, inputs
from lab.inputs import scale as scales
from lab.inputs.events import Context, Delete, Grow, Kill, Pause, PauseScaling, Restart, Resume, ScaleTo
from lab.inputs.profile import Profile, Step
from lab.inputs.steps import ReplicaSteps
from lab.inputs.workload import Workload
from tests.unit.inputs.written import refused

PHASES = ("baseline", "repartition", "sigkill", "drain")
PROFILE = Profile(tuple(Step(10 * n, 1, phase) for n, phase in enumerate(PHASES)), 40)


def read(during, policy="lag", runtime="binary"):
    """The inputs of scenario zero loss's traffic with these events."""
    return inputs.read("zero-loss", policy, Workload(), 1, scales.load("quick"), runtime, during=during)


def scheduled(during):
    """The events in order, in a profile of PHASES."""
    policy = read({}).policy
    return events.schedule(during, PROFILE, Context("binary", policy, 24))


def test_the_order_is_the_profiles_and_not_that_of_writing():
    """A profile may come to its phases in any order."""
    found = scheduled({"drain": Delete(), "sigkill": Kill(), "repartition": [Grow(30), ScaleTo(4)]})
    assert found == (("repartition", Grow(30)), ("repartition", ScaleTo(4)), ("sigkill", Kill()), ("drain", Delete()))


@pytest.mark.parametrize(
    ("during", "how", "line"),
    [
        ({"flood": Kill()}, {}, "during: 'flood' | a phase of the profile: baseline, sustained, sigkill, "),
        ({"sigkill": "kill"}, {}, "during.sigkill: 'kill' | an event of lab.inputs.events, or a list of them"),
        ({"sigkill": [Kill(), 9]}, {}, "during.sigkill: 9 | an event of lab.inputs.events, or a list"),
        (
            {"sigkill": Kill()},
            {"runtime": "existing"},
            "during.sigkill: Kill() | none on an existing cluster, where no right to run programs",
        ),
        ({"sigkill": Grow(24)}, {}, "during.sigkill: Grow(partitions=24) | more than 24, since"),
        ({"sigkill": Grow(201)}, {}, "Grow(partitions=201) | more than 24, since Kafka can't take any"),
        ({"sigkill": Grow("48")}, {}, "Grow(partitions='48') | more than 24, since Kafka can't take any"),
        ({"sustained": Grow(48), "lull": Grow(30)}, {}, "during.lull: Grow(partitions=30) | more than 48"),
        ({"lull": ScaleTo(-1)}, {}, "during.lull: ScaleTo(replicas=-1) | 0 to 200"),
        ({"sustained": Resume(), "lull": Pause()}, {}, "during.sustained: Resume() | a Pause in an earlier"),
        ({"sustained": PauseScaling()}, {"policy": "cpu"}, "PauseScaling() | a policy that is a Scaled"),
    ],
)
def test_what_can_not_happen_is_one_clear_line(during, how, line):
    """Phase, event and what is allowed, before anything starts."""
    said = refused(read, during, **how)
    assert line in said
    assert said.startswith("trial: during")


def test_a_group_without_pods_can_not_be_restarted():
    """Its floor is 0, so there may be none when the phase begins; with a floor of 1 there is."""
    none, some = (SimpleNamespace(min_replicas=floor) for floor in (0, 1))
    line = r"during.drain: Restart\(\) is not allowed; allowed: a policy whose floor is at least 1 pod"
    with pytest.raises(InputError, match=line):
        events.schedule({"drain": Restart()}, PROFILE, Context("binary", none, 24))
    assert events.schedule({"drain": Restart()}, PROFILE, Context("kind", some, 24)) == (("drain", Restart()),)


def test_decreed_steps_come_after_the_profile():
    """They are events like the others, whose phase is none of the profile's."""
    chosen = inputs.read("saturate", "up-and-down", Workload(), 1, scales.load("quick"), "binary", until="replayed")
    assert isinstance(chosen.policy, ReplicaSteps)
    decrees = chosen.policy.decrees
    assert chosen.schedule == tuple((None, one) for one in decrees)
    assert len(decrees) == len(chosen.policy.steps)
    assert {"up", "down"} <= {one.kind for one in decrees}
    assert [one.before for one in decrees] == [chosen.policy.start, *(one.after for one in decrees[:-1])]


SOME = st.one_of(
    st.builds(Kill),
    st.builds(Delete),
    st.builds(Pause),
    st.builds(Restart),
    st.builds(Grow, st.integers(25, 30)),
    st.builds(ScaleTo, st.just(3)),
)
SCHEDULES = st.dictionaries(st.sampled_from(PHASES), st.lists(SOME, min_size=1, max_size=3)).map(
    lambda during: tuple((phase, event) for phase in PHASES for event in during.get(phase, ()))
)


@given(SCHEDULES)
def test_events_come_back_from_plain_data(during):
    """So no two schedules have the same identity, and a record's events are known."""
    assert events.from_list(events.to_list(during), PROFILE, "here") == during


def test_an_event_that_is_not_known_is_one_clear_line():
    """In a record of another version."""
    for row in ({"phase": "drain", "event": "flood"}, {"phase": "drain", "event": "grow", "size": 3}):
        with pytest.raises(InputError, match=r"here: inputs.events: .* is not allowed; allowed: one of decree, delete, grow, "):
            events.from_list([row], PROFILE, "here")
