"""A trial of several topics: what its pods are told, what its triggers may name, and what it can't have."""

import dataclasses
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.__main__ import main
from lab.inputs import consumer, objects, producer, topics, workload
from lab.inputs import policy as policies
from lab.inputs.adopt import Replaced, adopt
from lab.inputs.events import Grow
from lab.inputs.triggers.parsing import check_topics, topic_places
from lab.inputs.workload import Workload
from lab.kafka.numbering import Numbering
from lab.model.baseline import baseline
from tests.unit.inputs import written
from tests.unit.inputs.written import CRON, refused, trial

TWO = paths.MANIFESTS / "scaledobjects" / "topics-4500.yaml"
LASTING = {"sustainSeconds": "60", "scalerAddress": "s:6000"}


def read(policy="topics-4500", count=2, **how):
    """The inputs of a trial with so many topics."""
    return trial("plateau", policy, Workload(topics=count), **how)


def scaled(*named, kind="kafka"):
    """A ScaledObject with a trigger for each of these fields of metadata."""
    own = {"bootstrapServers": "b:9092", "consumerGroup": "g", "lagThreshold": "4", "offsetResetPolicy": "latest"}
    own |= LASTING if kind == "external" else {}
    return written.scaled([{"type": kind, "metadata": own | one} for one in named], minReplicaCount=1)


@given(st.integers(1, topics.MOST), st.integers(1, 25))
def test_pods_and_recorder_number_the_partitions_alike(count, each):
    """By what the ConfigMap tells: the recorder reads its names, a program makes them from the first one."""
    told = topics.environment("events-x", count, count * each) | {topics.TOPICS: str(count)}
    program = topics.Settings(topic="events-x", topics=count, topic_partitions=int(told.get("TOPIC_PARTITIONS", 0)))
    assert topics.numbering(told) == program.numbering
    assert program.numbering.topics == tuple(told[name] for name in topics.variables(count))
    if count > 1:
        assert program.numbering.count == count * each


def test_a_trial_tells_its_pods_each_topic():
    """KEDA finds a topic's name where the trigger says, in the target's environment."""
    told = read().environment("127.0.0.1:1", "run")
    wanted = {"TOPIC": "events-run", "TOPIC_2": "events-run-2", "TOPICS": "2", "TOPIC_PARTITIONS": "12"}
    assert wanted.items() <= told.items()
    (made,) = (item["data"] for item in objects.applied(read(), told) if item["kind"] == "ConfigMap")
    assert topics.numbering(made) == Numbering(("events-run", "events-run-2"), 12)


def test_a_trial_of_one_topic_is_what_it_was():
    """Its id, and what its pods are told but for the number of topics; nothing is numbered anew."""
    one = read("lag-4500", 1)
    assert "topics" not in one.identity()["workload"]
    assert one.id == trial().id
    told = one.environment("127.0.0.1:1", "run")
    assert {name for name in told if name.startswith("TOPIC")} == {"TOPIC", "TOPICS"}
    assert topics.numbering(told) == topics.numbering({"TOPIC": "events-run"}) == Numbering(("events-run",))


@pytest.mark.parametrize("program", [consumer, producer])
def test_a_program_of_several_topics_must_know_their_size(program):
    """One line with flag, value and range; with it the numbers are there."""
    several = ["--bootstrap-servers=x", "--topics=3", "--topic=orders"]
    few = program.settings(program.flags().parse_args(several))
    assert refused(getattr, few, "numbering") == "command line: --topic-partitions: 0 | 1 to 10,000 with --topics 3"
    chosen = program.settings(program.flags().parse_args([*several, "--topic-partitions=8"]))
    assert chosen.numbering == Numbering(("orders", "orders-2", "orders-3"), 8)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("topics: 0", "my.yaml: topics: 0 | 1 to 8"),
        ("topics: 9", "my.yaml: topics: 9 | 1 to 8"),
        ("topics: two", "my.yaml: topics: 'two' | 1 to 8"),
        ("topics: 5", "my.yaml: topics: 5 | 1, 2, 3, 4, 6, 8: each topic has as many of the 24 partitions"),
        ("topics: 2\npartitions: 7", "my.yaml: topics: 2 | 1, 7: each topic has as many of the 7 part"),
    ],
)
def test_a_number_of_topics_that_can_t_be_is_one_clear_line(content, line, tmp_path, monkeypatch):
    """File, field, value and what is allowed, of a workload's file."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my.yaml"
    file.write_text(f"kind: Workload\n{content}\n")
    assert refused(workload.load, file.relative_to(tmp_path)).startswith(line)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"count": 5}, "trial: topics: 5 | 1, 2, 3, 4, 6, 8: each topic has as many of the 24"),
        ({"partitions": 9}, "trial: topics: 2 | 1, 3: each topic has as many of the 9 partitions"),
        ({"count": 1}, "4500.yaml: spec.triggers[1].metadata.topicFromEnv: 'TOPIC_2' | TOPIC, or topics: 2 in the"),
        ({"during": {"spike": Grow(48)}}, "trial: during.spike: Grow(partitions=48) | none with topics 2"),
        ({"driver": "ridehailing/locust"}, "trial: driver: 'ridehailing/locust' | producer/job with"),
        ({"policy": "zero-4500-hpa"}, "zero-4500-hpa.yaml: spec.metrics: 'External' | a ScaledObject, or a LagController"),
    ],
)
def test_what_a_trial_of_several_topics_can_t_have_is_one_clear_line(how, line):
    """Where, field, value and what is allowed, before anything starts."""
    assert line in refused(read, **how)


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ([{"topic": "orders"}, {"topic": "payments"}, {"topic": "orders"}], (0, 1, 0)),
        ([{"topicFromEnv": "TOPIC_2"}, {"topicFromEnv": "TOPIC"}], (1, 0)),
        ([{"topic": "orders"}, {"topicFromEnv": "TOPIC"}, {"topicFromEnv": "PAYMENTS"}], (1, 0, 2)),
        ([{}, {"topic": "orders"}], (None, 0)),
        ([{"topic": "orders", "topicFromEnv": "TOPIC_3"}], (0,)),
    ],
)
def test_topics_take_their_places_by_name_and_in_the_order_in_which_they_appear(named, found):
    """The lab's own variables are their places; a trigger without a topic has none; a word comes before a variable."""
    assert topic_places(scaled(*named).triggers) == found


def test_a_persistent_lag_trigger_has_its_place_too():
    """By the metadata that is for its scaler; a trigger that reads no lag has none."""
    triggers = scaled({"topic": "orders"}, {"topicFromEnv": "REFUNDS"}, kind="external").triggers
    assert topic_places(triggers) == (0, 1)
    (lag,) = scaled({"topic": "orders"}).content["spec"]["triggers"]
    assert topic_places(written.scaled([CRON, lag]).triggers) == (None, 0)


def test_a_topic_beyond_those_that_there_are_is_one_clear_line():
    """It names the trigger's field, the topics that are there, and the setting that gives more."""
    three = scaled({"topic": "orders"}, {"topic": "payments"}, {"topicFromEnv": "REFUNDS"})
    check_topics(three.triggers, 3, "my.yaml")
    assert refused(check_topics, three.triggers, 2, "my.yaml") == (
        "my.yaml: spec.triggers[2].metadata.topicFromEnv: 'REFUNDS' | "
        "orders, payments, or topics: 3 in the workload (at most 8)"
    )


def test_a_trigger_on_partitions_that_there_are_not_is_one_clear_line(tmp_path):
    """KEDA fails at each of its queries. Of two topics each has half of the partitions."""
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(scaled({"topic": "orders"}, {"topic": "payments", "partitionLimitation": "12-15"}).content))
    line = "orders.yaml: spec.triggers[1].metadata.partitionLimitation: '12,13,14,15' | some of the topic's partitions, 0 to 11"
    assert refused(read, file, 2, scale="real").endswith(f"/{line}")
    file.write_text(yaml.safe_dump(scaled({"topic": "orders", "partitionLimitation": "12-15"}).content))
    assert read(file, 1, scale="real").policy.triggers[0].partitions == {12, 13, 14, 15}


def test_a_users_topics_become_the_trials_in_their_order(tmp_path):
    """What stood there is told; every other word of theirs stays. With one topic the file is refused by the user's names."""
    theirs = scaled({"topic": "orders"}, {"topicFromEnv": "PAYMENTS", "partitionLimitation": "0-3"}, {"topic": "orders"})
    adopted, replaced = adopt(theirs, 2)
    named = [trigger["metadata"] for trigger in adopted.content["spec"]["triggers"]]
    assert [one["topicFromEnv"] for one in named] == ["TOPIC", "TOPIC_2", "TOPIC"]
    assert "topic" not in named[0]
    assert named[1]["partitionLimitation"] == "0-3"
    assert Replaced("spec.triggers[0].metadata.topic", "orders", "topicFromEnv: TOPIC") in replaced
    assert Replaced("spec.triggers[1].metadata.topicFromEnv", "PAYMENTS", "TOPIC_2") in replaced
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(scaled({"topic": "orders"}, {"topic": "payments"}).content))
    assert [one.topic.variable for one in read(file, scale="real").policy.triggers] == ["TOPIC", "TOPIC_2"]
    assert "orders.yaml: spec.triggers[1].metadata.topic: 'payments' | orders," in refused(read, file, 1, scale="real")


@pytest.mark.parametrize(("count", "replicas"), [(1, 6), (2, 3), (4, 2)])
def test_without_a_commit_a_trigger_counts_the_partitions_of_its_topic(count, replicas):
    """Under latest each counts as a message: 24 / topics, of which a pod may hold 4."""
    assert baseline(scaled({"topicFromEnv": "TOPIC"}), 24, count).replicas == replicas
    assert baseline(scaled({}), 24, count).replicas == 6  # without a topic it counts all
    assert baseline(scaled({"topicFromEnv": "TOPIC"}, kind="external"), 24, count).replicas == replicas


def test_the_committed_policies_of_two_topics_differ_from_those_of_halves_in_the_topic_alone():
    """The experiment compares like with like."""
    of_topics, of_halves = (policies.load(TWO.with_name(f"{kind}-4500.yaml")) for kind in ("topics", "halves"))
    for own, other in zip(of_topics.triggers, of_halves.triggers, strict=True):
        assert dataclasses.replace(own, topic=other.topic, partitions=other.partitions) == other
    assert [one.topic.variable for one in of_topics.triggers] == ["TOPIC", "TOPIC_2"]
    parts = [set(one.partitions) for one in of_halves.triggers]
    numbers = topics.numbering(read().environment("b:1", "run"))
    assert parts == [{numbers.number(topic, n) for n in range(numbers.each)} for topic in numbers.topics]


def test_the_simulator_is_told_the_topics_by_flag_or_workload(tmp_path, capsys):
    """Both give the same; without either the second topic is refused in one line."""
    pods = tmp_path / "pods.yaml"
    pods.write_text("kind: Workload\nprocess_ms: 5-15\nconcurrency: 1\ntopics: 2\n")
    given = [f"--scaledobject={TWO}", "--profile=plateau", "--start-s=60", "--in-flight-s=2.5", "--json"]
    told = []
    for more in ([f"--workload={pods}"], ["--pod-rate=100", "--topics=2"]):
        assert main(["simulate", *given, *more, "--fail-on=nothing"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert told[0]["topics"] == 2
    assert main(["simulate", *given, "--pod-rate=100"]) == 2
    assert "topics-4500.yaml:42: spec.triggers[1].metadata.topicFromEnv: 'TOPIC_2' is not allowed" in capsys.readouterr().err
    assert main(["simulate", *given, "--pod-rate=100", "--topics=5"]) == 2
    assert "command line: topics: 5 is not allowed; allowed: 1, 2, 3, 4, 6, 8: each topic" in capsys.readouterr().err
