"""Topics: the number of a partition and its place, for one topic and for several; and the identity of one on a broker."""

import uuid
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import LabFault
from lab.kafka import topics
from lab.kafka.numbering import Numbering, numbering
from lab.wait import until

INTERVAL = "consumer.assignment.interval.ms"
SEVERAL = st.builds(
    lambda count, each: Numbering(tuple(f"events-{number}" for number in range(count)), each),
    st.integers(2, 8),
    st.integers(1, 100),
)


@given(SEVERAL)
def test_every_number_has_a_place_of_its_own_and_is_found_by_it(several):
    """Topic by topic, and within a topic in Kafka's order."""
    places = [several.place(number) for number in range(several.count)]
    assert places == [(topic, partition) for topic in several.topics for partition in range(several.each)]
    assert [several.number(*place) for place in places] == list(range(several.count))


@given(SEVERAL, st.integers(-1000, 1000))
def test_a_number_that_no_partition_has_is_refused(several, number):
    """And so is a place: a topic that is none of these, and a partition that was added by someone else."""
    if not 0 <= number < several.count:
        with pytest.raises(ValueError, match=f"no partition {number} of {several.count}"):
            several.place(number)
    for place in (("others", 0), (several.topics[0], several.each), (several.topics[-1], -1)):
        with pytest.raises(ValueError, match="is none of events-0, "):
            several.number(*place)


@given(st.integers(0, 10_000))
def test_of_one_topic_the_number_is_kafkas_own(number):
    """However many it has by now; a name stands for such a topic."""
    one = numbering("events")
    assert one == Numbering(("events",))
    assert one.single
    assert one.place(number) == ("events", number)
    assert one.number("events", number) == number
    assert numbering(one) is one


def answers(*codes):
    """A request that ends with each of ``codes`` in turn (None: with no error), and those that are left."""
    left = list(codes)

    def request():
        future = Future()
        code = left.pop(0)
        future.set_result(None) if code is None else future.set_exception(KafkaException(KafkaError(code)))
        return {"orders": future}

    return request, left


@pytest.mark.parametrize("last", [None, KafkaError.TOPIC_ALREADY_EXISTS])
def test_what_may_be_asked_twice_is_asked_again_where_the_broker_was_let_go_of(last):
    """The answer is lost and the topic may be there already."""
    request, left = answers(KafkaError._DESTROY_BROKER, KafkaError._TRANSPORT, last)
    topics._ask(request, "created", KafkaError.TOPIC_ALREADY_EXISTS)
    assert left == []


@pytest.mark.parametrize(
    ("code", "harmless"),
    [(KafkaError._DESTROY_BROKER, None), (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_ALREADY_EXISTS)],
)
def test_any_other_error_is_one(code, harmless):
    """It is asked once."""
    request, left = answers(code, None)
    with pytest.raises(LabFault, match=r"^topic orders could not be created: "):
        topics._ask(request, "created", harmless)
    assert left == [None]


@pytest.mark.services
def test_a_topic_that_is_made_anew_has_another_id(bootstrap):
    """The same one has the same id, whatever is added to it; one that is not there has none."""
    name = f"events-{uuid.uuid4().hex[:8]}"
    topics.create(bootstrap, {name: 1})
    first = topics.identity(bootstrap, name)
    topics.grow(bootstrap, name, 2)
    assert topics.identity(bootstrap, name) == first
    topics.delete(bootstrap, [name])
    faults = []

    def gone():
        try:
            topics.identity(bootstrap, name)
        except LabFault as fault:
            faults.append(str(fault))
        return bool(faults)

    until(gone, 120, "the topic is gone")
    assert name in faults[0]
    topics.create(bootstrap, {name: 1})
    assert topics.identity(bootstrap, name) != first


@pytest.mark.services
def test_a_group_is_given_its_assignment_interval(bootstrap):
    """For itself alone, and before there is any member. What the broker would refuse is a fault with its reason."""
    name, other = (f"group-{uuid.uuid4().hex[:8]}" for _ in range(2))
    topics.configure_group(bootstrap, name, {INTERVAL: "0"})
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def interval(group):
        (answer,) = admin.describe_configs([ConfigResource(ConfigResource.Type.GROUP, group)]).values()
        return answer.result(30)[INTERVAL].value

    until(lambda: interval(name) == "0", 30, "the broker has taken it", every_s=0.05)
    assert interval(other) == "1000"
    with pytest.raises(LabFault, match=rf"group {name} could not be given .*assignment.interval"):
        topics.configure_group(bootstrap, name, {INTERVAL: "15001"})
