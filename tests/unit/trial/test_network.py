"""The proxy between a broker and its clients: what a bad network shows of itself, and how connections end."""

import socket
import socketserver
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import psutil
import pytest

from lab.errors import LabFault
from lab.host import processes
from lab.inputs.faults import CONSUMER, CUT, DELAY, LOSS
from lab.trial import network
from lab.trial.nemesis import injected
from lab.trial.network import HEAD, Network
from lab.wait import until
from tests.unit.trial.test_events import pod, process
from tests.unit.trial.test_nemesis import planned, rows, stage, status

__all__ = ["process"]


@pytest.fixture
def echo():
    """A server that sends back what it gets."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            """Until the client closes."""
            while data := self.request.recv(4096):
                self.request.sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads = True, True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "{}:{}".format(*server.server_address)
        server.shutdown()


@pytest.fixture
def proxy(echo):
    """A proxy before it."""
    (port,) = processes.free_ports(1)
    with closing(Network(f"127.0.0.1:{port}", echo)) as made:
        yield made
    made.check()


def connected(proxy, who):
    """A connection of the client ``who``, that has sent the head of its first request."""
    name = who.encode()
    made = socket.create_connection(proxy.front.split(":"), 10)
    made.sendall(HEAD.pack(HEAD.size - 4 + len(name), 18, 3, 1, len(name)) + name)
    return made, HEAD.size + len(name)


def answer(connection, count):
    """So many bytes of what comes back, whole."""
    found = b""
    while len(found) < count:
        found += connection.recv(count - len(found))
    return found


def test_a_cut_holds_back_what_one_client_sends_and_gets(proxy):
    """Old connections and new ones; nothing of it is lost, or out of order, and others go on."""
    (mine, mine_head), (other, other_head) = connected(proxy, "a"), connected(proxy, "b")
    with mine, other:
        assert answer(mine, mine_head)[-1:] == b"a"
        assert answer(other, other_head)[-1:] == b"b"
        undo = proxy.strike("a", planned(CONSUMER, CUT))
        new, new_head = connected(proxy, "a")
        mine.sendall(b"held ")
        mine.sendall(b"back")
        other.sendall(b"through")
        assert answer(other, 7) == b"through"
        for one in (mine, new):
            one.settimeout(0.3)
            with pytest.raises(TimeoutError):
                one.recv(1)
            one.settimeout(10)
        undo()
        assert answer(mine, 9) == b"held back"
        assert answer(new, new_head)[-1:] == b"a"
        new.close()


def test_a_later_fault_outlives_the_end_of_an_earlier_one(proxy):
    """Both are of one client."""
    first, last = proxy.strike("a", planned(CONSUMER, DELAY)), proxy.strike("a", planned(CONSUMER, CUT))
    first()
    mine, head = connected(proxy, "a")
    with mine:
        mine.settimeout(0.3)
        with pytest.raises(TimeoutError):
            mine.recv(1)
        mine.settimeout(10)
        last()
        assert answer(mine, head)[-1:] == b"a"


@pytest.mark.parametrize(("kind", "least_s"), [(DELAY, 2 * network.DELAY_S), (LOSS, network.RESEND_S)])
def test_a_bad_network_is_late_and_loses_nothing(proxy, monkeypatch, kind, least_s):
    """A delay is of each way. A piece that is lost is sent again."""
    drawn = iter([0.0])  # the first is lost
    monkeypatch.setattr("lab.trial.network.random.Random", lambda _: SimpleNamespace(random=lambda: next(drawn, 1.0)))
    mine, head = connected(proxy, "a")
    with mine:
        answer(mine, head)
        undo, begun = proxy.strike("a", planned(CONSUMER, kind)), time.monotonic()
        mine.sendall(b"late")
        assert answer(mine, 4) == b"late"
        assert time.monotonic() - begun >= least_s
        undo()
        mine.sendall(bytes(300_000))
        assert answer(mine, 300_000) == bytes(300_000)


def test_a_connection_ends_with_either_side(proxy, echo):
    """What is no client of Kafka's ends, too, and so does one to a broker that is not there. The address is free again."""
    mine, head = connected(proxy, "a")
    answer(mine, head)
    mine.shutdown(socket.SHUT_WR)
    assert mine.recv(1) == b""
    with socket.create_connection(proxy.front.split(":"), 10) as stranger:
        stranger.sendall(b"GET")
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(1) == b""
    with pytest.raises(LabFault, match=f"network can't be at {proxy.front}"):
        Network(proxy.front, echo)
    port, gone = processes.free_ports(2)
    with closing(Network(f"127.0.0.1:{port}", f"127.0.0.1:{gone}")) as dead:
        assert connected(dead, "a")[0].recv(1) == b""
        dead.check()
    with closing(Network(dead.front, echo)) as again:
        kept, head = connected(again, "a")
        answer(kept, head)
    assert kept.recv(1) == b""
    again.check()


def test_a_consumer_is_cut_off_by_its_name(process, proxy):
    """The one that was drawn, until the fault is over; no signal is sent to it."""
    most = process("most")
    running = stage(planned(CONSUMER, CUT, for_s=0.2), pods=[pod("most", most.pid)], owned={"most": 9})
    running.network = proxy
    with injected(running):
        (row,) = rows(running)
        until(lambda: running.journal.trial.faults[0].until is not None, 20, "whole again", every_s=0.01)
    assert (row.fault, row.pod, row.owned, status(most.pid)) == (CUT, "most", 9, psutil.STATUS_SLEEPING)
    assert not proxy._struck
