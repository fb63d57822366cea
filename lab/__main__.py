"""``python -m lab build``: build the components now, so that the first test session starts warm."""

from __future__ import annotations

import argparse
import logging
import sys

from lab.errors import InputError, LabFault


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the Kubernetes, KEDA and Prometheus binaries and fetch Kafka")
    parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        from lab.cluster import build

        print(build.ensure().folder)
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
