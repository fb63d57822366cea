"""Ports and pids of what the lab starts."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import LabFault
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
        free = unused()
        monkeypatch.setattr("lab.host.processes.random.sample", lambda population, k: [busy, free])
        assert processes.free_ports(1) == [free]


def unused():
    """A port that nothing listens on, and that nobody has been given."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_a_port_is_given_once_until_its_component_has_bound_it(monkeypatch):
    """Two sessions that start at the same time chose the same one, and KEDA's operator ended when it bound it."""
    port, other = unused(), unused()
    monkeypatch.setattr("lab.host.processes.random.sample", lambda population, k: [port, other])
    sample = f"random.sample = lambda population, k: [{port}]"
    theirs = f"import random; from lab.host import processes; {sample}; print(processes.free_ports(1)); input()"
    with subprocess.Popen([sys.executable, "-c", theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == f"[{port}]\n"
        assert processes.free_ports(1) == [other]
        session.communicate("\n")
    assert processes.free_ports(1) == [port]
    with pytest.raises(LabFault, match="no 1 free loopback ports"):
        processes.free_ports(1)
    monkeypatch.setattr(processes, "RESERVED_S", -1.0)
    assert processes.free_ports(1) == [port]
