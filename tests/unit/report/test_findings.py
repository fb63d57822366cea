"""The page of a session's evidence: every verdict with its class, its runs and its command, and a figure beside it."""

from pathlib import Path

import pytest

from lab.__main__ import main
from lab.errors import InputError
from lab.report import evidenceindex, findings, session
from tests.unit.report.sessions import BREACHED, CONCLUSION, HELD, INVARIANT, NO_DATA, content

HEAD = {"date": "2026-11-23", "scale": "quick: time / 30, rates x 1", "runs": "6 of each trial"}
REPEATS = {"n": 6, "held": 5, "low": 1.25, "high": 2.5, "confidence": 0.97}
NOTE = """Experiment 2: how soon?

Hypothesis. A ``ScaledObject`` answers | soon.

Method. This paragraph is no prediction.

What would refute it. A reaction beyond 90 s."""


@pytest.fixture
def told():
    """A session of three experiments: one has a chart and a note, one was breached, one has no data."""
    made = content([INVARIANT, HELD | {"repeats": REPEATS}, BREACHED, NO_DATA], [CONCLUSION], HEAD)
    for test, name in zip(made["tests"], ("reaction", "ceiling"), strict=True):
        test |= {"id": f"tests/experiments/test_{name}.py::test_it[a-1]"}
    made["tests"][0] |= {"note": NOTE, "picture": "<svg>curve</svg>", "alt": "lag [messages]"}
    return made


def test_each_verdict_has_its_class_its_number_and_its_runs(told):
    """What needs attention stands before all experiments, in the words of the session's page."""
    text = findings.markdown(told, Path("docs/evidence/one"))
    rows = [line for line in text.splitlines() if line.startswith(("| ✔", "| ✘", "| ?"))]
    assert len(rows) == 4
    assert sum("| invariant |" in row for row in rows) == 1
    assert any("1.25 to 2.5 (97 %), n = 6, held in 5" in row for row in rows)
    assert text.index("## Breached") < text.index("## No data") < text.index(". How soon?\n")
    assert "maxReplicaCount" in text.partition("## What the experiments say of settings")[2]


def test_what_was_predicted_is_quoted_and_the_method_is_not(told):
    """A docstring's code is code, and its other signs are escaped."""
    text = findings.markdown(told, Path("docs/evidence/one"))
    assert "\n\nHypothesis. A `ScaledObject` answers \\| soon.\n" in text
    assert "What would refute it. A reaction beyond 90 s." in text
    assert "Method" not in text


def test_its_commands_run_it_again(told):
    """All of it from the records beside it, and each experiment anew."""
    text = findings.markdown(told, Path("docs/evidence/one"))
    both = "tests/experiments/test_reaction.py tests/experiments/test_ceiling.py"
    assert f"\n    pytest {both} --scale=quick --repeat=6 --from-records=docs/evidence/one\n" in text
    assert "\n    pytest tests/experiments/test_reaction.py --scale=quick --repeat=6\n" in text


def test_a_session_on_kind_is_asked_for_on_kind(told):
    """The same command on the other runtime would find no record."""
    told["head"]["runtime"] = "kind"
    assert " --scale=quick --cluster=kind --repeat=6 --from-records=" in findings.markdown(told, Path("docs/evidence/one"))


def test_the_command_writes_all_that_the_page_names(told, tmp_path, capsys):
    """The figure, the session's own page and its content, whose records are beside them."""
    told["folders"] = {"trial-1": "../elsewhere/trial-1"}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / session.FILE).write_text(session.as_text(told))
    assert main(["findings", str(tmp_path / "results"), "--to", str(tmp_path / "kept")]) == 0
    page = tmp_path / "kept" / findings.README
    assert capsys.readouterr().out == f"{page}\n"
    figure = "img/2-reaction-test-it-a-1.svg"
    assert f"![lag \\[messages\\]]({figure})" in page.read_text()
    assert (tmp_path / "kept" / figure).read_text() == "<svg>curve</svg>\n"
    kept = findings.read(tmp_path / "kept")
    assert kept["folders"] == {"trial-1": "records/trial-1"}
    assert (tmp_path / "kept" / "report.html").is_file()


def test_results_without_a_session_are_one_clear_line(tmp_path):
    """It says what is wanted."""
    with pytest.raises(InputError, match=r"session.json: 'no file' is not allowed; allowed: results of a session"):
        findings.read(tmp_path)


MARKED = f"# Findings\n\nby hand\n\n{evidenceindex.BEGIN}\nstale\n{evidenceindex.END}\n\n## Earlier\n"


def test_the_index_lists_each_session_and_leaves_the_text(told, tmp_path, capsys):
    """The newest first, a row for each test; what is written by hand stands as it was."""
    page = tmp_path / "findings.md"
    page.write_text(MARKED)
    for name in ("2026-11-23-one", "2026-11-24-two"):
        results = tmp_path / "evidence" / name
        results.mkdir(parents=True)
        (results / session.FILE).write_text(session.as_text(told))
        assert main(["findings", str(results), "--index", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("# Findings\n\nby hand\n")
    assert text.endswith(f"{evidenceindex.END}\n\n## Earlier\n")
    assert "stale" not in text
    assert text.index("](evidence/2026-11-24-two/README.md)") < text.index("](evidence/2026-11-23-one/README.md)")
    assert text.count("| ✘ breached |") == text.count("| ? no data |") == 2
    assert str(page) in capsys.readouterr().out
    assert evidenceindex.indexed(page, tmp_path / "evidence") == text


def test_a_page_without_the_marks_is_one_clear_line(tmp_path):
    """Nothing is written into a page that has no place for it."""
    (tmp_path / "page.md").write_text("# By hand\n")
    with pytest.raises(InputError, match=r"page.md: marks: 'missing' is not allowed; allowed: a page with the lines"):
        evidenceindex.update(tmp_path / "page.md", tmp_path)
