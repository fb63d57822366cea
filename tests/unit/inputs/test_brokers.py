"""Brokers of a trial's own: checked before anything starts, and in the identity only where a trial has them."""

import pytest

from lab.errors import InputError
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.events import COORDINATOR, LOST, Brokers, KillBroker, StartBrokers
from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from tests.unit.inputs.written import refused

QUICK = scales.load("quick")


def read(during=None, runtime="binary", **how):
    """The inputs of a trial whose brokers die."""
    return inputs.read("brokers-die", "lag", Workload(), 1, QUICK, runtime, during=during or {}, **how)


@pytest.mark.parametrize(
    ("brokers", "line"),
    [
        (Brokers(count=2), "brokers.count: 2 | 3 to 5"),
        (Brokers(count="3"), "brokers.count: '3' | 3 to 5"),
        (Brokers(replication=4), "brokers.replication: 4 | 1 to 3"),
        (Brokers(replication=1), "brokers.min_insync: 2 | 1 to 1"),
        (Brokers(min_insync=True), "brokers.min_insync: True | 1 to 3"),
    ],
)
def test_brokers_that_kafka_would_refuse_are_one_clear_line(brokers, line):
    """The field, its value and the range."""
    assert refused(read, brokers=brokers) == f"trial: {line}"


def test_kind_has_no_brokers_of_a_trials_own():
    """Its Kafka is one container."""
    with pytest.raises(InputError, match=r"trial: brokers: .* allowed: none but on binary"):
        read(runtime="kind", brokers=Brokers())


@pytest.mark.parametrize(
    ("during", "brokers", "line"),
    [
        ({"leader": KillBroker()}, None, "| a trial with brokers of its own"),
        ({"leader": KillBroker("controller")}, Brokers(), "| role leader or coordinator, disk kept or lost"),
        ({"leader": KillBroker(disk="wet")}, Brokers(), "| role leader or coordinator, disk kept or lost"),
        (
            {"leader": KillBroker(), "coordinator": KillBroker(COORDINATOR)},
            Brokers(),
            "| at most 1 of 3 brokers down: StartBrokers() in an earlier phase",
        ),
        ({"leader": StartBrokers()}, Brokers(), "| a KillBroker in an earlier phase"),
        (
            {"leader": KillBroker(), "leader-starts": [StartBrokers(), StartBrokers()]},
            Brokers(),
            "| a KillBroker in an earlier phase",
        ),
    ],
)
def test_a_majority_goes_on(during, brokers, line):
    """What would leave too few, or has no broker to happen to, is refused before anything starts."""
    assert line in refused(read, during, brokers=brokers)


def test_a_started_broker_makes_room_for_the_next_kill():
    """And of five, two may be down."""
    one_by_one = {"leader": KillBroker(), "leader-starts": StartBrokers(), "coordinator": KillBroker(COORDINATOR)}
    assert len(read(one_by_one, brokers=Brokers()).during) == 3
    assert len(read({"leader": [KillBroker(), KillBroker()]}, brokers=Brokers(count=5)).during) == 2


def test_brokers_and_their_deaths_are_in_the_identity():
    """One copy or three, a disk that is kept or lost: other trials. A trial without them has no such field, and its old id."""
    during = {"leader": KillBroker(disk=LOST), "leader-starts": StartBrokers()}
    three, one = read(during, brokers=Brokers()), read(during, brokers=Brokers(replication=1, min_insync=1))
    kept = read({"leader": KillBroker(), "leader-starts": StartBrokers()}, brokers=Brokers())
    assert len({three.id, one.id, kept.id, read().id}) == 4
    assert "brokers" not in read().identity()
    for made in (three, one, kept):
        again = Inputs.from_dict(made.to_dict(), "here")
        assert (again.id, again.brokers, again.during) == (made.id, made.brokers, made.during)
