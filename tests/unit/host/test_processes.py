"""Ports and pids of what the lab starts."""

import socket
from pathlib import Path

from lab.host import processes


def test_ports_are_free_different_and_not_ones_that_connections_take():
    """Each can be bound, no two are alike, and none lies in the range of outgoing connections."""
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = processes.free_ports(30)
    assert len(set(ports)) == 30
    assert all(port < first_ephemeral for port in ports)
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_taken_port_is_not_given(monkeypatch):
    """A port that something listens on is passed over."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        free = processes.free_ports(1)[0]
        monkeypatch.setattr("lab.host.processes.random.sample", lambda population, k: [busy, free])
        assert processes.free_ports(1) == [free]
