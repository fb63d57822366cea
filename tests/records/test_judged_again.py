"""The committed records give the verdicts that they gave: a measure that breaks is seen here, not after an hour's session."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lab.record.store import Record
from tests.experiments.test_summary import EXPERIMENTS
from tests.records import FOLDER, VERDICTS
from tests.records.choice import choose
from tests.records.compact import compact
from tests.records.nested import SESSIONS, Said, differences, judge
from tests.unit.measure.conftest import REPORTS, TRANSITIONS, build

NEEDS = {"a.py::large": {"x", "y"}, "a.py::small": {"y"}, "b.py::one": {"y", "z"}, "c.py::one": {"w"}}
SIZES = {"w": 50, "x": 10, "y": 20, "z": 5}
ROW = {"objective": "flips", "unit": "flips", "verdict": "held", "trials": ["x"], "measured": 1.0}
ROW |= {"operator": "<=", "bound": 2.0, "why": "the group is calm"}


@pytest.fixture(scope="module")
def kept():
    """What is committed: the rows by session and test."""
    return SimpleNamespace(**json.loads((FOLDER / VERDICTS).read_text()))


@pytest.mark.parametrize("session", SESSIONS)
def test_committed_records_give_the_same_verdicts(kept, session):
    """Every objective of every test, and its number."""
    rows = kept.sessions[session]
    if not rows:
        pytest.skip(f"no record of {session} is committed")
    assert differences(rows, judge(session, FOLDER, list(rows))) == []


def test_an_experiment_reads_the_same_for_two_runs_as_for_one(kept):
    """With --repeat: the record of each trial stands for both runs, and each claim is held or breached as before."""
    rows = kept.sessions["experiments"]
    said = judge("experiments", FOLDER, list(rows), repeat=2)
    assert any(row["repeats"] for one in said.values() for row in one.rows)
    once = [[row | {"trials": list(dict.fromkeys(row["trials"]))} for row in one.rows] for one in said.values()]
    found = {test: replace(one, rows=own) for (test, one), own in zip(said.items(), once, strict=True)}
    assert differences(rows, found) == []


def test_every_experiment_is_among_them(kept):
    """One that is not could break for a week of nights before it is seen."""
    judged = {row["experiment"] for rows in kept.sessions["experiments"].values() for row in rows}
    assert set(EXPERIMENTS) - judged == set()


def test_of_each_module_the_test_is_taken_that_adds_least():
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
        {"measured": 1.001},
        {"measured": None},
        {"verdict": "breached"},
        {"trials": ["y"]},
        {"operator": "<"},
        {"bound": 3.0},
        {"unit": "s"},
        {"why": "the group flaps"},
    ],
)
def test_a_verdict_that_differs_is_named(change):
    """By its number, its bound, its sentence or its trial; neither a float's last digits nor another name is a difference."""
    before = {"test": [ROW]}
    assert differences(before, {"test": Said([ROW | {"measured": 1.0 + 1e-12, "objective": "flips of all"}], {}, True)}) == []
    (line,) = differences(before, {"test": Said([ROW | change], {}, True)})
    assert line.startswith("test: flips: 1 flips, wanted <= 2, held: 'the group is calm' of x before, ")
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
    assert sorted(file.name for file in small.folder.rglob("*") if file.is_file()) == [
        "events.parquet",
        "transitions.parquet",
        "trial.json",
    ]
    assert bytes_ == sum(file.stat().st_size for file in small.folder.rglob("*") if file.is_file())
    pd.testing.assert_frame_equal(small.transitions, whole.transitions)
    assert small.produced.to_dict("list") == {"partition": [0, 0, 1], "offset": [0, 1, 0], "seq": [0, 1, 2]}
