"""The exit code of a session tells a breach from a fault of the lab, and its verdicts are its own."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lab import paths
from tests.suite import NESTED_S

pytestmark = pytest.mark.services

SAID = {"page": "report.html", "summary": "summary.md"}  # what a session says in words
STALE = '[{"objective": "of last week"}]'
TESTS = '''
import signal
from pathlib import Path

import pytest

from lab.errors import InputError, LabFault, NoData
from lab.inputs.scale import Scale
from lab.judge.measure import quantity
from lab.judge.quantity import Quantity
from lab.judge.measure import Runs
from lab.record.store import Record


class Empty(Record):
    """A record of nothing."""

    id = "one"
    scale = Scale("real", 1, 1)


pytestmark = pytest.mark.spike
EMPTY = Runs([Empty(Path("x"))])


@pytest.fixture
def judged(evidence, monkeypatch):
    monkeypatch.setattr("lab.evidence.attach", lambda *_: None)
    monkeypatch.setattr("lab.evidence.judge_validity", lambda _: ())
    monkeypatch.setattr("lab.evidence.side_by_side", lambda *_: {"x": {"trial": Quantity("x", "", 1.0)}})
    return evidence


@quantity("x", "a number")
def number(value):
    return value


def nothing():
    raise NoData("no samples")


def test_holds(judged):
    judged.report("figures", {"missing": quantity("x", "nothing")(nothing)()})
    with judged.of(EMPTY, delivery=None) as claim:
        claim(number(2) > 1, "it is large")


def test_breach(judged):
    with judged.of(EMPTY, delivery=None) as claim:
        claim(number(0) > 1, "it is large")


def test_plain_assertion():
    assert False


def test_nothing_outside_of_an_objective():
    nothing()


def test_nothing_within_the_block(judged):
    with judged.of(EMPTY, delivery=None) as claim:
        claim(number(2) > 1, "it is large")
        nothing()


def test_fault():
    raise LabFault("a component died")


def test_refused():
    raise InputError("results", "record", "x", "a stored trial")


@pytest.fixture
def broken():
    assert False, "a fixture's"


def test_broken_setup(broken):
    pass


def test_interrupted(judged):
    raise KeyboardInterrupt


def test_terminated(judged):
    signal.raise_signal(signal.SIGTERM)


def test_later(judged):
    """A later question."""
'''
CODE = """
def test_of_code():
    raise ValueError("no lab, no fault")
"""


@pytest.fixture
def session(tmp_path_factory):
    """Runs a session of some of TESTS, with an earlier one's verdicts in its folder: (code, printed, folder)."""
    folder = tmp_path_factory.mktemp("x")  # a folder whose name -k can't take for a test's
    for name, text in {"test_sessions.py": TESTS, "test_code.py": CODE}.items():
        (folder / name).write_text(text)
    results = folder / "results"
    results.mkdir()
    for name in ("verdicts.json", "summary.md"):
        (results / name).write_text(STALE)

    def run(chosen, *options):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
        command += [str(folder), "-k", chosen, f"--results={results}", *options]
        ran = subprocess.run(command, cwd=paths.PROJECT, capture_output=True, text=True, timeout=NESTED_S, check=False)
        verdicts = results / "verdicts.json"
        rows = json.loads(verdicts.read_text()) if verdicts.exists() else None
        said = {kind: one.read_text() if (one := results / name).exists() else "" for kind, name in SAID.items()}
        return SimpleNamespace(code=ran.returncode, printed=ran.stdout, rows=rows, results=results, **said)

    return run


def test_a_breach_and_no_data_are_1(session):
    """An objective, a plain assertion, and a figure that no objective asked for: the lab did its work."""
    ran = session("holds or breach or assertion or nothing")
    assert ran.code == 1, ran.printed
    assert "4 failed, 1 passed" in ran.printed
    assert "faults of the lab" not in ran.printed
    assert sorted(row["verdict"] for row in ran.rows) == ["breached", "held", "held", "no data", "no data"]


def test_a_fault_is_3_also_beside_a_breach(session):
    """What broke is named; a fixture's assertion is no objective's. Verdicts of an earlier session don't stand in for it."""
    ran = session("fault or setup or breach")
    assert ran.code == 3, ran.printed
    assert "test_fault (call): lab.errors.LabFault: a component died" in ran.printed
    assert "test_broken_setup (setup): AssertionError: a fixture's" in ran.printed
    assert [row["verdict"] for row in ran.rows] == ["breached"]
    for text in (ran.printed, ran.page, ran.summary):
        assert "2 tests are broken. 1 claim was breached." in text
    for text in (ran.page, ran.summary):
        assert "lab.errors.LabFault: a component died" in text
    assert ran.printed.splitlines()[-1] == f"read {ran.results / 'report.html'}"


@pytest.mark.parametrize("end", ["interrupted", "terminated"])
def test_an_interrupted_session_says_how_much_of_it_ran(session, end):
    """In the same words everywhere, and by name what did not run. What ran is kept; the exit code is pytest's own.

    SIGTERM, by which a CI system ends a job, does as Ctrl-C does.
    """
    ran = session(f"holds or {end} or later")
    assert ran.code == 2, ran.printed
    assert [row["verdict"] for row in ran.rows] == ["held"]
    for text in (ran.printed, ran.page, ran.summary):
        assert "The session was interrupted: 0 of 1 experiment and 1 of 3 tests ran. Not run: a part of sessions." in text
        assert "2 of 3 tests did not run: " in text
        assert "A later question." in text
    assert ran.printed.splitlines()[-1] == f"read {ran.results / 'report.html'}"


def test_verdicts_of_an_earlier_session_stand_where_no_trial_is_judged(session):
    """By unit tests, whose failure is no fault of a running lab, and by a collection. A session that ends before it judges
    leaves none: a record that is not there is bad input.
    """
    for chosen, options, code, rows in (
        ("test_of_code", [], 1, json.loads(STALE)),
        ("fault", ["--collect-only"], 0, json.loads(STALE)),
        ("refused", [], 2, None),
    ):
        ran = session(chosen, *options)
        assert (ran.code, ran.rows) == (code, rows), ran.printed
