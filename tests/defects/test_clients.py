"""What a consumer commits, and what KEDA reads of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.defects.behaviour import behaviour, judge
from tests.defects.topic import Topic
from tests.oracles.harness import Program
from tests.oracles.sarama import SARAMA

PARTITIONS, EACH = 10, 20
MESSAGES = PARTITIONS * EACH
FAILING = 7  # the offset, in every partition, at which work fails


@pytest.fixture(scope="module")
def sarama() -> Iterator[Program]:
    """A program whose members of groups use Sarama."""
    with SARAMA.running() as program:
        yield program


def consume(program: Program, group: Topic, **settings: Any) -> dict[str, Any]:
    """What a new member of the group consumes until nothing more comes. It commits as ``settings`` say, and leaves."""
    case = {"bootstrap": group.bootstrap, "topic": group.name, "group": group.name} | settings
    answer: dict[str, Any] = program.answers([case])[0]
    assert not answer["error"], answer
    return answer


@behaviour(
    question="Why does lag never fall, though my Go consumer has marked every message?",
    threads=("IBM/sarama#1671", "IBM/sarama#1570"),
    reported="`AutoCommit.Enable = false` and `session.MarkMessage` after the work, and the group's offsets never change.",
    shown="MarkMessage commits nothing: it only says what the next commit would hold, and without automatic commits "
    "there is none, not even when the member leaves. 200 messages are processed, KEDA still reads a lag of 200, and "
    "the group is taken to the 10 replicas of its 10 partitions. Its next member processes all 200 again.",
    cure="`session.Commit()` after the mark, or automatic commits, which take nothing but what was marked. With either "
    "KEDA reads 0 and one replica is left, and the next member has nothing to do.",
    price="A request to the broker for each commit, or up to an interval of work that a crash repeats (1 s by default).",
)
def test_sarama_1671_a_mark_is_no_commit(topic, target, sarama):
    """One group marks, one marks and commits, one marks with automatic commits: all do all the work."""
    ways = {"mark": {}, "commit": {"commit": True}, "automatic": {"autoCommit": True}}
    groups = {way: topic(PARTITIONS, committed=False) for way in ways}
    again = {}
    for way, group in groups.items():
        group.produce(MESSAGES)
        first = consume(sarama, group, **ways[way])
        assert len(first["processed"]) == MESSAGES
        again[way] = len(consume(sarama, group, **ways[way])["processed"])
    scaled = {way: target(group.trigger(offsetResetPolicy="earliest", lagThreshold=str(EACH))) for way, group in groups.items()}
    for one in scaled.values():
        one.ready()
    found = {way: (one.metric(), one.steady(), again[way]) for way, one in scaled.items()}
    judge(found["mark"], known=(MESSAGES, PARTITIONS, MESSAGES), cured=(0, 1, 0))
    assert found["commit"] == found["automatic"] == (0, 1, 0)


@behaviour(
    question="Does a message that I did not mark come again?",
    threads=("IBM/sarama#1287", "IBM/sarama#1570"),
    reported="A message whose work failed is not marked, the next one is, and after a restart the failed one is not delivered.",
    shown="A commit is one offset for each partition, so a mark holds for all messages before it. Of 200 messages 10 fail and "
    "are not marked; the others are marked and committed one by one. KEDA reads a lag of 0, and the next member gets "
    "nothing: the group never works those 10 off.",
    cure="No message is passed over: retry it where it stands, or write it to a dead-letter topic and mark it then. A member "
    "that leaves at the failure loses nothing: the next one gets all of the 10 again.",
    price="A partition stands still while its head is retried.",
)
def test_sarama_1287_a_later_mark_takes_a_failed_message_along(topic, target, sarama):
    """One group passes over what fails, one leaves there: every message that it did not process comes again."""
    passing, leaving = topic(PARTITIONS, committed=False), topic(1, committed=False)
    passing.produce(MESSAGES)
    leaving.produce(EACH)
    first = consume(sarama, passing, commit=True, fails=[FAILING])
    assert (len(first["processed"]), len(first["failed"])) == (MESSAGES - PARTITIONS, PARTITIONS)
    judge(len(consume(sarama, passing, commit=True)["processed"]), known=0, cured=PARTITIONS)
    scaled = target(passing.trigger(offsetResetPolicy="earliest"))
    scaled.ready()
    assert scaled.metric() == 0
    first = consume(sarama, leaving, commit=True, fails=[FAILING], leaves=True)
    assert (len(first["processed"]), first["failed"]) == (FAILING, [[0, FAILING]])
    second = consume(sarama, leaving, commit=True)
    assert second["processed"] == [[0, offset] for offset in range(FAILING, EACH)]
