"""The networks of a kind cluster: a Docker network that no packet leaves, and the pods' own between nodes made here.

Until kube-proxy has written its rules, a packet to a ClusterIP is routed to the machine's uplink. So forwarded packets are
rejected before the first container starts, and those that leave all the same are counted. Nodes made here get a bridge each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubernetes import client

from lab.cluster import docker
from lab.errors import LabFault
from lab.host.command import run_command
from lab.wait import until

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
    if not _there():
        docker.run("network", "create", "--driver=bridge", f"--opt=com.docker.network.bridge.name={BRIDGE}", NAME)


def release(closed: bool) -> None:
    """Remove the network, and if it was ``closed`` its rules, unless it is gone or still has a container."""
    if _there() and docker.run("network", "inspect", NAME, "--format", "{{len .Containers}}").strip() == "0":
        if closed:
            open_again()
        docker.run("network", "rm", NAME)


def _there() -> bool:
    return bool(docker.run("network", "ls", "--quiet", "--filter", f"name=^{NAME}$"))


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
        result = run_command(["iptables", "-w", "-t", table, action, *rule], DEADLINE_S, "iptables")
    except FileNotFoundError:
        raise LabFault("no iptables command on PATH: install it (Debian: apt install iptables)") from None
    if result.returncode != 0 and wanted:
        raise LabFault(f"iptables: {docker.reason(result.stderr)}: rules need root")
    return result.stdout or "done" if result.returncode == 0 else ""


FILE = "/etc/cni/net.d/10-lab.conflist"
DEADLINE_S = 60  # 2 s on a quiet machine: the controller-manager assigns pod subnets


def connect(api: client.ApiClient) -> None:
    """Configure every node. Raises :class:`LabFault` when the nodes get no pod subnet by the deadline."""
    core = client.CoreV1Api(api)
    found: dict[str, tuple[str, str]] = {}  # a node's address and its pods' subnet by its name, which is its container's too

    def known() -> bool:
        nodes: list[Any] = core.list_node().items
        for item in nodes:
            address = next((each.address for each in item.status.addresses or () if each.type == "InternalIP"), None)
            if address and item.spec.pod_cidr:
                found[item.metadata.name] = address, item.spec.pod_cidr
        return len(found) == len(nodes)

    try:
        until(known, DEADLINE_S, "a pod subnet for every node")
    except LabFault as fault:
        raise LabFault(f"{fault}: {', '.join(found) or 'no node'} had one") from None
    for name, (_, own) in found.items():
        docker.run("exec", "--interactive", name, "sh", "-c", f"cat > {FILE}", feed=conflist(own))
        for address, subnet in found.values():
            if subnet != own:
                docker.run("exec", name, "ip", "route", "replace", subnet, "via", address)


def conflist(subnet: str) -> str:
    """The CNI configuration of a node whose pods get addresses of ``subnet``."""
    ranges = [[{"subnet": subnet}]]
    # No masquerading: a pod's packets go only to other pods and to nodes, which know the way back.
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
    addresses = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return json.dumps({"cniVersion": "1.0.0", "name": "lab", "plugins": [{**bridge, "ipam": addresses}]}, indent=1)
