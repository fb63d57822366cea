"""The shared store works on as many writes as it has slots, in turn, and each takes the longer the more wait."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.store import Settings
from lab.programs import store as program
from lab.programs.consumer.downstream import SharedSlots
from lab.programs.store import Schedule, Write

TOKEN = "of-this-trial"


def added(schedule, *lengths, since=0.0):
    """Writes of these seconds, which tell no one and are waiting now."""
    writes = [Write(seconds, since, lambda _: None) for seconds in lengths]
    for one in writes:
        schedule.add(one)
    return writes


def replay(slots, contention, callers, seconds, until):
    """How many writes a store does ``until`` s for so many callers, each of which is back at once."""
    schedule, done, now = Schedule(slots, contention), 0, 0.0
    added(schedule, *[seconds] * callers)
    working = schedule.begin(now)
    while True:
        first = min(working, key=lambda one: one.end)
        if (now := first.end) > until:
            return done
        working.remove(first)
        schedule.finish(first)
        done += 1
        added(schedule, seconds, since=now)
        working += schedule.begin(now)


@pytest.mark.parametrize(
    ("callers", "contention", "writes"), [(6, 1.0, 1200), (12, 1.0, 2400), (24, 0.0, 2400), (24, 1.0, 1200), (24, 0.5, 1600)]
)
def test_throughput_follows_the_declared_law(callers, contention, writes):
    """12 slots and writes of 50 ms, for 10 s: as many as callers up to 12, then the same or fewer."""
    assert replay(12, contention, callers, 0.05, 10.0) == pytest.approx(writes, rel=0.02)


@given(st.integers(1, 5), st.lists(st.floats(0.001, 1), min_size=1, max_size=30))
def test_no_more_are_in_work_than_there_are_slots(slots, lengths):
    """And each write that was added is begun once, in order."""
    schedule = Schedule(slots, 1.0)
    writes = added(schedule, *lengths)
    begun = working = schedule.begin(0.0)
    while working:
        assert schedule.busy == len(working) <= slots
        first = min(working, key=lambda one: one.end)
        schedule.finish(first)
        more = schedule.begin(first.end)
        begun = begun + more
        working = [one for one in working if one is not first] + more
    assert begun == writes
    assert schedule.open == 0


def test_a_late_program_costs_a_full_store_nothing():
    """The next write of a slot counts from the end of the one before, also where the timer came 30 ms late."""
    schedule = Schedule(1, 0.0)
    one, two = added(schedule, 0.05, 0.05)
    schedule.begin(10.0)
    schedule.finish(one)
    schedule.begin(one.end + 0.03)
    assert two.end == pytest.approx(one.end + 0.05)


def test_a_write_that_waits_is_withdrawn_with_its_pod():
    """One that is in work is done to its end."""
    schedule = Schedule(1, 0.0)
    one, two = added(schedule, 0.05, 0.05)
    schedule.begin(0.0)
    schedule.withdraw(one)
    schedule.withdraw(two)
    assert (schedule.busy, schedule.open) == (1, 1)


@pytest.fixture
def address(monkeypatch):
    """A store of one slot on a free port, in a thread."""
    monkeypatch.setattr(program, "Gauge", Mock())  # the process's metrics can be registered once only
    monkeypatch.setattr(program, "Counter", Mock())
    loop, store = asyncio.new_event_loop(), program.Store(Settings(pod_ip="", metrics_port=0, store_slots=1, store_token=TOKEN))
    server = loop.run_until_complete(loop.create_server(store.connection, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield "{}:{}".format(*server.sockets[0].getsockname())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    server.close()
    loop.close()


def test_two_pods_share_one_slot(address):
    """Four writes of 50 ms each by two pods take 400 ms together, where each pod alone takes 200.

    A busy machine makes it longer; that it is no longer by the store itself is shown by the schedule's tests.
    """
    begun = time.monotonic()
    pods = [
        threading.Thread(target=lambda: [SharedSlots(2, address, TOKEN).work(100, threading.Event()) for _ in range(4)])
        for _ in range(2)
    ]
    for pod in pods:
        pod.start()
    for pod in pods:
        pod.join()
    assert 0.39 <= time.monotonic() - begun < 30


def test_a_write_is_given_up_when_the_drain_time_is_over(address):
    """As any work is: no receipt, no commit."""
    abandon, begun = threading.Event(), time.monotonic()
    threading.Timer(0.1, abandon.set).start()
    assert not SharedSlots(1, address, TOKEN).work(60_000, abandon)
    assert time.monotonic() - begun < 30


def test_a_store_that_is_not_there_is_an_error():
    """The program ends by it, and its pod is restarted: nothing was written."""
    with pytest.raises(OSError, match="refused"):
        SharedSlots(1, "127.0.0.1:1", TOKEN).work(10, threading.Event())


@pytest.mark.parametrize("asks", ["inf", "nan", "-1", "1e9", "x", "", "1\n1", "1" * 100])
def test_what_is_no_write_closes_its_connection(address, asks):
    """It would hold a slot for ever, or the memory. The store goes on."""
    assert refused(address, f"{TOKEN} {asks}\n")
    assert SharedSlots(1, address, TOKEN).work(1, threading.Event())


@pytest.mark.parametrize("line", ["0.001\n", " 0.001\n", "of-another 0.001\n", f"{TOKEN[:-1]} 0.001\n", "endless" * 20])
def test_a_write_without_the_token_is_none(address, line):
    """Who has not been given the trial's takes no slot of its store."""
    assert refused(address, line)
    assert SharedSlots(1, address, TOKEN).work(1, threading.Event())


def test_a_connection_that_asks_for_nothing_is_closed(address, monkeypatch):
    """Or a thousand of them would keep the pods out. A pod that has asked once may be idle for long."""
    monkeypatch.setattr(program, "SILENT_S", 1.0)
    pod = SharedSlots(1, address, TOKEN)
    assert pod.work(1, threading.Event())
    assert refused(address, "")
    assert pod.work(1, threading.Event())


def test_a_pod_too_many_is_refused(address, monkeypatch):
    """The one that is there is served."""
    monkeypatch.setattr(program, "MOST_PODS", 1)
    first = SharedSlots(1, address, TOKEN)
    assert first.work(1, threading.Event())
    assert refused(address, f"{TOKEN} 0.001\n")
    assert first.work(1, threading.Event())


def refused(address, line):
    """Whether the store closes a connection that says ``line``."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as pod, suppress(ConnectionError):
        pod.sendall(line.encode())
        return pod.recv(1) == b""
    return True
