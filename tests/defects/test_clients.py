"""What a consumer commits, and what KEDA reads of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from tests.defects.behaviour import behaviour, judge
from tests.defects.topic import Topic
from tests.oracles.harness import SARAMA, Program

PARTITIONS, EACH = 10, 20
MESSAGES = PARTITIONS * EACH
FAILING = 7  # the offset, in every partition, at which work fails
SHARED, SHARERS = 2, 6  # partitions and members of a share group
BATCHES = 30  # a broker hands out whole batches: of one large batch a single member would have all
SHARE_S = 60  # deadline of a share group's work


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
    shown="MarkMessage commits nothing. It says what the next commit would hold. With automatic commits off there is no "
    "commit, not even when the member leaves. 200 messages are processed, and KEDA still reads a lag of 200. It takes the "
    "group to 10 replicas, one for each partition. The next member processes all 200 again.",
    cure="`session.Commit()` after the mark, or automatic commits, which take nothing but what was marked. With either "
    "KEDA reads 0 and one replica is left, and the next member has nothing to do.",
    price="A request to the broker for each commit, or up to an interval of work that a crash repeats (1 s by default).",
)
def test_sarama_1671_a_mark_is_no_commit(topic, target, sarama):
    """One group marks, one marks and commits, one marks with automatic commits. Each does all of the work."""
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
    "that leaves at the failure loses nothing: of 20 messages in one partition it did 7, and the next one did the other 13.",
    price="A partition stands still while its head is retried.",
)
def test_sarama_1287_a_later_mark_takes_a_failed_message_along(topic, target, sarama):
    """What one group passes over never comes again. Another group leaves there, and all that it did not do comes again."""
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


def share(group: Topic, messages: int) -> list[int]:
    """The messages that each member of the share group has taken and acknowledged, once there were ``messages`` in all."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": group.bootstrap}
    admin = AdminClient(settings)  # which must live until the answer is there
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    changes = [ConfigResource(ConfigResource.Type.GROUP, group.name, incremental_configs=[entry])]
    for change in admin.incremental_alter_configs(changes).values():
        change.result()
    members = [ShareConsumer(settings | {"group.id": group.name, "max.poll.records": 10}) for _ in range(SHARERS)]
    for member in members:
        member.subscribe([group.name])
    taken, limit = [0] * SHARERS, time.monotonic() + SHARE_S
    while sum(taken) < messages:
        assert time.monotonic() < limit, taken
        for number, member in enumerate(members):
            taken[number] += sum(message.error() is None for message in member.poll(timeout=0.5))
    for member in members:
        member.commit_sync(SHARE_S)
        member.close()
    return taken


@behaviour(
    question="Does KEDA scale a share group (KIP-932) by its lag?",
    threads=("kedacore/keda#7920",),
    reported="Members of a share group read the same partition together, so partitions limit them no more. The kafka trigger "
    "works with committed offsets, which such a group has not.",
    shown="No: of two partitions six members have acknowledged all 600 messages, and KEDA still reads a lag of 600. "
    "Where nothing is committed, offsetResetPolicy earliest counts the whole topic. It asks for 60 replicas though "
    "nothing is left. By default the cap holds it at 2, the partitions. With latest KEDA reads 2, one for each partition.",
    cure="A trigger that does not ask for offsets, such as [the rate of arrivals by Prometheus]"
    "(../tests/experiments/test_17_arrivals.py). For a consumer group that has done the same KEDA reads 0.",
    price="Arrivals say nothing of a backlog that is left.",
)
def test_keda_7920_a_share_group_has_no_lag(topic, target):
    """All is done: 600 with earliest, 2 with latest, 0 for a consumer group that has committed as much."""
    shared, plain = topic(SHARED, committed=False), topic(SHARED)
    each = 10 * SHARED
    for _ in range(BATCHES):
        shared.produce(each)
    plain.produce(BATCHES * each)
    plain.leave(0)
    taken = share(shared, BATCHES * each)
    assert sum(taken) == BATCHES * each
    assert min(taken) > 0
    beyond = target(shared.trigger(offsetResetPolicy="earliest", allowIdleConsumers="true"))
    capped = target(shared.trigger(offsetResetPolicy="earliest"))
    latest = target(shared.trigger(offsetResetPolicy="latest", allowIdleConsumers="true"))
    control = target(plain.trigger(offsetResetPolicy="earliest", allowIdleConsumers="true"))
    for one in (beyond, capped, latest, control):
        one.ready()
    judge((beyond.metric(), beyond.steady()), known=(600, 60), cured=(0, 1))
    assert capped.steady() == SHARED
    assert (latest.metric(), control.metric(), control.steady()) == (SHARED, 0, 1)
