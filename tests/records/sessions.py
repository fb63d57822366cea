"""Runs sessions inside this one: what the tests of stored records say, test by test."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab import paths
from lab.errors import LabFault
from lab.inputs import scale as scales
from lab.judge.quantity import SIGNS
from tests.records.plugin import ONE_RECORD

TIMEOUT_S = 1800  # a minute or two on a quiet machine
# Half of the CPU time of a short session is imports. So sessions are forked from a process that has these, and has no threads.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["lab.plugin", "lab.measure.overview", "lab.evidence", "tests.records.plugin"])
_EXAMPLES = paths.PROJECT / "docs" / "examples"
_BROUGHT = {"scaledobject": "orders", "profile": "evening-peak", "workload": "enricher"}
_ACCEPTANCE = [f"--lab-{option}={_EXAMPLES / name}.yaml" for option, name in _BROUGHT.items()]
# The kinds of session there are: what each takes beside its tests, and where these are.
SESSIONS: dict[str, tuple[Sequence[str], str]] = {
    "experiments": ([f"--scale={scales.QUICK}"], "tests/experiments"),
    "scenarios": (["--scale=medium"], "tests/scenarios"),
    "scenarios on kind": (["--scale=medium", "--cluster=kind"], "tests/scenarios"),
    "experiments on kind": ([f"--scale={scales.QUICK}", "--cluster=kind"], "tests/experiments"),
    "acceptance": (_ACCEPTANCE, "acceptance/test_acceptance.py"),
    "backlog": (["--scale=real"], "tests/experiments/test_backlog.py"),
    "scenarios at real time": (["--scale=real"], "tests/scenarios"),
    "experiments at medium": (["--scale=medium"], "tests/experiments"),
    "experiments at close": (["--scale=close"], "tests/experiments"),
    "experiments at standard": (["--scale=standard"], "tests/experiments"),
    "experiments at standard on kind": (["--scale=standard", "--cluster=kind"], "tests/experiments"),
    "experiments at real time": (["--scale=real"], "tests/experiments"),
    "experiments at real time, an HPA sync of 5 s": (["--scale=real", "--lab-hpa-sync-s=5"], "tests/experiments"),
}


def kind(tests: Sequence[str], scale: str, runtime: str = "binary") -> str | None:
    """The kind of session on ``runtime`` at ``scale``, in words, that has all of ``tests``, the narrowest; None without one.

    Where a test has a scale of its own, ``scale`` names that too, after a semicolon.
    """
    found = []
    for name, (options, path) in SESSIONS.items():
        given = dict(option.split("=", 1) for option in options)
        own = scales.load(given.get("--scale", scales.QUICK))
        own = replace(own, sync_s=float(given.get("--lab-hpa-sync-s", own.sync_s)))
        same = str(own) in scale.split("; ") and given.get("--cluster", "binary") == runtime
        if same and all(test.startswith(path) for test in tests):
            found.append(name)
    return max(found, key=lambda name: len(SESSIONS[name][1]), default=None)


@dataclass(frozen=True)
class Said:
    """One test: its rows of verdicts.json, the files that it read of each record, and whether it came to its end."""

    rows: list[dict[str, Any]]
    trials: dict[str, list[str]]
    whole: bool


def judge(
    session: str, records: Path, tests: Sequence[str] = (), repeat: int = 1, *, one_record: bool = False
) -> Mapping[str, Said]:
    """What ``tests`` of ``session`` (all of them by default) say of the records under ``records``, ``repeat`` of each trial.

    With ``one_record`` the first record of each trial stands for all of its runs. Raises :class:`LabFault` when the session
    itself can't be run.
    """
    options, everything = SESSIONS[session]
    with tempfile.TemporaryDirectory(prefix="elastic-lab-judged-") as folder:
        notes = Path(folder, "notes.json")
        output = Path(folder, "output")
        arguments = ["-p", "tests.records.plugin", f"--note={notes}", "-p", "no:cacheprovider"]
        arguments += ["-p", "no:unraisableexception"]  # at its end it collects garbage, which takes a tenth of a session's time
        arguments += [
            "-Wignore::pytest.PytestAssertRewriteWarning",  # of modules that are imported already: no test of these asserts
            f"--from-records={records}",
            f"--results={folder}",
            f"--repeat={repeat}",
            *([ONE_RECORD] if one_record else []),
            *options,
            *(tests or [everything]),
        ]
        process = _FORKS.Process(target=_run, args=(arguments, output))
        process.start()
        process.join(TIMEOUT_S)
        if process.is_alive():
            process.kill()
            process.join()
        if not notes.exists():
            text = output.read_text() if output.exists() else ""
            raise LabFault(f"the nested session of {session} ended with {process.exitcode}: {text[-2000:]}")
        return {test: Said(**said) for test, said in json.loads(notes.read_text()).items()}


def _run(arguments: Sequence[str], output: Path) -> None:
    """Run pytest in this process, which is forked for it; what it prints goes to ``output``."""
    os.chdir(paths.PROJECT)
    with output.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    sys.exit(pytest.main(list(arguments)))


def differences(before: Mapping[str, Sequence[Mapping[str, Any]]], now: Mapping[str, Said]) -> list[str]:
    """How ``now`` differs from the rows of ``before``, a line for each claim; floats agree to nine digits.

    A claim is known by its sentence, its bound, its number and its repeats or pairs; the name of its quantity may change.
    """
    found = []
    for test, rows in before.items():
        said = now.get(test)
        if said is None or not said.whole or len(said.rows) != len(rows):
            after = "no such test" if said is None else f"{len(said.rows)}" if said.whole else "a test that broke"
            found.append(f"{test}: {len(rows)} verdicts before, {after} now")
            continue
        for old, new in zip(rows, said.rows, strict=True):
            if not _same(old, new):
                found.append(f"{test}: {_text(old)} before, {_text(new)} now")
    return found


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if any(old[field] != new[field] for field in ("why", "operator", "bound", "unit", "verdict", "trials")):
        return False
    ours, theirs = ({"measured": row["measured"]} | (row.get("repeats") or row.get("pairs") or {}) for row in (old, new))
    return ours.keys() == theirs.keys() and all(_near(ours[name], theirs[name]) for name in ours)


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None or one == other:  # a time that never ends is as long as another
        return one == other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def _text(row: Mapping[str, Any]) -> str:
    measured = "no data" if row["measured"] is None else f"{row['measured']:.9g} {row['unit']}"
    wanted = f"wanted {SIGNS.get(row['operator'], row['operator'])} {row['bound']:g}"
    return f"{row['objective']}: {measured}, {wanted}, {row['verdict']}: {row['why']!r} of {', '.join(row['trials'])}"
