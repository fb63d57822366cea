"""What is held of the reports does not grow with them, and what can't be kept of a trial ends it."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from lab import clock
from lab.errors import InputError, LabFault
from lab.trial import record_parts
from lab.trial.listen import Listener, Reports, checked
from lab.trial.stage import Stage
from lab.trial.watch import Transitions

SOON_S = 60
FULL = Path("/dev/full")  # a disk without space


def test_what_is_held_of_an_hours_reports_is_small() -> None:
    """Ten thousand commits of two consumers: the last of each kind, what each owns, and when each phase began."""
    reports, spike = Reports(), {"event": "phase", "phase": "spike", "pod": "producer"}
    reports.add(spike | {"at": 5.0})
    for number in range(10_000):
        own = {"pod": f"pod-{number % 2}", "t": number}
        reports.add(own | {"event": "committed", "offsets": list(range(24))})
        reports.add(own | {"event": "assigned", "owned": number % 24})
    reports.add(spike | {"at": 9.0})
    assert (reports.begun("spike"), reports.begun("drain"), reports.phase) == (5.0, None, "spike")
    assert reports.owned() == {"pod-0": 9_998 % 24, "pod-1": 9_999 % 24}
    assert reports.last("committed") == own | {"event": "committed", "offsets": list(range(24))}
    assert reports.last("produced") is None
    assert len(pickle.dumps(reports)) < 2000


@pytest.fixture
def producer() -> Producer:
    """A producer with a broker of its own, which the client library plays."""
    return Producer({"test.mock.num.brokers": 1})


@pytest.fixture
def reports(producer: Producer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Listener, threading.Event]]:
    """A listener that writes to the file of the test's parameter, and what it sets when it has heard something."""
    heard = threading.Event()
    (broker,) = producer.list_topics("reports", timeout=SOON_S).brokers.values()
    listener = Listener(f"{broker.host}:{broker.port}", ["reports"], request.param or tmp_path / "lines", heard.set)
    yield listener, heard
    listener.close()


@pytest.mark.parametrize(
    ("reports", "said", "fault"),
    [
        (None, '{"event": "started", "pod": "a"}', None),
        (FULL, '{"event": "started", "pod": "a"}', "a report could not be kept: [Errno 28] No space left on device"),
        (None, '{"event": ', "a report could not be kept: Expecting value"),
        (None, '{"pod": "a"}', "a report could not be kept: 'event'"),
        (
            None,
            '{"event": "lost", "pod": "a", "partitions": [], "owned": "2"}',
            "a report could not be kept: a report of a: owned: '2'",
        ),
    ],
    indirect=["reports"],
)
def test_a_report_that_can_not_be_kept_is_told(
    reports: tuple[Listener, threading.Event], producer: Producer, said: str, fault: str | None
) -> None:
    """The listener ends, and waiters are let know: the trial has a gap from there on."""
    listener, heard = reports
    producer.produce("reports", value=said, partition=0)
    producer.flush(SOON_S)
    assert heard.wait(SOON_S)
    assert (listener.fault or "").startswith(fault or "")
    assert (listener.fault is None) == (fault is None)


def test_a_report_without_a_time_has_that_of_its_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """null is none. Without a pod, which stdout tells of itself, it is refused: nobody knows who owns what."""
    monkeypatch.setattr(clock, "now", lambda: 7.0)
    report = {"event": "assigned", "pod": "a", "partitions": [1], "owned": 1}
    assert [checked(report | more)["t"] for more in ({}, {"t": None}, {"t": 5.0})] == [7.0, 7.0, 5.0]
    with pytest.raises(InputError, match="pod: missing"):
        checked(report | {"pod": None})


@pytest.mark.parametrize(("code", "fault"), [(KafkaError._AUTO_OFFSET_RESET, "OFFSET_RESET"), (KafkaError._TRANSPORT, "")])
def test_what_a_broker_no_longer_has_is_told(code: int, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error comes in the place of a message, and what came with it is kept.

    A connection that broke is no gap: the client opens it again.
    """
    failed = SimpleNamespace(error=lambda: KafkaError(code))
    report = SimpleNamespace(error=lambda: None, value=lambda: b'{"event": "started", "pod": "a"}')
    turns, heard, given = iter([[failed, report]]), threading.Event(), dict[str, Any]()

    def client(settings: dict[str, Any]) -> SimpleNamespace:
        given.update(settings)
        return SimpleNamespace(assign=lambda places: None, consume=lambda *_: next(turns, []), close=lambda: None)

    monkeypatch.setattr("lab.trial.listen.Consumer", client)
    listener = Listener("b:1", ["reports"], tmp_path / "lines", heard.set)
    assert heard.wait(SOON_S)
    listener.close()
    assert fault in (listener.fault or "")
    assert (listener.fault is None) is (not fault)
    assert listener.last("started") is not None
    assert given["auto.offset.reset"] == "error", "librdkafka would go on at the end of the log by itself"


class Kind:
    """The objects of one kind: one, and then an error that no watch expects."""

    def objects(self) -> tuple[str, list[dict[str, Any]]]:
        """The one."""
        return "1", [{"metadata": {"name": "a", "resourceVersion": "1"}}]

    def events(self, version: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """None."""
        raise RuntimeError("a bug")

    def stop(self) -> None:
        """There is nothing to stop."""


@pytest.mark.parametrize(("file", "why"), [(FULL, "No space left"), (None, "a bug")])
def test_a_watch_event_that_can_not_be_kept_is_told(
    file: Path | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the watch itself ends by an error that is none of a connection."""
    monkeypatch.setattr("lab.cluster.apply.dynamic_client", lambda _: None)
    monkeypatch.setattr("lab.trial.watch.Kind", lambda *_: Kind())
    watched = Transitions(None, "x", file or tmp_path / "lines", (("v1", "Pod"),))
    watched.wait(lambda: watched.fault, SOON_S, "the fault")
    watched.close()
    assert watched.fault is not None
    assert watched.fault.startswith("a watch event could not be kept: ")
    assert why in watched.fault


@pytest.mark.parametrize("writer", ["transitions", "reports", "load"])
def test_what_can_not_be_kept_ends_the_trial(writer: str, tmp_path: Path) -> None:
    """At the next look, a second later at most: nothing waits for the profile. No table with a gap is made of it."""
    made = object.__new__(Stage)
    for name in ("transitions", "reports", "load"):
        setattr(made, name, SimpleNamespace(fault="no space" if name == writer else None, field=lambda *_: None))
    made.stop, made.brokers, made.lead, made.folder = threading.Event(), None, made, tmp_path
    made.cluster = SimpleNamespace(check=lambda: None)
    made.inputs = SimpleNamespace(workload=SimpleNamespace(own=False))
    with pytest.raises(LabFault, match="no space"):
        made.check()
    row = {"t": 1, "mono": 1, "pod": "a", "event": "started"}
    for name, kept in (("transitions", "transitions"), ("group_events", "reports")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row | {"kind": "Pod", "name": "a", "object": {}}) + "\n")
        if kept == writer:
            with pytest.raises(LabFault, match="no space"):
                record_parts._table(made, name, tmp_path)
        else:
            record_parts._table(made, name, tmp_path)
    getattr(made, writer).fault = None
    made.check()
