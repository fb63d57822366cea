"""The pod network of nodes whose image was made here: a bridge on each, routes to the others. Upstream's nodes have one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubernetes import client

from lab.cluster import docker
from lab.errors import LabFault
from lab.wait import until

FILE = "/etc/cni/net.d/10-lab.conflist"
DEADLINE_S = 60  # 2 s on a quiet machine: the controller-manager assigns pod subnets


@dataclass(frozen=True)
class Node:
    """A node's name, which is also its container's, its address and its pods' subnet."""

    name: str
    address: str
    subnet: str


def connect(api: client.ApiClient) -> None:
    """Configure every node. Raises :class:`LabFault` when the nodes get no pod subnet by the deadline."""
    core = client.CoreV1Api(api)
    found: list[Node] = []

    def known() -> bool:
        nodes = core.list_node().items
        found[:] = [node for item in nodes if (node := _node(item)) is not None]
        return len(found) == len(nodes)

    try:
        until(known, DEADLINE_S, "a pod subnet for every node")
    except LabFault as fault:
        raise LabFault(f"{fault}: {', '.join(node.name for node in found) or 'no node'} had one") from None
    for node in found:
        docker.run("exec", "--interactive", node.name, "sh", "-c", f"cat > {FILE}", feed=conflist(node.subnet).encode())
        for other in found:
            if other != node:
                docker.run("exec", node.name, "ip", "route", "replace", other.subnet, "via", other.address)


def conflist(subnet: str) -> str:
    """The CNI configuration of a node whose pods get addresses of ``subnet``."""
    ranges = [[{"subnet": subnet}]]
    # No masquerading: a pod's packets go only to other pods and to nodes, which know the way back.
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
    addresses = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return json.dumps({"cniVersion": "1.0.0", "name": "lab", "plugins": [{**bridge, "ipam": addresses}]}, indent=1)


def _node(item: Any) -> Node | None:
    address = next((each.address for each in item.status.addresses or () if each.type == "InternalIP"), None)
    return Node(item.metadata.name, address, item.spec.pod_cidr) if address and item.spec.pod_cidr else None
