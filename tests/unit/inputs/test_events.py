"""Events of a trial, and its own brokers, as data: checked before anything starts, and in the identity."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs import events
from lab.inputs.events import Brokers, Context, Delete, Grow, Kill, KillBroker, Pause, Resume, ScaleTo, StartBrokers
from lab.inputs.inputs import Inputs
from lab.inputs.profile import Profile, Step
from lab.inputs.steps import ReplicaSteps
from lab.inputs.workload import Workload
from tests.unit.inputs.written import refused, trial

PHASES = ("baseline", "repartition", "sigkill", "drain")
PROFILE = Profile(tuple(Step(10 * n, 1, phase) for n, phase in enumerate(PHASES)), 40)


def read(during, policy="lag", runtime="binary"):
    """The inputs of scenario zero loss's traffic with these events."""
    return trial("zero-loss", policy, runtime=runtime, during=during)


def test_the_order_is_the_profiles_and_not_that_of_writing():
    """A profile may come to its phases in any order."""
    during = {"drain": Delete(), "sigkill": Kill(), "repartition": [Grow(30), ScaleTo(4)]}
    found = events.schedule(during, PROFILE, Context("binary", read({}).policy, 24))
    assert found == (("repartition", Grow(30)), ("repartition", ScaleTo(4)), ("sigkill", Kill()), ("drain", Delete()))


@pytest.mark.parametrize(
    ("during", "how", "line"),
    [
        ({"flood": Kill()}, {}, "during: 'flood' | a phase of the profile: baseline, sustained, sigkill, "),
        ({"sigkill": "kill"}, {}, "during.sigkill: 'kill' | an event of lab.inputs.events, or a list of them"),
        ({"sigkill": [Kill(), 9]}, {}, "during.sigkill: 9 | an event of lab.inputs.events, or a list"),
        ({"sigkill": Kill()}, {"runtime": "existing"}, "during.sigkill: Kill() | none on an existing cluster"),
        ({"sigkill": Grow(24)}, {}, "during.sigkill: Grow(partitions=24) | more than 24, since"),
        ({"sigkill": Grow(201)}, {}, "Grow(partitions=201) | more than 24, since Kafka can't take any"),
        ({"sigkill": Grow("48")}, {}, "Grow(partitions='48') | more than 24, since Kafka can't take any"),
        ({"sustained": Grow(48), "lull": Grow(30)}, {}, "during.lull: Grow(partitions=30) | more than 48"),
        ({"lull": ScaleTo(-1)}, {}, "during.lull: ScaleTo(replicas=-1) | 0 to 200"),
        ({"sustained": Resume(), "lull": Pause()}, {}, "during.sustained: Resume() | a Pause in an earlier"),
        ({"sustained": events.PauseScaling()}, {"policy": "cpu"}, "PauseScaling() | a policy that is a Scaled"),
        ({"lull": events.SetAssignmentInterval(0)}, {}, "SetAssignmentInterval(interval_ms=0) | a workload with balancer"),
        ({"lull": events.SetAssignmentInterval(0)}, {"runtime": "existing"}, "none on an existing cluster, whose"),
    ],
)
def test_what_can_not_happen_is_one_clear_line(during, how, line):
    """Phase, event and what is allowed, before anything starts."""
    said = refused(read, during, **how)
    assert line in said
    assert said.startswith("trial: during")


@pytest.mark.parametrize("wrong", [-1, 15_001, "0"])
def test_an_assignment_interval_is_one_that_a_broker_takes(wrong):
    """At the least and at the most of Kafka's own bounds it is taken, and it is in the identity; beyond them it is one line."""
    by_broker = Workload(balancer="consumer")
    made = [trial("zero-loss", "lag", by_broker, during={"sustained": events.SetAssignmentInterval(ms)}) for ms in (0, 15_000)]
    assert made[0].id != made[1].id
    said = refused(trial, "zero-loss", "lag", by_broker, during={"sustained": events.SetAssignmentInterval(wrong)})
    assert said == f"trial: during.sustained: SetAssignmentInterval(interval_ms={wrong!r}) | 0 to 15,000 ms"


def test_a_group_without_pods_can_not_be_restarted():
    """Its floor is 0, so there may be none when the phase begins; with a floor of 1 there is."""
    none, some = (SimpleNamespace(min_replicas=floor) for floor in (0, 1))
    said = refused(events.schedule, {"drain": events.Restart()}, PROFILE, Context("binary", none, 24))
    assert said == "trial: during.drain: Restart() | a policy whose floor is at least 1 pod"
    assert events.schedule({"drain": events.Restart()}, PROFILE, Context("kind", some, 24)) == (("drain", events.Restart()),)


def test_decreed_steps_come_after_the_profile():
    """They are events like the others, whose phase is none of the profile's."""
    chosen = trial("saturate", "up-and-down", until="replayed")
    assert isinstance(chosen.policy, ReplicaSteps)
    decrees = chosen.policy.decrees
    assert chosen.schedule == tuple((None, one) for one in decrees)
    assert len(decrees) == len(chosen.policy.steps)
    assert {"up", "down"} <= {one.kind for one in decrees}
    assert [one.before for one in decrees] == [chosen.policy.start, *(one.after for one in decrees[:-1])]


SOME = st.sampled_from([Kill(), Delete(), Pause(), events.Restart(), Grow(25), Grow(30), ScaleTo(3)])
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
        said = refused(events.from_list, [row], PROFILE, "here")
        assert said.startswith(f"here: inputs.events: {row} | one of decree, delete, grow, ")


def brokers_die(during=None, runtime="binary", **how):
    """The inputs of a trial whose brokers die."""
    return trial("brokers-die", "lag", runtime=runtime, during=during or {}, **how)


@pytest.mark.parametrize(
    ("brokers", "line"),
    [
        (Brokers(count=2), "count: 2 | 3 to 5"),
        (Brokers(count="3"), "count: '3' | 3 to 5"),
        (Brokers(replication=4), "replication: 4 | 1 to 3"),
        (Brokers(replication=1), "min_insync: 2 | 1 to 1"),
        (Brokers(min_insync=True), "min_insync: True | 1 to 3"),
    ],
)
def test_brokers_that_kafka_would_refuse_are_one_clear_line(brokers, line):
    """The field, its value and the range. Kind has none of a trial's own: its Kafka is one container."""
    assert refused(brokers_die, brokers=brokers) == f"trial: brokers.{line}"
    assert "| none but on binary" in refused(brokers_die, runtime="kind", brokers=Brokers())


LEADER_DIES = {"leader": KillBroker()}


@pytest.mark.parametrize(
    ("during", "brokers", "line"),
    [
        (LEADER_DIES, None, "a trial with brokers of its own"),
        ({"leader": KillBroker("controller")}, Brokers(), "role leader or coordinator, disk kept or lost"),
        ({"leader": KillBroker(disk="wet")}, Brokers(), "role leader or coordinator, disk kept or lost"),
        (
            LEADER_DIES | {"coordinator": KillBroker(events.COORDINATOR)},
            Brokers(),
            "at most 1 of 3 brokers down: StartBrokers() in an",
        ),
        ({"leader": StartBrokers()}, Brokers(), "a KillBroker in an earlier phase"),
        (LEADER_DIES | {"leader-starts": [StartBrokers(), StartBrokers()]}, Brokers(), "a KillBroker in an earlier phase"),
    ],
)
def test_a_majority_of_brokers_goes_on(during, brokers, line):
    """What would leave too few, or has no broker to happen to, is refused before anything starts."""
    assert f"| {line}" in refused(brokers_die, during, brokers=brokers)


def test_a_started_broker_makes_room_for_the_next_kill():
    """And of five, two may be down."""
    one_by_one = LEADER_DIES | {"leader-starts": StartBrokers(), "coordinator": KillBroker(events.COORDINATOR)}
    assert len(brokers_die(one_by_one, brokers=Brokers()).during) == 3
    assert len(brokers_die({"leader": [KillBroker(), KillBroker()]}, brokers=Brokers(count=5)).during) == 2


def test_brokers_and_their_deaths_are_in_the_identity():
    """One copy or three, a disk that is kept or lost: other trials. A trial without them has no such field, and its old id."""
    during = {"leader": KillBroker(disk=events.LOST), "leader-starts": StartBrokers()}
    three = brokers_die(during, brokers=Brokers())
    one = brokers_die(during, brokers=Brokers(replication=1, min_insync=1))
    kept = brokers_die(during | LEADER_DIES, brokers=Brokers())
    assert len({three.id, one.id, kept.id, brokers_die().id}) == 4
    assert "brokers" not in brokers_die().identity()
    for made in (three, one, kept):
        again = Inputs.from_dict(made.to_dict(), "here")
        assert (again.id, again.brokers, again.during) == (made.id, made.brokers, made.during)
