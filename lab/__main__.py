"""``python -m lab build``: build the components now. ``python -m lab down``: end kept clusters and leftovers."""

from __future__ import annotations

import argparse
import logging
import sys

from lab import jars
from lab.cluster import build, runs
from lab.errors import InputError, LabFault


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the Kubernetes, KEDA and Prometheus binaries and fetch Kafka")
    commands.add_parser("down", help="end clusters kept with --keep-cluster, and what a crash left")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if options.command == "build":
            print(build.ensure().folder)
            jars.resolve("kafka", jars.KAFKA)
        else:
            print(f"{runs.clear_all()} processes ended")
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
