"""A Docker network of the lab's own, from which no packet leaves the machine.

Until kube-proxy has written its rules, a packet to a ClusterIP is routed like any other: to the machine's uplink. So forwarded
packets are rejected (not dropped, so that a client knows at once) before the first container starts. Packets that leave all the
same are counted.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from lab.cluster import docker
from lab.errors import LabFault

NAME, BRIDGE = "elastic-lab", "elastic-lab0"
_COMMENT = ["-m", "comment", "--comment", NAME]
_MARK = "0xe1a"
# Each rule with its table, and its chain first. Every packet from the bridge is marked, whatever its address, so that it is
# counted where it goes out, behind anything that might route around the rejecting rule.
REJECTING = ("filter", ["DOCKER-USER", "-i", BRIDGE, "!", "-o", BRIDGE, *_COMMENT, "-j", "REJECT"])
MARKING = ("mangle", ["PREROUTING", "-i", BRIDGE, *_COMMENT, "-j", "MARK", "--set-mark", _MARK])
COUNTING = ("mangle", ["POSTROUTING", "!", "-o", BRIDGE, "-m", "mark", "--mark", _MARK, *_COMMENT, "-j", "RETURN"])
RULES = (REJECTING, MARKING, COUNTING)


@dataclass(frozen=True)
class Packets:
    """Packets from the network's containers to other places: those turned back, and those that left the machine."""

    rejected: int
    escaped: int


def create() -> None:
    """Make the network unless it exists."""
    try:
        docker.run("network", "inspect", NAME)
    except LabFault as fault:
        if "No such" not in str(fault) and "not found" not in str(fault):
            raise
        docker.run("network", "create", "--driver=bridge", f"--opt=com.docker.network.bridge.name={BRIDGE}", NAME)


def release(closed: bool) -> None:
    """Remove the network, and if it was ``closed`` its rules, unless it is gone or still has a container."""
    if not docker.run("network", "ls", "--quiet", "--filter", f"name=^{NAME}$"):
        return
    if docker.run("network", "inspect", NAME, "--format", "{{len .Containers}}").strip() == "0":
        if closed:
            open_again()
        docker.run("network", "rm", NAME)


def close() -> None:
    """Reject the packets of the network's containers to other places, and count them. Needs root."""
    for table, rule in RULES:
        if not _iptables(table, "-C", rule, wanted=False):
            _iptables(table, "-I", rule)


def open_again() -> None:
    """Remove the rules."""
    for table, rule in RULES:
        while _iptables(table, "-C", rule, wanted=False):
            _iptables(table, "-D", rule)


def packets() -> Packets:
    """The counts of the rules since they exist. Raises :class:`LabFault` when they do not."""
    counted = []
    for table, rule in (REJECTING, COUNTING):
        listing = _iptables(table, "-nvxL", [rule[0]])
        found = next((line for line in listing.splitlines() if f"/* {NAME} */" in line), None)
        if found is None:
            raise LabFault(f"the rule that keeps {NAME}'s packets on the machine is gone from {rule[0]}")
        counted.append(int(found.split()[0]))
    return Packets(*counted)


def _iptables(table: str, action: str, rule: list[str], wanted: bool = True) -> str:
    """Run one iptables command; returns its output. With ``wanted`` false it returns a word only if the command succeeded."""
    try:
        result = subprocess.run(["iptables", "-w", "-t", table, action, *rule], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LabFault("no iptables command on PATH: install it (Debian: apt install iptables)") from None
    if result.returncode != 0 and wanted:
        raise LabFault(f"iptables: {docker.reason(result.stderr)}: rules need root")
    return result.stdout or "done" if result.returncode == 0 else ""
