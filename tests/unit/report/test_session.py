"""session.json: what is written is read again, and another content is refused in one line."""

import json
from dataclasses import replace

import pytest

from lab.errors import InputError
from lab.judge.claim import Repeats
from lab.judge.pairs import Pairs
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
