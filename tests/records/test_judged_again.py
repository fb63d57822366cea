"""The committed records give the verdicts that they gave: a measure that breaks is seen here, not after an hour's session."""

import itertools
import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from lab.inputs import scale as scales
from lab.record.store import Record, write_json
from lab.report.session import Case, Row, Session
from tests.experiments.test_summary import EXPERIMENTS
from tests.records import FOLDER, VERDICTS, archive
from tests.records import __main__ as command
from tests.records.choice import choose
from tests.records.compact import compact
from tests.records.sessions import Said, differences, judge, kind
from tests.unit.measure.conftest import REPORTS, TRANSITIONS, build

NEEDS = {"a.py::large": {"x", "y"}, "a.py::small": {"y"}, "b.py::one": {"y", "z"}, "c.py::one": {"w"}}
SIZES = {"w": 50, "x": 10, "y": 20, "z": 5}
ROW = {"objective": "flips", "unit": "flips", "verdict": "held", "trials": ["x"], "measured": 1.0}
ROW |= {"operator": "<=", "bound": 2.0, "why": "the group is calm", "kind": "claim"}


KEPT = json.loads((FOLDER / VERDICTS).read_text())["sessions"]
COMMITTED = [pytest.param(session, rows, id=session) for session, rows in KEPT.items() if rows]


@pytest.mark.parametrize(("session", "rows"), COMMITTED)
def test_committed_records_give_the_same_verdicts(session, rows):
    """Every objective of every test, its number, and in how many runs it was held. The tables that it read are noted."""
    found = judge(session, FOLDER, list(rows))
    assert differences(rows, found) == []
    for files in itertools.chain.from_iterable(said.trials.values() for said in found.values()):
        assert any(file.endswith(".parquet") for file in files)


FLAPPING, CPU = "tests/experiments/test_5_flapping.py::a", "tests/scenarios/payments/test_payments_cpu.py::a"


@pytest.mark.parametrize(
    ("test", "scale", "found"),
    [
        (FLAPPING, "quick", "experiments"),
        (FLAPPING, "real", "experiments at real time"),
        ("tests/experiments/test_backlog.py::a", "real", "backlog"),
        (CPU, "medium", "scenarios"),
        (CPU, "real", "scenarios at real time"),
        (CPU, "close", None),
    ],
)
def test_a_session_is_judged_at_its_own_scale(test, scale, found):
    """By the narrowest kind that has its tests. Runtime and sync are in the identity of its trials."""
    chosen = scales.load(scale)
    assert kind([test], str(chosen)) == found
    if found == "scenarios":
        assert kind([test], str(chosen), "kind") == "scenarios on kind"
    if found == "experiments":
        assert kind([test], f"{chosen}; {scales.load('standard')}") == found
    if found == "experiments at real time":
        assert kind([test], str(replace(chosen, sync_s=5.0))) == f"{found}, an HPA sync of 5 s"


def test_a_test_that_judges_all_records_is_left_out(tmp_path):
    """In its session it said something else than by itself, so that nobody could judge it again."""
    write_json(tmp_path / VERDICTS, {"repeat": 1, "sessions": {"experiments": {"own": [ROW], "all": [ROW]}}})
    row = Row("flips", 1.0, "<=", 2.0, "flips", "held", "the group is calm", experiment="5_flapping", trials=["x"])
    cases = [Case("own", "5_flapping", rows=[row]), Case("all", "5_flapping", rows=[replace(row, measured=2.0)])]
    command.leave_out(Session(tests=cases), tmp_path)
    assert json.loads((tmp_path / VERDICTS).read_text())["sessions"]["experiments"].keys() == {"own"}


def test_the_archive_is_judged_session_by_session(tmp_path, monkeypatch, capsys):
    """A test that says something else is named, and is a breach; once that is known, anything else is, and the old too."""
    write_json(tmp_path / VERDICTS, {"repeat": 6, "sessions": {"experiments": {"own": [ROW]}}})
    repository: Any = SimpleNamespace(lock=SimpleNamespace(sessions={"one": None}), fetch=lambda name: tmp_path)
    file = tmp_path / "known.json"
    file.write_text("{}")

    def judged(measured, accept=False):
        said = Said([ROW | {"measured": measured}], {}, whole=measured > 0)
        monkeypatch.setattr(archive, "judge", lambda *given: {"own": said} if given[-1] == 6 else {})
        code = archive.judge_archive(repository, ["one"], accept=accept, file=file)
        return code, capsys.readouterr().out.splitlines()

    assert judged(1.0) == (0, ["1 of 1 one: as known"])
    code, (differs, named) = judged(2.0)
    assert (code, differs) == (1, "1 of 1 one: 1 differ")
    assert named.startswith("  own: flips: 1 flips, wanted ≤ 2, held: 'the group is calm' of x before, flips: 2 flips")
    assert judged(2.0, accept=True)[0] == 0
    assert judged(2.0) == (0, ["1 of 1 one: as known, 1 tests by today's measures"])
    for measured in (3.0, 1.0, -1.0):
        code, (differs, named) = judged(measured)
        assert (code, named.startswith("  own: ")) == (1, True)


@pytest.mark.parametrize(("session", "rows"), COMMITTED)
def test_a_test_reads_the_same_for_two_runs_as_for_one(session, rows):
    """With --repeat: the record of each trial stands for both runs, and each claim is held or breached as before."""
    said = judge(session, FOLDER, list(rows), repeat=2, one_record=True)
    assert any(row["repeats"] for one in said.values() for row in one.rows)
    plain = {"repeats": None}
    once = [[row | plain | {"trials": list(dict.fromkeys(row["trials"]))} for row in one.rows] for one in said.values()]
    found = {test: replace(one, rows=own) for (test, one), own in zip(said.items(), once, strict=True)}
    assert differences(rows, found) == []


def test_every_experiment_is_among_them():
    """One that is not could break for a week of nights before it is seen."""
    judged = {row["experiment"] for rows in KEPT["experiments"].values() for row in rows}
    assert set(EXPERIMENTS) - judged == set()


def test_of_each_experiment_the_test_is_taken_that_adds_least():
    """A record that another test needs too is there already; what is too much is left out by name, the dearest first."""
    chosen = choose(NEEDS, SIZES)
    assert chosen.tests == ["a.py::small", "b.py::one", "c.py::one"]
    assert chosen.records == {"w", "y", "z"}
    few = choose(NEEDS, SIZES, most=40)
    assert few.tests == ["a.py::small", "b.py::one"]
    assert few.without == {"c.py": "its smallest records would make 75 bytes of 40"}


@pytest.mark.parametrize(
    "change",
    [
        *({"measured": 1.001}, {"measured": None}, {"verdict": "breached"}, {"trials": ["y"]}, {"operator": "<"}),
        *({"bound": 3.0}, {"unit": "s"}, {"why": "the group flaps"}),
        {"repeats": {"n": 2, "held": 1, "worst": 3.0, "low": 1.0, "high": 3.0, "confidence": 0.5}},
    ],
)
def test_a_verdict_that_differs_is_named(change):
    """By its number, its bound, its sentence or its trial; neither a float's last digits nor another name is a difference."""
    before = {"test": [ROW]}
    assert differences(before, {"test": Said([ROW | {"measured": 1.0 + 1e-12, "objective": "flips of all"}], {}, True)}) == []
    never = ROW | {"measured": math.inf}
    assert differences({"test": [never]}, {"test": Said([dict(never)], {}, True)}) == []
    (line,) = differences(before, {"test": Said([ROW | change], {}, True)})
    assert line.startswith("test: flips: 1 flips, wanted ≤ 2, held: 'the group is calm' of x before, ")
    assert len(differences(before, {"test": Said([], {}, False)})) == len(differences(before, {})) == 1


def test_a_small_record_has_what_its_tests_read(tmp_path):
    """The files that are named, without what no measure reads of them; row by row as they were."""
    (tmp_path / "whole" / "inputs").mkdir(parents=True)
    whole = build(tmp_path / "whole", TRANSITIONS, REPORTS)
    events = pd.DataFrame({"partition": [1, 0, 0], "offset": [0, 1, 0], "entity_id": [7] * 3, "seq": [2, 1, 0], "crc": [9] * 3})
    (tmp_path / "whole" / "ledger" / "events").mkdir(parents=True)
    events.to_parquet(tmp_path / "whole" / "ledger" / "events" / "part.parquet")
    bytes_ = compact(tmp_path / "whole", tmp_path / "small", {"transitions.parquet", "ledger/events", "hpa.log"})
    small = Record(tmp_path / "small")
    files = [file for file in small.folder.rglob("*") if file.is_file()]
    assert sorted(file.name for file in files) == ["events.parquet", "transitions.parquet", "trial.json"]
    assert bytes_ == sum(file.stat().st_size for file in files)
    pd.testing.assert_frame_equal(small.transitions, whole.transitions)
    assert small.produced.to_dict("list") == {"partition": [0, 0, 1], "offset": [0, 1, 0], "seq": [0, 1, 2]}
