"""``elastic-lab images``: all images of a kind cluster, made here for a machine that reaches no registry."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace

from lab.cluster import docker
from lab.cluster.images import catalog, clients, make
from lab.cluster.kind import state
from lab.flags import Flags
from lab.inputs.clients import CLIENTS, PYTHON

PROVES = (
    "A run on these proves the manifests, kubeadm, the kubelet, the HPA and KEDA as compiled here from upstream's pinned "
    "source, on Debian's containerd and runc. It does not prove the images that upstream publishes."
)


def add_flags(parser: Flags) -> None:
    """The command has none."""


def run(options: Namespace) -> int:
    """Make the images, and print them with a sentence on what a run with them proves. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    names = make.ensure(catalog.named(state.infrastructure()))
    made = [
        *names.values(),
        make.make_pods(names[catalog.PYTHON]),
        *(clients.make(one, names) for one in CLIENTS if one != PYTHON),
    ]
    sizes = docker.images(made)
    print("\n".join([*(f"{sizes[image] / 1e6:8,.0f} MB  {image}" for image in made), PROVES]))
    return 0
