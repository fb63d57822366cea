"""``elastic-lab accept``: one trial of a user's ScaledObject, and whether it can be shipped."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from lab import paths
from lab.errors import BAD_INPUT, BREACHED, FAULT, HELD
from lab.extras import NotInstalled
from lab.flags import Flags, choice
from lab.inputs import scale as scales
from lab.inputs.manifests import COMMITTED, Library
from lab.record import store
from lab.report import session as sessions
from lab.report import session_page, shipping
from lab.report.session import Session
from lab.trial.user_files import UserFiles

CODES = {0: HELD, 1: BREACHED, 2: BAD_INPUT, 4: BAD_INPUT}  # of pytest; any other is a fault of the lab
NEEDED = {"pytest": "trial", "pytest_kind": "trial"}  # what the session imports, and the extra that brings it


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("scaledobject", Path, None, "the ScaledObject, as you deploy it")
    parser.flag("profile", str, None, "the traffic: a YAML file, or the name of one in profiles/ [step-10x]", optional=True)
    parser.flag("workload", Path, None, "what pods do (kind: Workload); the default workload without it", optional=True)
    parser.flag("cluster", choice("binary", "kind", "existing"), "binary", "where the trial runs", "binary, kind or existing")
    text = "a name in profiles/scales.yaml [the most compressed that keeps the times of the ScaledObject]"
    parser.flag("scale", str, None, text, optional=True)
    text = "where record, verdicts and page go; a new folder beside it if it has records"
    parser.flag("results", Path, Path("results"), text)
    parser.flag("from-records", str, None, "judge the stored records of this folder; starts no cluster", optional=True)
    text = "what follows -- is given to pytest, as the options of an existing cluster"
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help=text)


def run(options: Namespace) -> int:
    """Run the acceptance; returns 0 where all objectives held, 1 where one did not, 2 for bad input, 3 for a fault."""
    for module, extra in NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise NotInstalled(module, extra)
    given = UserFiles(options.scaledobject, _profile(options.profile), options.workload)
    scale = scales.load(options.scale) if options.scale else given.scale()
    given.read(scale, options.cluster, Library.of(Path()))  # what can't be used is said here, before anything starts
    results = options.results if options.from_records else store.unused(options.results)
    code = _session(options, given, results)
    session = sessions.read(results)
    decision = shipping.of(session) if session else None
    if decision is None:
        return code
    print("\n".join([f"{decision.file}: {decision.word}", *decision.lines, f"read {results / session_page.PAGE}"]))
    return code


def _profile(text: str | None) -> Path | None:
    if text is None or Path(text).suffix in (".yaml", ".yml"):
        return Path(text) if text else None
    return COMMITTED.profile(text)


def _session(options: Namespace, given: UserFiles, results: Path) -> int:
    """Run the acceptance of the files ``given`` by pytest, with the records in ``results``; returns its exit code."""
    words = {"scaledobject": given.scaledobject, "traffic-profile": given.profile, "workload": given.workload}
    words |= {"cluster": options.cluster, "scale": options.scale, "results": results, "from-records": options.from_records}
    command = [sys.executable, "-m", "pytest", str(paths.ACCEPTANCE), "-m", "spike", "--rootdir=.", "--tb=line"]
    command += ["-c", str(paths.ACCEPTANCE / "pytest.ini"), *(f"--{name}={word}" for name, word in words.items() if word)]
    ended = subprocess.run([*command, *options.options], stdin=subprocess.DEVNULL, check=False).returncode
    return CODES.get(ended, FAULT)
