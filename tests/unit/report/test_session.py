"""session.json: what is written is read again, another content is one line; and the schedule by which a session ends."""

import json
from dataclasses import replace

import pytest

from lab.errors import InputError
from lab.inputs import scale as scales
from lab.judge.claim import Repeats
from lab.judge.pairs import Pairs
from lab.report.schedule import CLUSTER_S, Planned, Progress, Schedule
from lab.report.session import FILE, Case, Section, Session, Validity, read
from lab.report.tables import Cell, Table
from tests.unit.report.sessions import BREACHED, CONCLUSION, HEAD, HELD, NO_DATA, gates

TABLE = Table(["a", "b"], [["x", Cell(links=(("r", "records/r/"),), style="number")]], frozenset({1}))
REPEATED = replace(HELD, repeats=Repeats(6, 5, 95.0, 60.0, 95.0, 0.97), measured=float("inf"))
PAIRED = replace(BREACHED, pairs=Pairs(6, -1.0, 2.0, 0.97, 6, 0.5))
SESSION = Session(
    head=HEAD,
    speed=3e5,
    versions={"keda": "2.21.0"},
    tests=[Case("t::a", "2_reaction", known=["docs/upstream/x"], rows=[REPEATED, PAIRED, NO_DATA], tables=[TABLE])],
    conclusions=[CONCLUSION],
    validity=[Validity("a1", "valid", "")],
    gates=list(gates()),
    folders={"a1": "records/a1"},
    policy="a: 1",
    sections=[Section("Times", "s", TABLE)],
)


def test_it_is_read_as_it_was_written(tmp_path):
    """All types come back; a folder without one has no session."""
    assert read(tmp_path) is None
    SESSION.write(tmp_path)
    assert read(tmp_path) == SESSION
    assert "<svg" not in (tmp_path / FILE).read_text()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"schema": 1}, "schema: 1 is not allowed; allowed: 2: judge the records again"),
        ({"head": {"runs": "many"}}, "head.runs: 'many' is not allowed"),
        ({"tests": [{"id": "a"}]}, "tests[0].experiment: missing; allowed:"),
        ({"asked": None}, "asked: missing; allowed:"),
    ],
)
def test_another_content_is_refused(tmp_path, change, line):
    """With the file, the field and the value."""
    SESSION.write(tmp_path)
    file = tmp_path / FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError) as error:
        read(tmp_path)
    assert str(error.value).startswith(f"{file}: {line}")
    file.write_text("{")
    with pytest.raises(InputError, match="content"):
        read(tmp_path)


QUICK, REAL = scales.load("quick"), scales.load("real")
TESTS = (Planned("a", "1: CPU", 90), Planned("b", "the centre", 300, "standard"), Planned("c", "another"))


def test_the_plan_is_printed_with_its_time():
    """Tests of two scales need a cluster each; a test of unknown length is said to be one."""
    first, *rows = Schedule(TESTS, QUICK, 1).lines
    assert Schedule(TESTS, QUICK, 1).seconds == 390 + 2 * CLUSTER_S
    assert first == "plan: 3 tests, about 7 min 00 s; the time of 1 is not known"
    assert [row.strip() for row in rows] == ["1 min 30 s  1: CPU", "5 min 00 s  the centre"]
    assert Schedule(TESTS[2:], QUICK, 1).lines == ["plan: 1 test; their time is not known"]


def test_repeats_and_scales_take_their_time():
    """At real time a quick trial takes thirty times as long, one of standard five times; each repeat as long again."""
    assert Schedule(TESTS, REAL, 2).seconds == 2 * (90 * 30 + 300 * 5) + CLUSTER_S


def test_what_is_left_follows_from_what_was_slow():
    """A session that is twice as slow as planned stays so; a faster one is not believed."""
    schedule = Schedule(TESTS, QUICK, 1)
    assert schedule.progress({"a"}, 2 * (90 + CLUSTER_S)) == "1 of 3 tests have ended after 3 min 30 s; about 10 min 00 s to go"
    assert schedule.progress({"a"}, 10).endswith("about 5 min 00 s to go")
    assert schedule.progress({"a", "b", "c"}, 500) == "3 of 3 tests have ended after 8 min 20 s"


def test_a_test_without_trials_is_not_counted():
    """The session's summary has none."""
    said = []
    progress = Progress(Schedule(TESTS, QUICK, 1), said.append)
    for test in ("a", "summary"):
        progress.pytest_runtest_logfinish(test)
    assert [line.partition(" tests")[0] for line in said[3:]] == ["1 of 3"]
