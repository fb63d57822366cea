"""``python -m lab build``: build the components now. ``images``: make kind's images. ``down``: end clusters and leftovers."""

from __future__ import annotations

import argparse
import logging
import sys

from lab import jars
from lab.cluster import build, docker, runs
from lab.cluster.images import catalog, make
from lab.cluster.kind import settings
from lab.errors import InputError, LabFault

PROVES = (
    "A run on these proves the manifests, kubeadm, the kubelet, the HPA and KEDA as compiled here from upstream's pinned "
    "source, on Debian's containerd and runc. It does not prove the images that upstream publishes."
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the Kubernetes, KEDA and Prometheus binaries and fetch Kafka")
    commands.add_parser("images", help="make all images of a kind cluster here, for a machine that reaches no registry")
    commands.add_parser("down", help="end clusters kept with --keep-cluster, and what a crash left")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if options.command == "build":
            print(build.ensure().folder)
            jars.resolve("kafka", jars.KAFKA)
        elif options.command == "images":
            print(_images())
        else:
            standing = len(runs.all_runs())
            runs.clear_all()
            print(f"{standing - len(runs.all_runs())} clusters ended")
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return 0


def _images() -> str:
    """Make the images; returns the table of what there is, and what a run on them proves."""
    names = make.ensure(catalog.named(settings.infrastructure()))
    made = [*names.values(), make.make_pods(names[catalog.PYTHON])]
    sizes = docker.images(made)
    return "\n".join([*(f"{sizes[image] / 1e6:8,.0f} MB  {image}" for image in made), PROVES])


if __name__ == "__main__":
    sys.exit(main())
