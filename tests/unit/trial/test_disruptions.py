"""Faults that are no signal to one process strike what they say, are taken back, and say where nothing was struck."""

import signal
from contextlib import nullcontext
from types import SimpleNamespace

import psutil
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import clock
from lab.errors import LabFault
from lab.inputs.faults import (
    BROKER,
    CONSUMER,
    DRAIN,
    EVICT,
    FULL,
    KILL,
    NODE,
    ROLLOUT,
    ROOTS,
    SLOW,
    STOP,
    STORE,
    TERMINATE,
)
from lab.kafka.replicas import Partition
from lab.trial import disruptions, scaling
from lab.trial.nemesis import injected
from lab.wait import until
from tests.unit.trial.test_events import pod, process
from tests.unit.trial.test_nemesis import LONG_S, daemon, planned, rows, stage, status

__all__ = ["daemon", "process"]


class Api:
    """Keeps what the API server is asked for; it answers with ``refusal``, a status, where there is one."""

    def __init__(self, refusal=0):
        self.asked, self.refusal = [], refusal

    def create_namespaced_pod_eviction(self, pod, _namespace, _body):
        """An eviction."""
        if self.refusal:
            raise ApiException(self.refusal, "no")
        self.asked.append(pod)

    def patch_node(self, node, body):
        """A node that is cordoned, or opened again."""
        self.asked.append((node, body["spec"]["unschedulable"]))


@pytest.fixture
def api(monkeypatch):
    """An API server, of which a test may change the answer."""
    made = Api()
    monkeypatch.setattr(disruptions, "ASK_S", 0.2)
    monkeypatch.setattr(client, "CoreV1Api", lambda _: made)
    return made


def asking(*faults, pods=(), owned=None):
    """A trial whose nemesis asks the API server."""
    made = stage(*faults, pods=pods, owned=owned)
    made.api, made.namespace = None, "trial-x"
    return made


@pytest.mark.parametrize(("status", "skipped"), [(0, ""), (404, ""), (503, "a evicted: not within 0.2 s (no)")])
def test_a_drained_node_is_open_again_whatever_happens(api, status, skipped):
    """Its consumers are evicted meanwhile. An API server that does not answer is said, one that refuses is a fault."""
    api.refusal = status
    pods = [{"metadata": {"name": name}, "spec": {"nodeName": "lab-node"}} for name in ("a", "b")]
    running = asking(planned(NODE, DRAIN), planned(NODE, DRAIN, at=LONG_S), pods=pods)
    with injected(running):
        (row,) = rows(running)
        assert (row.component, row.fault, row.skipped, row.until) == (NODE, DRAIN, skipped, None)
    assert api.asked == [("lab-node", True), *(["a", "b"] if not status else []), ("lab-node", False)]
    assert running.journal.trial.faults[0].until > row.t
    api.refusal, again = 403, asking(planned(NODE, DRAIN), pods=pods)
    with pytest.raises(LabFault, match="could not be injected"), injected(again):
        until(lambda: False, 20, "never", again.nemesis.check, every_s=0.01)
    assert api.asked[-1] == ("lab-node", False)


def test_the_consumer_that_is_drawn_is_evicted(api):
    """It drains, so nothing is to be taken back."""
    running = asking(planned(CONSUMER, EVICT), pods=[pod("most", 1), pod("less", 2)], owned={"most": 9, "less": 5})
    with injected(running):
        (row,) = rows(running)
    assert (row.pod, row.owned, row.skipped, row.until, api.asked) == ("most", 9, "", None, ["most"])
    api.refusal, late = 404, asking(planned(CONSUMER, EVICT), pods=[pod("most", 1)], owned={"most": 9})
    with injected(late):
        assert rows(late)[0].skipped == "most was gone"


def test_a_rolling_update_comes_with_a_scale_out(monkeypatch):
    """With the first one in its time; without one at its end."""
    wanted, looks, rolled = [4], [], []
    monkeypatch.setattr(scaling, "roll", lambda _: rolled.append(clock.now()))
    running = asking(planned(CONSUMER, ROLLOUT), planned(CONSUMER, ROLLOUT, LONG_S), pods=[pod("a", 1)], owned={"a": 9})
    running.field = lambda name, *path: (looks.append(path), wanted[0])[1] if path[0] == "spec" else 4
    with injected(running):
        until(lambda: len(looks) > 1, 20, "waiting", every_s=0.01)
        assert not running.journal.trial.faults
        wanted[0] = 6
        assert rows(running)[0].fault == ROLLOUT
    wanted[0], late = 4, asking(planned(CONSUMER, ROLLOUT, for_s=0.15), pods=[pod("a", 1)], owned={"a": 9})
    late.field = running.field
    with injected(late):
        rows(late)
    assert len(rolled) == 2


def test_a_slow_store_goes_on_now_and_then(process):
    """And all the time when it is over."""
    store = process("store-x")
    running = stage(planned(STORE, SLOW), pods=[pod("store-x", store.pid)])
    with injected(running):
        (row,) = rows(running)
        for wanted in (True, False, True):
            until(lambda: (status(store.pid) == psutil.STATUS_STOPPED) is wanted, 10, "its turn", every_s=0.001)  # noqa: B023
    until(lambda: status(store.pid) != psutil.STATUS_STOPPED, 10, "going on", every_s=0.01)
    assert (row.component, row.pod, row.pid) == (STORE, "store-x", store.pid)


@pytest.mark.parametrize(
    ("kind", "draw", "in_sync", "done"),
    [
        (KILL, 0.4, {1, 2, 3}, ["kill 1", "start [1]"]),
        (TERMINATE, 0.6, {1, 2, 3}, ["roll 2", "again"]),
        (FULL, 0.6, {1, 2, 3}, ["fill 2", "again"]),
        (STOP, 0.6, {1, 2, 3}, [signal.SIGSTOP, signal.SIGCONT]),
        (KILL, 0.4, {1, 2}, []),
    ],
)
def test_a_broker_goes_and_comes_back(monkeypatch, kind, draw, in_sync, done):
    """The leader, or by the other half of the draw the coordinator; none while a copy is behind."""
    told = []
    quorum = SimpleNamespace(
        running=lambda _: SimpleNamespace(process=SimpleNamespace(pid=7, send_signal=told.append)),
        kill=lambda number: told.append(f"kill {number}") or 7,
        roll=lambda number: told.append(f"roll {number}") or (lambda: told.append("again")),
        fill=lambda number: told.append(f"fill {number}") or (lambda: told.append("again")),
        start=lambda numbers: told.append(f"start {numbers}"),
    )
    copies = [Partition(1, frozenset({1, 2, 3}), frozenset(in_sync))]
    replicas = SimpleNamespace(read=lambda *_: copies, leads_most=lambda *_: 1, coordinator=lambda _: 2)
    monkeypatch.setattr(disruptions, "own_brokers", lambda _: (quorum, replicas))
    running = stage(planned(BROKER, kind, draw=draw))
    running.names = {"TOPIC": "events", "GROUP": "enrich"}
    with injected(running):
        (row,) = rows(running)
    assert told == done
    assert (row.pid, row.skipped) == ((7, "") if done else (None, disruptions.UNREADY))


@pytest.mark.parametrize(("answers", "line"), [(True, ""), (False, "the API server back: not within 0.2 s")])
def test_a_trial_goes_on_when_its_api_server_is_back(daemon, monkeypatch, answers, line):
    """What takes the trial down asks it."""

    def asked():
        if not answers:
            raise ApiException(503, "no")

    monkeypatch.setattr(disruptions, "BACK_S", 0.2)
    monkeypatch.setattr(client, "VersionApi", lambda _: SimpleNamespace(get_code=asked))
    running = stage(planned(ROOTS[1], KILL), daemon=daemon)
    running.api = None
    with nullcontext() if answers else pytest.raises(LabFault, match=line), injected(running):
        rows(running)
