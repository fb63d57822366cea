# PYTHON_ARGCOMPLETE_OK
"""``elastic-lab`` or ``python -m lab``: try a ScaledObject without a cluster, judge what one did, build the components."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import extras, project
from lab.errors import BAD_INPUT, FAULT, InputError, LabFault, closest
from lab.flags import NAME, Flags

COMMANDS = {
    "demo": "one trial in a folder of your own, with the live board and the report: begin here",
    "accept": "one trial of your ScaledObject on your traffic: ship or don't ship, and what to change",
    "audit": "what ScaledObjects will do that nobody meant: rules over files, each finding with its number and its cure",
    "check-consumer": "whether your own consumer keeps the contract: joins, commits, reports, receipts, a kill",
    "review": "what a change in git does to ScaledObjects, as a comment: audit and simulation, before and after",
    "simulate": "what a ScaledObject would do on a profile, without a cluster",
    "sync": "what one sync of the HPA decides on a lag, and why: metric, ratio, tolerance, cap, window, policy",
    "shadow": "whether the model decides as a live HPA does, read-only, and what another ScaledObject would ask for there",
    "explain": "why a group scaled, or not, from what Prometheus kept of it: metric, ratio, tolerance, cap, window, policy",
    "profile": "the traffic that a Prometheus or a CSV file saw, as a profile of few steps, with the error of what they keep",
    "tune": "the cheapest ScaledObject that is not late: variants of a given one, simulated",
    "play": "a local page: change a ScaledObject, and see what it would do; nothing is deployed",
    "plane": "flips, lateness and price over windows, tolerances and lagThresholds of a scale-down, simulated",
    "threshold": "the lagThreshold that follows from a pod's rate and an SLO",
    "estimate": "what a trial needs before it runs: events, disk, memory, cores, time; refuses what does not fit",
    "judge": "what records show, and whether the model agrees with them",
    "report": "the report of a session's results: its page, and the evidence behind it; --zip packs both",
    "evidence": "the archive of sessions: list it, fetch the records of one, add one",
    "measures": "every measure with its unit, or one with its formulas",
    "settings": "every setting of a Workload and of the programs, with its unit, range and default",
    "build": "build the Kubernetes, KEDA and Prometheus binaries and fetch Kafka",
    "images": "make all images of a kind cluster here, for a machine that reaches no registry",
    "down": "end clusters kept with --keep-cluster, and what a crash left",
}
# The extra that a command takes as a whole, where the first module that lacks may be of a smaller one.
LEAST = {"play": "play", "report": "report"} | dict.fromkeys(
    ("accept", "check-consumer", "demo", "build", "images", "down", "shadow"), "trial"
)
OF_LIVE = ("explain", "shadow")  # they ask of what is live, so a project's own files and pods are none of theirs
OWN = (*project.USER_FILES, "pod-rate", "start-s")
COMPLETION = "_ARGCOMPLETE"  # a shell asks what may follow COMP_LINE
READER_GONE = 128 + 13  # what a shell says of a program that SIGPIPE ended


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 1 for an objective that did not hold, 2 on bad input, 3 on a fault of the lab."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if COMPLETION in os.environ:
            _complete()
        try:
            with extras.needed(_least(given)):
                _check_command(given)
                options = _parser(given).parse_args(given)
                return int(options.run(options))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left
        return READER_GONE
    except KeyboardInterrupt:
        line, code = "interrupted", BAD_INPUT
    except InputError as error:
        line, code = str(error), BAD_INPUT
    except LabFault as error:
        line, code = str(error), FAULT
    except Exception as error:
        traceback.print_exc()
        line, code = f"a fault of the lab: {type(error).__name__}: please report it with the lines above", FAULT
    print(*(f"{NAME}: {one}" for one in line.splitlines()), sep="\n", file=sys.stderr)
    return code


def _check_command(given: Sequence[str]) -> None:
    """Raise :class:`InputError` for a word that is no command, and for none."""
    word = given[0] if given else None
    if word not in COMMANDS and not (word or "").startswith("-"):
        allowed = f"one of {', '.join(COMMANDS)}; {NAME} --help says what each is for"
        raise InputError("command line", "COMMAND", word, allowed, closest(word, COMMANDS))


def _complete() -> None:
    """Answer a shell that asks for words to complete, and end; nothing where argcomplete is not installed."""
    try:
        import argcomplete
    except ModuleNotFoundError:
        sys.exit(BAD_INPUT)
    argcomplete.autocomplete(_parser([*os.environ["COMP_LINE"].split()[1:], "--help"]))


class _Version(argparse.Action):
    """Look the version up when it is asked for: that imports the parser of e-mails."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib import metadata

        print(f"{NAME} {metadata.version('elastic-lab')}")
        parser.exit()


def _least(given: Sequence[str]) -> str:
    """The extra that the command takes at least."""
    return LEAST.get(given[0] if given else "", extras.RECORDS)


def _defaults(command: str) -> dict[str, str]:
    """A project's own values of ``command``'s flags. Raises :class:`InputError` for each name that no option has."""
    found = project.read(Path())
    if found.values:
        from lab import options  # which few calls need

        found.check((*options.OPTIONS, *project.COMMON, options.SHORT_OPTIONS))
    return {name: value for name, value in found.common.items() if command not in OF_LIVE or name not in OWN}


def _parser(given: Sequence[str]) -> Flags:
    """The parser of all commands. Only the ``given`` one is imported: it may need much, or an extra that is not installed.

    Then its help has no flags, and says what to install.
    """
    parser = Flags(NAME, (__doc__ or "").replace("``", ""), environment=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version of the installation")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        one = commands.add_parser(name, help=text, description=text, environment=False)
        if name not in given[:1]:
            continue
        try:
            with extras.needed(_least(given)):
                module = importlib.import_module(f"lab.commands.{name.replace('-', '_')}")
        except extras.NotInstalled as error:
            if not {"-h", "--help"} & set(given):
                raise
            one.epilog = f"Its flags are shown where it can run. {error}"
            continue
        one.defaults = _defaults(name)
        module.add_flags(one)
        one.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
