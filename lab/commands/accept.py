"""``elastic-lab accept``: one trial of a user's ScaledObject, whether it can be shipped, and what to change if not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

from lab import paths, wholefile
from lab.errors import BAD_INPUT, BREACHED, FAULT, HELD, InputError
from lab.extras import NotInstalled
from lab.flags import Flags, choice
from lab.inputs import scale as scales
from lab.inputs.inputs import Inputs
from lab.inputs.manifests import COMMITTED, Library
from lab.judge.claim import BREACHED as BREACHED_WORD
from lab.record import store
from lab.record.store import Record
from lab.report import session as sessions
from lab.report import session_page, shipping
from lab.report.session import Session, Tried
from lab.report.shipping import Decision
from lab.trial.user_files import UserFiles

CODES = {0: HELD, 1: BREACHED, 2: BAD_INPUT, 4: BAD_INPUT}  # of pytest; any other is a fault of the lab
NEEDED = ("pytest_kind", "pytest")  # of the extra "trial"
CHANGED = "changed"  # in the results: the file with the change, and the results of its trial


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    again = "a file: it is read again by each trial"
    parser.flag("scaledobject", _file, None, "the ScaledObject, as you deploy it", again)
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    parser.flag("profile", str, None, "the traffic: a YAML file, or the name of one in profiles/ [step-10x]", optional=True)
    text = "what pods do (kind: Workload); the default workload without it"
    parser.flag("workload", _file, None, text, again, optional=True)
    parser.flag("cluster", choice("binary", "kind", "existing"), "binary", "where the trial runs", "binary, kind or existing")
    text = (
        "a name in profiles/scales.yaml [the most compressed that keeps the ScaledObject's times; real on an existing cluster]"
    )
    parser.flag("scale", str, None, text, optional=True)
    text = "where record, verdicts and page go; a new folder beside it if it has records"
    parser.flag("results", Path, Path("results"), text)
    parser.flag("topic", str, "", "with --cluster existing: your own topic, with your own traffic; the lab sends nothing")
    parser.flag("from-records", str, None, "judge the stored records of this folder; starts no cluster", optional=True)
    parser.add_argument("--try-fix", action="store_true", help="run a second trial, with what is proposed to change")
    text = "what follows -- is given to pytest, as the options of an existing cluster"
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help=text)


def run(options: Namespace) -> int:
    """Run the acceptance; returns 0 where all objectives held, 1 where one did not, 2 for bad input, 3 for a fault."""
    for module in NEEDED:
        if importlib.util.find_spec(module) is None:
            raise NotInstalled(module, "trial")
    if options.try_fix and options.from_records:
        raise InputError("command line", "--try-fix", True, "without --from-records, which runs nothing")
    files = options.scaledobject, _profile(options.profile), options.workload
    given = UserFiles(*files, options.name, bool(options.topic))
    options.scale = options.scale or (scales.REAL if options.cluster == "existing" else None)
    scale = scales.load(options.scale) if options.scale else given.scale()
    inputs = given.read(scale, options.cluster, Library.of(Path()))  # what can't be used is said before anything starts
    results = options.results if options.from_records else store.unused(options.results)
    first = _at_real_time(given, inputs, _accept(options, given, results))
    if first.decision is None or first.session is None:
        return first.code
    print(f"\n{first.decision}", *first.decision.lines, sep="\n", flush=True)
    page = first.results / session_page.PAGE
    if first.decision.is_of_the_policy:
        page = _advise(options, given, inputs, first)
        print(f"\n{first.decision}")
    print(f"read {page}")
    return first.code


@dataclass(frozen=True)
class Acceptance:
    """The exit code of the acceptance of a file, and what it left in ``results``: None where it ended before it judged."""

    code: int
    results: Path
    session: Session | None
    decision: Decision | None

    @property
    def record(self) -> Record | None:
        """The last trial's record."""
        folders = list(self.session.folders.values()) if self.session else []
        return Record(self.results / folders[-1]) if folders else None


def _file(text: str) -> Path:
    if text == "-":
        raise ValueError(text)
    return Path(text)


def _profile(text: str | None) -> Path | None:
    if text is None or Path(text).suffix or len(Path(text).parts) > 1:
        return Path(text) if text else None
    try:
        return COMMITTED.profile(text)
    except InputError as unknown:
        raise InputError("command line", "--profile", text, f"a YAML file, or {unknown.allowed}", unknown.meant) from None


def _accept(options: Namespace, given: UserFiles, results: Path) -> Acceptance:
    """Run the acceptance of the files ``given`` by pytest, with its records in ``results``."""
    words: dict[str, object] = {"scaledobject": given.scaledobject, "profile": given.profile, "workload": given.workload}
    words |= {
        "name": given.named,
        "topic": options.topic,
        "cluster": options.cluster,
        "scale": options.scale,
        "results": results,
        "from-records": options.from_records,
    }
    command = [sys.executable, "-P", "-m", "pytest", str(paths.ACCEPTANCE), "-m", "spike", "--rootdir=."]
    command += ["-c", str(paths.ACCEPTANCE / "pytest.ini"), *(f"--lab-{name}={word}" for name, word in words.items() if word)]
    before = _stamp(results)
    process = subprocess.Popen([*command, *options.options], stdin=subprocess.DEVNULL)
    try:
        ended = process.wait()
    except KeyboardInterrupt:  # the terminal has told the session too, which clears up
        ended = process.wait()
    session = sessions.read(results) if _stamp(results) != before else None
    decision, code = shipping.of(session) if session else None, CODES.get(ended, FAULT)
    if decision and decision.word != shipping.SHIP:  # a breach that --expected knows is one all the same
        code = code or BREACHED
    return Acceptance(code, results, session, decision)


def _at_real_time(given: UserFiles, inputs: Inputs, found: Acceptance) -> Acceptance:
    """``found``, with what a simulation of ``given`` breaches at real time where a compressed trial held everything.

    Of a file that can't be simulated it says why.
    """
    from lab.commands.advice import breached_at_real_time

    if found.session is None or found.decision is None or found.decision.word != shipping.SHIP or inputs.scale.time == 1:
        return found
    try:
        session = replace(found.session, at_real_time=breached_at_real_time(given, inputs, found.record))
    except InputError as error:
        session = replace(found.session, unsimulated=str(error).splitlines()[0])
    session.write(found.results)
    session_page.write(found.results, session)
    return Acceptance(BREACHED if session.at_real_time else found.code, found.results, session, shipping.of(session))


def _stamp(results: Path) -> tuple[int, int] | None:
    """What tells whether a session was written into ``results`` since; None where there is none."""
    file = results / sessions.FILE
    return (file.stat().st_ino, file.stat().st_mtime_ns) if file.is_file() else None


def _advise(options: Namespace, given: UserFiles, inputs: Inputs, first: Acceptance) -> Path:
    """Print what to change, try it where that is asked for, and write both into the session's page, which is returned."""
    from lab.commands.advice import advise

    assert first.session is not None
    assert first.decision is not None
    print("\nlooking for what to change: variants of the ScaledObject are simulated ...", flush=True)
    breached = {row.objective for row in first.decision.rows if row.kind == "claim" and row.verdict == BREACHED_WORD}
    advice, text = advise(given, inputs, breached, first.record)
    print("\n".join([*advice.notes, "", advice.diff]), flush=True)
    if advice.diff and given.scaledobject is not None:
        folder = first.results / CHANGED
        folder.mkdir(exist_ok=True)
        wholefile.write(folder / given.scaledobject.name, text)
        if options.try_fix:
            changed = replace(given, scaledobject=folder / given.scaledobject.name)
            second = _at_real_time(changed, inputs, _accept(options, changed, folder))
            word, lines = (second.decision.word, second.decision.lines) if second.decision else (shipping.NO_ANSWER, [])
            advice = replace(advice, tried=Tried(word, lines, f"{CHANGED}/{session_page.PAGE}"))
            print(f"\nwith the change: {word}", *lines, sep="\n")
    session = replace(first.session, advice=advice)
    session.write(first.results)
    return session_page.write(first.results, session)
