"""Expected verdicts: what differs, in which direction, and what the committed file names."""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.archive import table
from lab.archive.lock import FOLDER
from lab.errors import InputError
from lab.judge import expectation
from lab.judge.claim import judge
from lab.judge.expectation import LEVEL, Expectations, Known, chance
from lab.judge.quantity import Quantity, repeated
from tests import expected

COUNTS = st.integers(1, 6).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))
ONE = {"held": 0, "of": 4, "seen": "0.42 of the rate", "sessions": ["a"]}


@given(COUNTS, COUNTS)
def test_chance_counts_every_way_to_share_out_what_held(now, known):
    """Of all runs in one bag. The samples may change places, a claim and its opposite too; equal rates never differ."""
    (held, runs), (known_held, known_runs) = now, known
    ways = combinations(range(runs + known_runs), held + known_held)
    drawn = Counter(sum(run < runs for run in way) for way in ways)
    rare = sum(times for times in drawn.values() if times <= drawn[held])
    assert chance(*now, *known) == rare / drawn.total() == chance(*known, *now)
    assert chance(*now, *known) == chance(runs - held, runs, known_runs - known_held, known_runs)
    assert chance(*known, *known) == 1


@given(COUNTS)
def test_one_run_differs_only_where_twenty_are_known(known):
    """A single run says nothing against few: 0 of 19 is the least that one held run differs from."""
    assert all(chance(held, 1, *known) >= LEVEL for held in (0, 1))
    assert chance(1, 1, 0, 19) == LEVEL > chance(1, 1, 0, 20)


def verdict(*values):
    """The verdict on less than 0.2 in these runs."""
    runs = [Quantity("dip", "of the rate", value) for value in values]
    return judge(repeated(runs) < 0.2, "it keeps the objective")


@pytest.mark.parametrize(
    ("held", "of", "values", "as_expected", "note"),
    [
        (0, 4, (0.4, 0.5, 0.6), True, "as expected: breached (0.42 of the rate, 0 of 4 held)"),
        (0, 4, (0.1, 0.12, 0.6), True, "as expected: breached (0.42 of the rate, 0 of 4 held)"),
        (
            0,
            4,
            (0.1, 0.12, 0.13),
            False,
            "expected breached (0.42 of the rate, 0 of 4 held), now held 3 of 3 (0.12 of the rate)",
        ),
        (4, 4, (0.3, 0.4, 0.5), False, "expected held (0.42 of the rate, 4 of 4 held), now held 0 of 3 (0.4 of the rate)"),
        (3, 6, (0.4,), True, "as expected: held in some runs (0.42 of the rate, 3 of 6 held)"),
        (None, 0, (0.1, 0.1), None, ""),
        (None, 0, (0.1, 0.1, 0.3), False, "expected held in every run, now held 2 of 3 (0.1 of the rate)"),
        (0, 4, (0.4, None), None, "run 2 of 2: no dip"),  # what has no number is no breach that was expected
        (None, 0, (0.4,), False, "expected held in every run, now held 0 of 1 (0.4 of the rate)"),
        (0, 19, (0.1,), True, "as expected: breached (0.42 of the rate, 0 of 19 held)"),  # just as rare as LEVEL
        (0, 20, (0.1,), False, "expected breached (0.42 of the rate, 0 of 20 held), now held 1 of 1 (0.1 of the rate)"),
    ],
)
def test_a_difference_has_both_numbers(held, of, values, as_expected, note):
    """In either direction. The verdict keeps its word, also where that was read from a file."""
    listed = {} if held is None else {"it keeps the objective": Known(**ONE | {"held": held, "of": of})}
    made = verdict(*values)
    read = {name: json.loads(json.dumps(getattr(made, name))) for name in ("kind", "verdict")}
    found = Expectations({"a": listed}).judge("a", replace(made, **read))
    assert (found.as_expected, found.note, found.verdict) == (as_expected, note, made.verdict)
    assert found.passes is (found.verdict == "held" if as_expected is None else as_expected)


@pytest.mark.parametrize("change", [{"kind": "invariant"}, {"kind": "control"}, {"kind": "bet"}, {"verdict": "invalid"}])
def test_no_rate_excuses_what_must_hold(change):
    """One breach of an invariant or a control is red, listed or not. Nothing is expected of another kind, or of no evidence."""
    other = replace(verdict(0.4), **change)
    assert Expectations({"a": {"it keeps the objective": Known(**ONE)}}).judge("a", other) == other


@pytest.mark.parametrize(
    ("entry", "suite", "line"),
    [
        (ONE | {"held": 5}, "night", r"night\.a\.b\.held: 5 is not allowed; allowed: 0 to 4, the runs"),
        (ONE | {"of": 0}, "night", r"night\.a\.b\.held: 0 is not allowed"),
        (ONE | {"held": -1}, "night", r"night\.a\.b\.held: -1 is not allowed"),
        (ONE | {"held": "0 of 4"}, "night", r"night\.a\.b\.held: '0 of 4' is not allowed; allowed: a whole number"),
        (ONE | {"when": 1}, "night", r"night\.a\.b\.when: 1 is not allowed; allowed: no field of that name"),
        (ONE, "day", r"suite: 'day' is not allowed; allowed: one of night"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, entry, suite, line):
    """With the entry's place in it."""
    (tmp_path / "expected.yaml").write_text(yaml.safe_dump({"night": {"a": {"b": entry}}}))
    with pytest.raises(InputError, match=line):
        expectation.read(tmp_path / "expected.yaml", suite)


@pytest.mark.parametrize(("held", "of"), [(0, 1), (1, 1), (4, 4)])
def test_none_held_and_all_held_are_counts_like_any(tmp_path, held, of):
    """Of one run, too."""
    file = tmp_path / "expected.yaml"
    file.write_text(yaml.safe_dump({"night": {"a": {"b": ONE | {"held": held, "of": of}}}}))
    assert expectation.read(file, "night").known["a"]["b"] == Known(**ONE | {"held": held, "of": of})


@pytest.mark.services
def test_the_committed_file_is_what_the_archive_says():
    """Each entry names a test and a sentence of the code, and has the counts of the table of verdicts."""
    assert expected.text(table.read(paths.PROJECT / FOLDER), expected.collected()) == expected.FILE.read_text(encoding="utf-8")
    for suite in expected.SUITES:
        assert expectation.read(expected.FILE, suite).known
