"""The nemesis strikes what the schedule says and takes it back, whatever happens; each injection is a row of the record."""

import signal
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import psutil
import pytest

from lab import clock
from lab.errors import LabFault
from lab.host import processes
from lab.inputs.faults import CONSUMER, CUT, DRAIN, EVICT, EXPORTER, GROUP, KILL, NODE, STOP, STORM, TERMINATE, Injection
from lab.inputs.workload import Workload
from lab.trial import disruptions, nemesis, network, signals
from lab.trial.nemesis import injected, ranked
from lab.wait import until
from tests.unit.trial import test_events
from tests.unit.trial.test_events import pod, process

__all__ = ["process"]

DAEMON = "keda-operator"
LONG_S = 60.0


def planned(component, kind, at=0.0, for_s=LONG_S, draw=0.0):
    """An injection at once."""
    return Injection(at, component, kind, for_s, draw)


def stage(*faults, pods=(), owned=None, daemon=None):
    """A trial whose profile begins now, with these faults, pods and component."""
    made = test_events.stage(list(pods), owned or {})
    exporters = [one for one in pods if one["metadata"]["name"].startswith(EXPORTER)]
    made.transitions = SimpleNamespace(pods=lambda app: exporters if app == EXPORTER else list(pods))
    made.reports.last = lambda event: {"start": clock.now()} if event == "profile" else None
    made.inputs = SimpleNamespace(faults=faults, id="a trial")
    made.cluster = SimpleNamespace(component=lambda name: daemon, spoiled="")
    return made


def rows(running, count=1):
    """The faults of the record, once there are so many that struck."""
    until(lambda: len(running.journal.trial.faults) >= count, 20, "struck", running.nemesis.check, every_s=0.01)
    return running.journal.trial.faults


@pytest.fixture
def daemon(tmp_path):
    """A component that runs."""
    one = processes.start(tmp_path, DAEMON, ["sleep", "300"])
    yield one
    one.process.kill()
    one.process.wait()


def status(pid):
    """What the kernel says of a process."""
    return psutil.Process(pid).status()


def test_a_killed_component_is_expected_down_and_comes_back(daemon):
    """With its command. Meanwhile it is no fault of the lab; dead by itself it is, as before, and can't be struck."""
    running, first = stage(planned(DAEMON, KILL, for_s=0.2), daemon=daemon), daemon.process
    command = psutil.Process(first.pid).cmdline()
    with injected(running):
        (row,) = rows(running)
        assert first.wait(10) == -signal.SIGKILL
        daemon.check()
        until(lambda: running.journal.trial.faults[0].until is not None, 20, "back", every_s=0.01)
        daemon.check()
        assert (row.fault, row.component, row.pid) == (KILL, DAEMON, first.pid)
        assert psutil.Process(daemon.process.pid).cmdline() == command
        assert daemon.process.pid != first.pid
    daemon.process.kill()
    daemon.process.wait()
    with pytest.raises(LabFault, match=f"{DAEMON} ended with code -9"):
        daemon.check()
    again = stage(planned(DAEMON, KILL), daemon=daemon)
    with pytest.raises(LabFault, match=f"not be injected or taken back: {DAEMON} ended"), injected(again):
        until(lambda: False, 20, "never", again.nemesis.check, every_s=0.01)


@pytest.mark.parametrize("kind", [KILL, STOP])
def test_what_is_struck_is_taken_back_however_the_trial_ends(daemon, kind):
    """Ctrl-C in the middle of a fault that would last a minute: the component is there again, and the row says when."""
    running = stage(planned(DAEMON, kind), planned(DAEMON, STOP, at=LONG_S), daemon=daemon)

    def interrupted():
        with injected(running):
            rows(running)
            if kind == STOP:
                until(lambda: status(daemon.process.pid) == psutil.STATUS_STOPPED, 10, "stopped", every_s=0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    daemon.check()
    assert not daemon.down
    until(lambda: status(daemon.process.pid) != psutil.STATUS_STOPPED, 10, "going on", every_s=0.01)
    (row,) = running.journal.trial.faults
    assert row.until >= row.t


def test_a_node_is_opened_again_before_the_api_server_is_struck(daemon, monkeypatch):
    """Also where this thread was late: what opens it asks the API server. An eviction waits for an API server that is away."""
    done = []
    monkeypatch.setattr(disruptions, "await_api", lambda stage: done.append("back"))
    drain = partial(done.append, "drained"), partial(done.append, "open")
    monkeypatch.setattr(disruptions, "drain", lambda stage: drain)
    monkeypatch.setattr(disruptions, "evict", lambda stage, pod: done.append("evicted"))
    pods = [{"metadata": {"name": "a"}, "status": {}}]
    faults = (
        planned(NODE, DRAIN, for_s=0.4),
        planned("kube-apiserver", STOP, at=0.1, for_s=0.4),
        planned(CONSUMER, EVICT, at=0.6),
    )
    running = stage(*faults, pods=pods, owned={"a": 1}, daemon=daemon)
    monkeypatch.setattr(daemon.process, "send_signal", lambda sent: done.append(sent.name))
    monkeypatch.setattr(signals, "running", lambda stage, component: {"a": "process://1"})
    with injected(running):
        until(lambda: "evicted" in done, 20, "all", running.nemesis.check, every_s=0.01)
    assert done == ["drained", "open", "SIGSTOP", "SIGCONT", "evicted", "back"]


@pytest.mark.parametrize(("first", "second"), [(DAEMON, "etcd"), ("etcd", DAEMON), ("etcd", "kube-apiserver")])
def test_no_component_starts_while_what_it_asks_is_away(monkeypatch, first, second):
    """A late thread, and a list, may have both due at a time: the second waits until the first is up again."""
    done = []

    def component(name):
        kill, restart = partial(done.append, f"{name} away"), partial(done.append, f"{name} back")
        return SimpleNamespace(kill=kill, restart=restart, process=SimpleNamespace(pid=1))

    for name in ("BACK_S", "SLOW_BACK_S"):
        monkeypatch.setattr(nemesis, name, 0.3)
    monkeypatch.setattr(disruptions, "await_api", lambda stage: None)
    running = stage(planned(first, KILL, for_s=0.2), planned(second, KILL, at=0.1, for_s=0.1))
    running.cluster = SimpleNamespace(component=component)
    with injected(running):
        one, other = rows(running, 2)
    assert done == [f"{first} away", f"{first} back", f"{second} away", f"{second} back"]
    assert (one.component, other.component) == (first, second)
    assert other.t > one.until + 0.25


@pytest.mark.parametrize(("fails", "spoiled"), [(1, ""), (2, "a fault could not be taken back: no answer")])
def test_what_could_not_be_taken_back_is_tried_at_the_end(daemon, monkeypatch, fails, spoiled):
    """A node that stays cordoned would be in the way of each trial that comes: they get another cluster."""
    tries = []

    def reopened():
        tries.append("open")
        if len(tries) <= fails:
            raise LabFault("no answer")

    monkeypatch.setattr(disruptions, "drain", lambda stage: (lambda: None, reopened))
    running = stage(planned(NODE, DRAIN, for_s=0.1), pods=[{"metadata": {"name": "a"}, "status": {}}], owned={"a": 1})
    with pytest.raises(LabFault, match="taken back: no answer"), injected(running):
        until(lambda: len(tries) == 2, 20, "tried again", every_s=0.01)
    assert tries == ["open", "open"]
    assert running.cluster.spoiled == spoiled


def test_an_interruption_stays_one_where_a_fault_is_not_taken_back(monkeypatch):
    """The log has the fault, and the next trial another cluster."""
    over = threading.Event()
    monkeypatch.setattr(nemesis, "CLOSE_S", 0.1)
    monkeypatch.setattr(disruptions, "drain", lambda stage: (lambda: None, over.wait))
    running = stage(planned(NODE, DRAIN), pods=[{"metadata": {"name": "a"}, "status": {}}], owned={"a": 1})

    def interrupted():
        with injected(running):
            rows(running)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    over.set()
    assert running.cluster.spoiled == "the faults were not taken back within 0.1 s"


def test_keda_is_cut_off_by_its_name_as_a_client(daemon):
    """Until the fault is over; its process is left alone."""
    told = []
    running = stage(planned(DAEMON, CUT, for_s=0.1), daemon=daemon)
    running.network = SimpleNamespace(strike=lambda who, _: told.append(who) or (lambda: told.append("whole")))
    with injected(running):
        until(lambda: len(told) > 1, 20, "whole again", running.nemesis.check, every_s=0.01)
    (row,) = running.journal.trial.faults
    assert told == [network.SARAMA, "whole"]
    assert (row.component, row.fault, row.pid, row.until > row.t) == (DAEMON, CUT, daemon.process.pid, True)
    assert status(daemon.process.pid) == psutil.STATUS_SLEEPING


def test_consumers_are_killed_stopped_and_told_to_end(process):
    """The one with most partitions goes first by rank; one that is stopped is not struck again; a last one is killed."""
    most, less, least = (process(name) for name in ("most", "less", "least"))
    pods = [pod(name, one.pid) for name, one in (("most", most), ("less", less), ("least", least))]
    for one in pods:
        one["status"]["podIP"] = "127.0.0.1"
    moments = (planned(CONSUMER, STOP), planned(CONSUMER, KILL, at=0.01), planned(CONSUMER, TERMINATE, 0.02, 0.05, 0.99))
    running = stage(*moments, pods=pods, owned={"most": 9, "less": 5, "least": 2})
    with injected(running):
        stopped, killed, told = rows(running, 3)
        assert status(most.pid) == psutil.STATUS_STOPPED
        assert less.wait(10) == -signal.SIGKILL
        assert least.wait(10) in (-signal.SIGTERM, -signal.SIGKILL)
    assert [(one.pod, one.owned, one.pid) for one in (stopped, killed)] == [("most", 9, most.pid), ("less", 5, less.pid)]
    assert (killed.in_flight, killed.until, told.pod) == (0, None, "least")
    assert told.until - told.t > 0.049
    until(lambda: status(most.pid) != psutil.STATUS_STOPPED, 10, "going on", every_s=0.01)
    assert {one.pod for one in running.journal.trial.faults if one.until} == {"most", "least"}


def test_a_kill_is_aimed_at_a_consumer_in_a_batch(process, monkeypatch):
    """Whoever was drawn: the first in turn whose metrics say that it has taken messages."""
    idle, busy = process("idle"), process("busy")
    pods = [pod("idle", idle.pid), pod("busy", busy.pid)]
    pods[1]["status"]["podIP"] = "127.0.0.2"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            """A consumer with 7 messages."""
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"# HELP inflight x\ninflight_created 3\ninflight 7.0\n")

        def log_message(self, *_):
            """Say nothing."""

    with HTTPServer(("127.0.0.2", 0), Handler) as server:
        monkeypatch.setattr(nemesis, "METRICS_PORT", server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running = stage(planned(CONSUMER, KILL), pods=pods, owned={"idle": 9, "busy": 1})
        with injected(running):
            (row,) = rows(running)
            assert busy.wait(10) == -signal.SIGKILL
        server.shutdown()
    assert (row.pod, row.in_flight) == ("busy", 7)
    assert idle.poll() is None


def test_what_is_not_there_is_skipped_and_said(process):
    """No consumer owns a partition any more; the exporter is struck all the same. A process of another name is left alone."""
    exporter, other = process(f"{EXPORTER}-x"), process("other")
    pods = [pod(f"{EXPORTER}-x", exporter.pid), pod("mine", other.pid)]
    faults = planned(CONSUMER, STOP), planned(EXPORTER, KILL, at=0.01), planned(GROUP, STORM, at=0.02)
    running = stage(*faults, pods=pods, owned={"mine": 0})
    with injected(running):
        none, struck, storm = rows(running, 3)
        assert exporter.wait(10) == -signal.SIGKILL
    assert storm.skipped == "no consumer was at work"
    assert (none.skipped, none.pod, struck.pod) == ("no consumer was at work", None, f"{EXPORTER}-x")
    gone = stage(planned(CONSUMER, STOP), pods=pods, owned={"mine": 4})
    with injected(gone):
        assert rows(gone)[0].skipped == "mine ended just before"
    assert other.poll() is None


def test_a_component_is_struck_again_when_it_is_back(daemon):
    """The second fault was due during the first, which a late thread had begun too late: a dead process can't be killed."""
    running = stage(planned(DAEMON, KILL, for_s=0.5), planned(DAEMON, STOP, at=0.1, for_s=0.1), daemon=daemon)
    with injected(running):
        first, second = rows(running, 2)
    assert second.t >= first.until
    assert second.pid != first.pid


def test_a_pod_is_drawn_by_rank():
    """Names differ from run to run, so they only break ties."""
    there, owned = ["c", "a", "b", "new"], {"a": 2, "b": 2, "c": 7, "gone": 9}
    drawn = [ranked(there, owned, (), planned(CONSUMER, KILL, draw=draw)) for draw in (0.0, 0.4, 0.99)]
    assert drawn == [["c", "a", "b"], ["a", "b", "c"], ["b", "c", "a"]]
    assert ranked(there, owned, {"c", None}, planned(CONSUMER, KILL)) == ["a", "b"]
    assert ranked(["x"], {}, (), planned(EXPORTER, KILL)) == ["x"]


def test_a_trial_without_faults_has_no_nemesis():
    """Its thread would cost, and its stage would be asked for a profile."""
    with injected(running := stage()):
        assert running.nemesis is None


def test_a_row_takes_the_place_of_its_own():
    """A fault that is over is the same fault; a kill by an event is beside it."""
    journal = stage().journal
    one, other = (nemesis.row(planned(DAEMON, STOP, at)) for at in (1.0, 2.0))
    plain = replace(one, injection=None)
    for fault in (other, plain, plain, one, replace(one, until=9.0)):
        journal.add_fault(fault)
    assert sorted(map(str, journal.trial.faults)) == sorted(map(str, (replace(one, until=9.0), other, plain, plain)))


@pytest.mark.parametrize(("joins", "skipped"), [(True, ""), (False, "no member could join the group")])
def test_a_storm_joins_and_leaves_until_it_is_over(monkeypatch, joins, skipped):
    """Each member is closed. Where none could join, nothing was struck."""
    open_members, seen = set(), []

    class Member:
        def __init__(self, settings):
            open_members.add(self)
            seen.append(settings["partition.assignment.strategy"])

        def subscribe(self, topics, on_assign):
            """To the reports, which are none of the events."""
            assert topics == ["reports"]
            self.told = on_assign

        def poll(self, seconds):
            """The group gives it its assignment."""
            threading.Event().wait(seconds / 10)
            if joins:
                self.told(self, [])

        def unsubscribe(self):
            """Of one that was given none."""
            assert not joins

        def close(self):
            """It leaves."""
            open_members.remove(self)

    monkeypatch.setattr(disruptions, "Consumer", Member)
    running = stage(planned(GROUP, STORM), owned={"a": 4})
    running.names, running.bootstrap = {"GROUP": "enrich", "REPORTS_TOPIC": "reports"}, "b:1"
    running.inputs.workload, running.cluster.kafka_settings = Workload(balancer="range"), {}
    with injected(running):
        rows(running)
        until(lambda: len(seen) > (3 if joins else 0), 20, "storming", every_s=0.01)
    (row,) = running.journal.trial.faults
    assert (row.component, row.skipped, open_members, set(seen)) == (GROUP, skipped, set(), {"range"})
    assert row.until > row.t
