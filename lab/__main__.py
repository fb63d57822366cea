"""``elastic-lab`` or ``python -m lab``: try a ScaledObject without a cluster, judge what one did, build the components."""

from __future__ import annotations

import argparse
import importlib
import sys
from importlib import metadata

from lab import extras
from lab.errors import BAD_INPUT, FAULT, InputError, LabFault

COMMANDS = {
    "demo": ("demo", "one trial in a folder of your own, with the live board and the report: begin here"),
    "simulate": ("simulate", "what a ScaledObject would do on a profile, without a cluster"),
    "estimate": ("estimate", "what a trial needs before it runs: events, disk, memory, cores, time; refuses what does not fit"),
    "tune": ("tune", "the cheapest ScaledObject that is not late: variants of a given one, simulated"),
    "plane": ("plane", "flips, lateness and price over windows, tolerances and lagThresholds of a scale-down, simulated"),
    "threshold": ("threshold", "the lagThreshold that follows from a pod's rate and an SLO"),
    "judge": ("judge", "what records show, and whether the model agrees with them"),
    "report": ("report", "the report of a session's results: its page, and the evidence behind it; --zip packs both"),
    "evidence": ("evidence", "the archive of sessions: list it, fetch the records of one, add one"),
    "measures": ("measures", "every measure with its unit, or one with its formulas"),
    "settings": ("settings", "every setting of a Workload and of the programs, with its unit, range and default"),
    "build": ("cluster", "build the Kubernetes, KEDA and Prometheus binaries and fetch Kafka"),
    "images": ("cluster", "make all images of a kind cluster here, for a machine that reaches no registry"),
    "down": ("cluster", "end clusters kept with --keep-cluster, and what a crash left"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 2 on bad input, 3 on a fault of the lab."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] and given[0] in COMMANDS:
        module, text = COMMANDS[given[0]]
        try:
            with extras.needed():
                return int(importlib.import_module(f"lab.commands.{module}").run(given[0], text, given[1:]))
        except (InputError, LabFault) as error:
            print(f"lab: {error}", file=sys.stderr)
            return FAULT if isinstance(error, LabFault) else BAD_INPUT
    parser = argparse.ArgumentParser(prog="elastic-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"elastic-lab {metadata.version('elastic-lab')}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text)
    parser.parse_args(given)
    raise AssertionError("a command that is not known ends in the parser")


if __name__ == "__main__":
    sys.exit(main())
