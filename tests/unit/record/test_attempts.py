"""A session only adds records: an attempt at a trial that has one gets a folder of its own, and none is touched."""

from dataclasses import replace

import pytest

from lab.errors import InputError
from lab.record import store
from lab.record.store import Record, attempts, begin, find, whole
from lab.report import session_page, session_tables
from lab.report.running_session import RunningSession
from lab.report.summary import Summary
from tests.unit.measure import whole as made

A, B = "plateau-lag-150-00000001", "plateau-cpu-00000002"


def leave(folder, identity, ended="complete", **more):
    """The record of an attempt that ended so."""
    replace(made.trial(made.inputs(), **more), id=identity, ended=ended).sealed(folder).write(folder)
    return folder


def attempt(results, *identities, ended="complete", **more):
    """Begin and end an attempt at these trials; its folders."""
    return [leave(folder, own, ended, **more) for folder, own in zip(begin(results, identities), identities, strict=True)]


def names(folders):
    """The folders' names."""
    return [folder.name for folder in folders]


def test_no_attempt_touches_another(tmp_path):
    """What is in the first record stays, whether it has come to an end or not."""
    (first,) = begin(tmp_path, [A])
    (first / "receipts.parquet").write_text("hours of work")
    (second,) = begin(tmp_path, [A])
    (third,) = begin(tmp_path, [A])
    assert names([first, second, third]) == [A, f"{A}.2", f"{A}.3"]
    assert (first / "receipts.parquet").read_text() == "hours of work"
    assert names(begin(tmp_path, [B])) == [B]
    assert names(attempt(tmp_path, A, B)) == [f"{A}.4", f"{B}.4"]  # the sides of a duet keep one number


def test_attempts_are_found_by_their_number(tmp_path):
    """In order of it, and not those of a trial whose identity only begins alike."""
    for _ in range(11):
        attempt(tmp_path, A)
    attempt(tmp_path, f"{A}1")
    (tmp_path / "records" / f"{A}.old").mkdir()
    assert list(attempts(tmp_path, A)) == list(range(1, 12))
    assert attempts(tmp_path, A)[11].name == f"{A}.11"
    assert attempts(tmp_path, B) == {}


def test_trials_that_a_session_did_not_ask_for_are_counted(tmp_path):
    """A page that goes on in a folder with other tests selected says that it is not about all of the folder."""
    machine = replace(made.MACHINE, speed=300_000)
    kept = [Record(folder) for _ in range(2) for folder in attempt(tmp_path, A, machine=machine)]
    attempt(tmp_path, B)
    assert store.identities(tmp_path) == {A, B}
    session = RunningSession(records=kept, asked={A}).session(tmp_path)
    assert session.speed == 300_000
    facts = Summary(session).facts
    assert facts["not judged"] == "1 more trial in this folder, of tests that were not selected"
    assert RunningSession(records=kept, asked={A, B}).session(tmp_path).head.others == 0


@pytest.mark.parametrize("ended", ["interrupted", "fault: the broker died", "running"])
def test_the_last_finished_attempt_is_judged(tmp_path, ended):
    """One that was cut short after it stands in no one's way; alone it is not judged."""
    attempt(tmp_path, A, ended=ended)
    assert not Record(tmp_path / "records" / A).finished
    with pytest.raises(InputError, match=f"ended: '{ended}'"):
        find(tmp_path, A)
    assert whole(tmp_path, [A]) is None
    attempt(tmp_path, A)
    attempt(tmp_path, A, ended=ended)
    assert find(tmp_path, A).name == f"{A}.2"
    assert names(record.folder for record in whole(tmp_path, [A])) == [f"{A}.2"]


def test_a_record_that_lacks_a_part_or_is_damaged_is_not_finished(tmp_path):
    """Going on with a session makes it anew. One that lacks a part can be judged, as no data; a damaged one is not."""
    (folder,) = attempt(tmp_path, A, missing={"ledger": "Spark did not start"})
    assert find(tmp_path, A).name == A
    assert whole(tmp_path, [A]) is None
    (folder / "added").write_text("x")
    assert whole(tmp_path, [A]) is None
    with pytest.raises(InputError, match="added is added"):
        find(tmp_path, A)


def test_a_duet_is_finished_when_both_sides_are_in_one_attempt(tmp_path):
    """Sides of two attempts were never beside each other."""
    one, _ = attempt(tmp_path, A, B)
    leave(one, A, "interrupted")
    _, two = attempt(tmp_path, A, B)
    leave(two, B, "fault: x")
    assert whole(tmp_path, [A, B]) is None
    attempt(tmp_path, A, B)
    assert names(record.folder for record in whole(tmp_path, [A, B])) == [f"{A}.3", f"{B}.3"]


def test_every_attempt_is_shown(tmp_path):
    """Of trials that were begun more than once, each with how it ended and whether it is valid; the page has them too."""
    attempt(tmp_path, A, ended="fault: etcd died", missing={"ledger": "no broker"})
    assert session_page.ATTEMPTS not in session_page.leave(tmp_path, RunningSession()).read_text()
    attempt(tmp_path, A)
    shown = session_page.leave(tmp_path, RunningSession()).read_text()
    assert session_page.ATTEMPTS in shown
    assert "fault: etcd died" in shown
    attempt(tmp_path, B)
    first, second = [A, "1", "fault: etcd died", "ledger", "no data"], [f"{A}.2", "2", "complete", "none", "no data"]
    assert session_tables.attempt_table(tmp_path).rows == [first, second]
    assert [(folder.name, how) for folder, how in session_tables.other_attempts(find(tmp_path, A))] == [(A, "fault: etcd died")]
    assert list(session_tables.other_attempts(find(tmp_path, B))) == []
