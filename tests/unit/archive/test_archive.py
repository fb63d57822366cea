"""The archive on a repository that the test makes: what is put in comes out of a whole, a shallow and a blob-less clone."""

import json
import subprocess
from dataclasses import replace

import pytest

from lab import options
from lab.__main__ import main
from lab.archive import lock, table
from lab.archive.lock import FOLDER, Lock
from lab.archive.repository import Repository
from lab.commands import evidence
from lab.errors import InputError, LabFault
from lab.judge import gates
from lab.measure.fault_tally import together
from lab.record import seal, store, trial
from tests.unit.measure.built import sealed
from tests.unit.measure.test_faults import under
from tests.unit.measure.test_kills import done, range_of

CALM = {"why": "it is calm", "objective": "flips", "measured": 0, "unit": "flips", "operator": "==", "bound": 0.0}
CALM |= {"kind": "claim", "verdict": "held", "source": "text 1", "repeats": None, "real_time": "quick only"}
FAST = CALM | {"why": "it is fast", "measured": None, "verdict": "no data", "repeats": {"n": 3, "held": 2, "low": None}}
SESSION = {
    "head": {"scale": "quick: time / 30", "runtime": "binary", "machine": "2 cores", "commit": "abc"},
    "tests": [{"id": "tests/experiments/test_5_flapping.py::test_a", "rows": [CALM, FAST]}],
}


def git(where, *words):
    """Run git, which must succeed."""
    return subprocess.run(["git", "-C", str(where), *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """A repository with an archive of no session, which serves clones without blobs."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "origin"
    folder = root / FOLDER
    folder.mkdir(parents=True)
    lock.write(Lock(sessions={}), folder)
    table.write([], folder)
    git(root, "init", "--quiet", "--initial-branch=main")
    settings = {"user.name": "a", "user.email": "a@b.c"}
    for name, value in (settings | dict.fromkeys(("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"), "true")).items():
        git(root, "config", name, value)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "begin")
    return root


@pytest.fixture
def session(tmp_path):
    """What judging a session test by test leaves: its records and verdicts."""
    folder = tmp_path / "small"
    (folder / "records" / "a-1").mkdir(parents=True)
    (folder / "records" / "a-1" / "trial.json").write_text("{}")
    (folder / "records" / "a-1" / "lag.parquet").write_bytes(bytes(range(256)) * 40)
    (folder / "verdicts.json").write_text('{"repeat": 1}')
    return folder


@pytest.fixture
def archived(origin, session):
    """The origin with session "one" in its archive."""
    Repository(origin).add(session, "one", table.rows("one", SESSION))
    return origin


def contents(folder):
    """Every file in ``folder``, by its name."""
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in lock.files(folder)}


def clone(origin, *options):
    """A clone of ``origin`` beside it, made with ``options`` of git clone."""
    there = origin.with_name("clone")
    subprocess.run(["git", "clone", "--quiet", *options, f"file://{origin}", str(there)], check=True, capture_output=True)
    return there


def test_a_session_is_committed_locked_and_removed(archived, session):
    """Two commits: the first has its files, the second the lock and the table, and no checkout has the files from then on."""
    assert git(archived, "status", "--porcelain") == ""
    assert sorted(path.name for path in (archived / FOLDER).iterdir()) == ["lock.json", "verdicts.csv"]
    entry = Repository(archived).lock.entry("one")
    assert entry.commit == git(archived, "rev-parse", "HEAD^")
    assert entry.files == 3
    assert entry.bytes == sum(map(len, contents(session).values()))
    calm, fast = table.read(archived / FOLDER)
    assert (calm.session, calm.value, calm.scale, calm.n, calm.real_time) == ("one", "0", "quick", "1", "quick only")
    assert (fast.value, fast.held, fast.n, fast.verdict) == ("", "2", "3", "no data")


def test_a_row_has_the_scale_that_its_test_ran_at():
    """Its own, where the marks of its claims name another than the session's first."""
    calm = CALM | {"real_time": "standard only"}
    own = {"id": "tests/experiments/test_acceptance.py::test_a", "rows": [calm, CALM | {"kind": "control", "real_time": ""}]}
    head = SESSION["head"] | {"scale": "quick: time / 30; standard: time / 5"}
    found = table.rows("one", {"head": head, "tests": [*SESSION["tests"], own]})
    assert [row.scale for row in found] == ["quick", "quick", "standard", "standard"]


@pytest.mark.parametrize("options", [(), ("--depth=1",), ("--filter=blob:none",), ("--depth=1", "--filter=blob:none")])
def test_what_was_put_in_comes_out_of_any_clone(archived, session, options, tmp_path):
    """Byte by byte; a clone that lacks the commit or its files gets them from where it was cloned."""
    output = tmp_path / "taken"
    there = Repository(clone(archived, *options))
    assert there.fetch("one", output) == output
    assert contents(output) == contents(session)
    assert contents(there.fetch("one")) == contents(session)
    assert git(there.root, "status", "--porcelain") == ""


def test_the_lock_vouches_for_a_trial_json_that_was_sealed_without_itself(origin, session):
    """Where it is read from the archive, and nowhere else."""
    record, files = session / "records" / "a-1", {"lag.parquet": "x"}
    (record / "trial.json").write_text(json.dumps({"id": "a-1", "files": files}))
    assert "trial.json has no checksum" in seal.damage(record, files)
    Repository(origin).add(session, "one", [])
    taken = Repository(origin).fetch("one") / "records" / "a-1"
    assert seal.damage(taken, json.loads((taken / "trial.json").read_text())["files"]) == ["lag.parquet is changed"]


def test_a_shallow_clone_without_its_remote_says_what_to_type(archived, tmp_path):
    """One line, with the command."""
    there = clone(archived, "--depth=1")
    archived.rename(tmp_path / "gone")
    with pytest.raises(InputError, match="fetch --unshallow"):
        Repository(there).fetch("one")


def test_other_files_than_the_locked_ones_are_a_fault(archived, tmp_path):
    """Nothing is left of them."""
    folder = archived / FOLDER
    known = Repository(archived).lock
    lock.write(Lock(sessions={"one": known.entry("one").model_copy(update={"bytes": 7, "sha256": "0" * 64})}), folder)
    with pytest.raises(LabFault, match=r"one is not what was locked: bytes is [\d]+, locked as 7; sha256 is "):
        Repository(archived).fetch("one", tmp_path / "taken")
    assert not (tmp_path / "taken").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".one")]


def test_what_can_not_be_done_is_refused_before_anything_changes(archived, session, tmp_path):
    """An unknown name, a name twice, a folder with files, changes that are not committed, and no repository."""
    there, before = Repository(archived), git(archived, "rev-parse", "HEAD")
    with pytest.raises(InputError, match="'two' is not allowed; allowed: a session of the archive: one"):
        there.fetch("two")
    with pytest.raises(InputError, match="a name that no session of the archive has"):
        there.add(session, "one", [])
    with pytest.raises(InputError, match="a folder that is empty or not there"):
        there.fetch("one", session)
    (archived / FOLDER / "verdicts.csv").write_text("")
    with pytest.raises(InputError, match="a checkout whose changes are committed"):
        there.add(session, "two", [])
    with pytest.raises(InputError, match="a clone of the lab's repository"):
        Repository(tmp_path)
    assert git(archived, "rev-parse", "HEAD") == before


@pytest.mark.parametrize("content", ['{"sessions": {"one": {"date": "today"}}}', "[]", '{"sessions": {}, "more": 1}'])
def test_a_lock_or_a_table_that_can_not_be_used_is_refused_in_one_line(origin, content):
    """By its file and the field. A column that moved would make a number another's."""
    (origin / FOLDER / "lock.json").write_text(content)
    with pytest.raises(InputError, match=r"lock\.json: "):
        _ = Repository(origin).lock
    (origin / FOLDER / "verdicts.csv").write_text("session,value\none,1\n")
    with pytest.raises(InputError, match="columns"):
        table.read(origin / FOLDER)


def test_the_command_lists_and_fetches(archived, capsys, tmp_path):
    """A line a session with its verdicts; the folder of what was fetched."""
    assert main(["evidence", f"--repository={archived}", "list"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("one ")
    assert line.endswith("1 held, 1 no data")
    assert main(["evidence", f"--repository={archived}", "fetch", "one", f"--output={tmp_path / 'out'}"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"


def test_the_command_adds_what_judging_again_kept(origin, session, tmp_path, monkeypatch, capsys):
    """The results are judged test by test in a process of its own, and a session without an end is refused."""
    results = tmp_path / "results"
    results.mkdir()
    assert main(["evidence", f"--repository={origin}", "add", str(results), "two"]) == 2
    assert "session.json" in capsys.readouterr().err
    (results / "session.json").write_text(json.dumps(SESSION))

    monkeypatch.setattr(evidence, "_judge", lambda root, given, target: session.rename(target))
    assert main(["evidence", f"--repository={origin}", "add", str(results), "two"]) == 0
    assert list(Repository(origin).lock.sessions) == ["two"]
    assert len(table.read(origin / FOLDER)) == 2


def test_a_session_of_the_archive_is_judged_by_its_name(archived, monkeypatch):
    """Where --from-records takes a folder of records it takes evidence:NAME; a name that is not there is refused."""
    monkeypatch.setattr(Repository.__init__, "__defaults__", (archived,))
    assert store.stored(options.records_folder("evidence:one")).keys() == {"a-1"}
    with pytest.raises(InputError, match="a session of the archive: one"):
        options.records_folder("evidence:two")


def test_what_faults_did_is_counted_into_the_lock(archived, tmp_path, monkeypatch, capsys):
    """Of finished trials with faults, under the session's name, once, with their heads; another session keeps it.

    A record that its session did not come to close is none, and an invalid one does not count.
    """
    results = tmp_path / "results"
    (results / "records").mkdir(parents=True)
    under(results / "records" / "a-1", [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)], [range_of(0, 0, 9)])
    sealed(results / "records" / "a-1")
    under(unclosed := results / "records" / "a-2", [])
    replace(trial.read(unclosed), files=None).write(unclosed)
    counting = ["evidence", "--repository", str(archived), "faults", str(results), "night"]
    for _ in range(2):
        assert main(counting) == 0
        assert "night: 1 trials, 0 untold, 3 injections, 0 omitted, 0 lost" in capsys.readouterr().out
    repository = Repository(archived)
    kept, (head,) = repository.lock, repository.heads("night")
    assert (kept.faults["night"]["injections"], kept.faults["night"]["date"]) == (3, "1970-01-01")
    assert (head["record"], len(head["trial"]["faults"]), together([head["tally"]])["injections"]) == ("a-1", 3, 3)
    assert list(kept.sessions) == ["one"]
    assert (git(archived, "status", "--porcelain"), (archived / FOLDER / "night").exists()) == ("", False)
    repository.add(tmp_path / "small", "two", [])
    assert repository.lock.faults == kept.faults
    assert main([*counting[:-1], "day"]) == 2
    assert "'a-1' is not allowed; allowed: a trial that is not counted yet: night has it" in capsys.readouterr().err
    with monkeypatch.context() as disturbed:
        disturbed.setattr(gates, "reason", lambda verdicts: "a foreign load")
        assert main(counting) == 2
    sealed(results / "records" / "a-1", ended="running")
    assert main(counting) == 2
    assert capsys.readouterr().err.count("results of a session with finished, valid trials under faults") == 2


def test_heads_are_those_that_were_locked(archived):
    """Others are a fault."""
    repository = Repository(archived)
    repository.add_faults("night", [{"record": "a-1"}], {"injections": 3})
    assert repository.heads("night") == [{"record": "a-1"}]
    changed = {"night": repository.lock.faults["night"] | {"heads": "0" * 64}}
    lock.write(repository.lock.model_copy(update={"faults": changed}), repository.folder)
    with pytest.raises(LabFault, match="not what was locked"):
        repository.heads("night")
