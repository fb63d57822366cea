"""A session that goes on: what is finished is taken, what is not is run beside it, and nothing is run over unasked."""

import contextlib
import json
import shutil
import sys
from functools import partial

import pytest

from lab.__main__ import main
from lab.host import resources
from lab.record import seal
from lab.report import last_session

from . import project

pytestmark = pytest.mark.services

# Executes in the place of a cluster: leaves a copy of a committed record as that of the trial.
STAND_IN = f"""
import json
import shutil
from pathlib import Path

from lab.record import seal, store
from lab.record.store import Record
from lab.trial import runner


def execute(sides, cluster, spark, results, turn):
    records = []
    for side, folder in zip(sides, store.begin(results, [side.id for side in sides])):
        shutil.copytree({str(project.COMMITTED)!r}, folder, dirs_exist_ok=True)
        content = json.loads((folder / "trial.json").read_text()) | {{"id": side.id, "inputs": side.to_dict()}}
        (folder / "trial.json").write_text(json.dumps(seal.complete(content)))
        print("executed", folder.name)
        records.append(Record(folder))
    return records


runner.execute = execute
"""


def run(folder, *options):
    """A session in the repository ``folder``, whose trials are executed by the stand-in."""
    ran = project.session(sys.executable, folder, "-m", "spike", "-s", "--results=left", *options)
    ran.executed = ran.printed.count("executed ")
    return ran


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """(a repository, how its first session ended)."""
    folder = project.write(tmp_path_factory.mktemp("earlier") / "ours")
    (folder / "conftest.py").write_text(STAND_IN)
    return folder, run(folder, "--resume")


@pytest.fixture
def session(earlier, tmp_path):
    """Runs a further session in a copy of that repository."""
    shutil.copytree(earlier[0], tmp_path / "ours")
    return partial(run, tmp_path / "ours")


@pytest.fixture
def left(session, tmp_path):
    """What its sessions leave."""
    return tmp_path / "ours" / "left"


def records(left):
    """The names of the records there are."""
    return sorted(path.name for path in (left / "records").iterdir())


def test_a_session_goes_on(earlier, session, left):
    """It judges again all that is finished, and executes only what is not; the earlier attempt stays."""
    _, first = earlier
    assert (first.code, first.executed) == (1, 1), first.printed
    (name,) = records(left)
    second = session("--resume")
    assert (second.code, second.executed) == (1, 0), second.printed
    file = left / "records" / name / "trial.json"
    file.write_text(json.dumps(seal.complete(json.loads(file.read_text()) | {"ended": "interrupted"})))
    third = session("--resume")
    assert (third.code, third.executed) == (1, 1), third.printed
    assert records(left) == [name, f"{name}.2"]
    verdicts = json.loads((left / "verdicts.json").read_text())
    assert {trial for row in verdicts for trial in row["trials"]} == {f"{name}.2"}


def test_an_earlier_session_is_not_run_over(session, left, monkeypatch, tmp_path):
    """The next goes into a folder beside it and says so; what the earlier one left is all there. It is the one to report."""
    monkeypatch.setenv("TOX_ENV_DIR", str(tmp_path / "tox"))  # of its own: other tests' sessions run in the same environment
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    ran = session()
    assert (ran.code, ran.executed) == (1, 1), ran.printed
    assert "left has records of an earlier session (--resume goes on there): this one goes into left-2\n" in ran.printed
    assert len(records(left.with_name("left-2"))) == 1
    assert {path: path.read_bytes() for path in left.rglob("*") if path.is_file()} == before
    with contextlib.chdir(left.parent):
        assert last_session.find() == left.with_name("left-2")


def test_what_runs_no_trial_needs_no_leave(session):
    """Tests of code, a collection, and judging the records themselves."""
    assert session("--collect-only").code == 0
    assert session("--from-records=left").code == 1
    assert session("-m", "not spike", "-k", "their_own_code").code == 0


def test_a_session_that_did_not_start_has_no_report(session, left, monkeypatch, capsys, tmp_path):
    """In tox, which reports after whatever pytest did: not the session before, which its own start has made it forget."""
    monkeypatch.setenv("TOX_ENV_DIR", str(tmp_path / "tox"))
    last_session.keep(left, None)
    assert last_session.find() == left
    shutil.rmtree(tmp_path / "tox" / "tmp")  # as tox does before it runs a command
    assert session("--scale=none").code == 2
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "no report: the session did not start\n"


def test_two_sessions_at_once_on_one_folder_are_refused(session, left):
    """In one line, before anything of the first is touched: it may have no verdict yet. When it is over, the next goes on."""
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file() and path.name != ".lock"}
    first = resources.claim(left)
    for options in (["--resume"], ["--from-records=left"]):
        second = session(*options)
        assert (second.code, second.executed) == (2, 0), second.printed
        assert second.printed.count("--results: 'left' is not allowed; allowed: a folder that no other session writes now") == 1
        assert "Traceback" not in second.printed
    first.release()
    assert {path: path.read_bytes() for path in left.rglob("*") if path.is_file() and path.name != ".lock"} == before
    assert session("--resume").code == 1
