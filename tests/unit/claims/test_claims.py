"""The register of claims: each row names what is there, and a bad row is one clear line; a trace of a text, by the model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.errors import InputError
from lab.model import hpa
from tests import pages
from tests.claims import __main__ as page
from tests.claims import register

TEST = "tests/experiments/test_one.py::test_it"
ON_RECORDS = "tests/experiments/test_one.py::test_records"
ROW = {
    "id": "T1-it-is-so",
    "section": "1",
    "quote": "It is so.",
    "verdict": "held",
    "number": "It took 3.9 s.",
    "sessions": ["2026-11-23-one"],
    "tests": [TEST],
}
WAITING = {"id": "T1-waits", "section": "2", "quote": "It will be.", "verdict": "not yet judged", "missing": "A trial."}
IN_FOUR = {"sessions": ["2026-11-26-four"]}
ALONE: dict[str, object] = {"sessions": [], "command": "python -m lab"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two tests, and four sessions: of the first test one held all, one breached it, and one did both."""
    for file, text in {
        "tests/experiments/test_one.py": "def test_it():\n    pass\n\n\ndef test_records(evidence):\n    pass\n",
        register.TABLE: "session,test,claim,quantity,verdict\n"
        f"2026-11-23-one,{TEST}[quick],it is,steps,held\n2026-11-24-two,tests/other.py::test_it,it is,steps,held\n"
        f"2026-11-25-three,{TEST},it is,steps,breached\n2026-11-26-four,{TEST},it is,steps,held\n"
        f"2026-11-26-four,{TEST},it does,steps,breached\n2026-11-26-four,{TEST},it was,flips,no data\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "claims").mkdir()
    return tmp_path


def read(project: Path, *rows: object, name: str = "1.yaml") -> list[register.Text]:
    """The texts of the project once ``rows`` are written into the file ``name``, each held against the project."""
    content = {"name": "Text 1", "title": "Of it", "prefix": "T1", "claims": list(rows)}
    (project / "docs" / "claims" / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    found = register.texts(project / "docs" / "claims")
    for text in found:
        register.check(text, project)
    return found


def test_every_row_can_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    """The committed rows name tests, files and sessions that are there, and all of them are printed, with a session's scale."""
    assert page.main() == 0
    shown = capsys.readouterr().out
    rows = [claim for text in register.texts(page.CLAIMS) for claim in text.claims]
    assert [claim.id for claim in rows if f"| `{claim.id}` |" not in shown] == []
    assert "2026-11-23-pairs at quick" in shown


def test_the_page_begins_with_what_does_not_hold(project: Path) -> None:
    """The first sentence counts what is refuted and what is not yet judged; the sections follow in that order."""
    refuted, partly = ROW | {"id": "T1-wrong", "verdict": "refuted"}, ROW | {"id": "T1-half", "verdict": "partly"}
    read(project, ROW | {"number": "Of ten.", "sessions": []}, WAITING)  # a claim needs no session, and a number may be a word
    read(project, ROW | {"sessions": ["2026-11-25-three"], "verdict": "refuted"})
    read(project, ROW | {"sessions": [], "tests": [ON_RECORDS], "verdict": "partly", "missing": "A record."})
    read(project, ROW | ALONE)  # its test runs each time
    read(project, ROW | ALONE | {"tests": [], "verdict": "partly"})
    shown = page.page(read(project, ROW, refuted, partly, WAITING))
    assert "1 of 4 claims are refuted, 1 hold in part, 1 held, and 1 are not yet judged.\nOf those 1, 1 are not built" in shown
    sections = [line[3:] for line in shown.splitlines() if line.startswith("## ")]
    assert sections == ["Refuted", "Partly", "Not yet judged", "Held"]
    assert "| Text 1: Of it | 4 | [1](#refuted-text-1) |" in shown
    assert "| It took 3.9 s. | 2026-11-23-one | test | `pytest -m spike " in shown
    assert "| A trial. | not built yet |  |" in shown


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"verdict": "confirmed"}, "T1-it-is-so.verdict: 'confirmed' is not allowed; allowed: one of refuted, partly, not yet"),
        ({"number": "It was fast."}, "T1-it-is-so.number: 'It was fast.' is not allowed; allowed: a sentence with a number"),
        ({"tests": []}, "T1-it-is-so.command: '' is not allowed; allowed: a command, or tests"),
        ({"verdict": "not yet judged"}, "T1-it-is-so.number: 'It took 3.9 s.' is not allowed; allowed: none, as the claim"),
        ({"quote": "word " * 26}, "T1-it-is-so.quote: "),
        ({"id": "T2-it-is-so"}, "T2-it-is-so.id: 'T2-it-is-so' is not allowed; allowed: T1- and words"),
        ({"id": "T1-It_is"}, "T1-It_is.id: "),
        ({"sources": "none"}, "T1-it-is-so.sources: 'none' is not allowed; allowed: one of the fields command, id"),
        ({"repeat": "6"}, "T1-it-is-so.repeat: '6' is not allowed; allowed: a whole number"),
        ({"non_goal": "A cloud."}, "T1-it-is-so.non_goal: 'A cloud.' is not allowed; allowed: none"),
        ({"tests": [f"{TEST}s"]}, f"T1-it-is-so.tests: '{TEST}s' is not allowed; allowed: FILE::FUNCTION"),
        ({"command": "python docs/gone.py"}, "T1-it-is-so.command: 'docs/gone.py' is not allowed; allowed: a file of the"),
        ({"tests": ["tests/gone.py::test_it"]}, "T1-it-is-so.tests: 'tests/gone.py::test_it' is not allowed"),
        ({"sessions": ["2026-11-25-gone"]}, "T1-it-is-so.sessions: '2026-11-25-gone' is not allowed; allowed: a session of"),
        ({"sessions": ["2026-11-24-two"]}, "T1-it-is-so.sessions: '2026-11-24-two' is not allowed; allowed: a session of"),
        ({"sessions": ["2026-11-25-three"]}, "T1-it-is-so.sessions: '2026-11-25-three' is not allowed; allowed: a session of"),
        ({"sessions": ["2026-11-26-four"]}, "T1-it-is-so.sessions: '2026-11-26-four' is not allowed; allowed: a session of"),
        (IN_FOUR | {"objectives": ["it does"]}, "T1-it-is-so.objectives: 'it does' is not allowed; allowed: a part of"),
        (IN_FOUR | {"objectives": ["flips"]}, "T1-it-is-so.objectives: 'flips' is not allowed"),
        (IN_FOUR | {"objectives": ["steps"]}, "T1-it-is-so.objectives: 'steps' is not allowed"),
        (IN_FOUR | {"objectives": ["it is", "it has"]}, "T1-it-is-so.objectives: 'it has' is not allowed"),
        ({"sessions": ["2026-11-23-one", "2026-11-25-three"], "objectives": ["it is"]}, "T1-it-is-so.objectives: 'it is' is"),
        ({"objectives": ["it is"], "verdict": "partly"}, "T1-it-is-so.objectives: ('it is',) is not allowed; allowed: none"),
        ({"objectives": ["it is"], "sessions": []}, "T1-it-is-so.objectives: ('it is',) is not allowed; allowed: none"),
        ({"sessions": [], "tests": [ON_RECORDS]}, "T1-it-is-so.sessions: 'none' is not allowed; allowed: a session, as its"),
        ({"sessions": [], "tests": [ON_RECORDS], "verdict": "partly"}, "judge records; or what is missing"),
        (ALONE | {"tests": [ON_RECORDS]}, "T1-it-is-so.sessions: 'none' is not allowed; allowed: a session, as its"),
        (ALONE | {"tests": []}, "T1-it-is-so.sessions: 'none' is not allowed; allowed: a session, as what a command"),
        (WAITING | {"missing": ""}, "T1-waits.missing: '' is not allowed; allowed: what is missing, or a non_goal, and not"),
        (WAITING | {"non_goal": "A cloud."}, "T1-waits.missing: 'A trial.' is not allowed"),
    ],
)
def test_a_bad_row_is_one_clear_line(project: Path, changed: dict[str, object], line: str) -> None:
    """The line names file, row, field, value and what is allowed; one not judged lacks something or is a non-goal."""
    with pytest.raises(InputError) as refused:
        read(project, changed if "section" in changed else ROW | changed)
    assert line in str(refused.value)
    assert str(refused.value).startswith(str(project / "docs" / "claims" / "1.yaml"))
    assert "\n" not in str(refused.value)


def test_a_held_row_names_what_a_session_held_beside_a_breach(project: Path) -> None:
    """All that it names is held, in each of its sessions. A row that is not held names nothing."""
    both = ["2026-11-23-one", "2026-11-26-four"]
    (text,) = read(project, ROW | {"sessions": both, "objectives": ["steps: it is", "it is"]})
    assert text.claims[0].objectives == ("steps: it is", "it is")
    read(project, ROW | IN_FOUR | {"verdict": "partly"})


def test_a_row_that_is_none_and_an_id_of_two_rows_are_refused(project: Path) -> None:
    """Each with the file that it stands in."""
    with pytest.raises(InputError, match=r"row 2: 'It is so\.' is not allowed"):
        read(project, ROW, "It is so.")
    read(project, ROW)
    shutil.copy(project / "docs" / "claims" / "1.yaml", project / "docs" / "claims" / "2.yaml")
    with pytest.raises(InputError, match=r"2\.yaml: T1-it-is-so\.id: .* an id that 1\.yaml does not have"):
        register.texts(project / "docs" / "claims")


def test_a_bad_row_ends_the_program_in_one_line(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """It prints no page, and its exit code is that of bad input."""
    monkeypatch.setattr(page, "CLAIMS", project / "docs" / "claims")
    (project / "docs" / "claims" / "1.yaml").write_text("name: Text 1", encoding="utf-8")
    assert page.main() == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert "1.yaml: title: missing; allowed: text" in shown.err


def rerun(*nodes: str, **more: Any) -> str:
    """The command that judges a claim with these tests again."""
    return register.Claim("T1-a", "1", "So.", register.HELD, tests=nodes, **more).rerun


def test_the_command_has_what_its_tests_need() -> None:
    """A marker and a scale, in one run for each marker; a test's own marker and a command of its own win."""
    nodes = ("tests/defects/test_cap.py::test_a", "tests/scenarios/x/test_y.py::test_b", "tests/defects/test_cap.py::test_c")
    scenario = f"pytest -m scenario --scale=medium {nodes[1]}"
    assert rerun(*nodes) == f"pytest -m defects {nodes[0]} {nodes[2]} && {scenario}"
    assert rerun(*nodes, command="tox -e kind") == "tox -e kind"
    assert rerun("tests/experiments/test_backlog.py::test_a").startswith("pytest -m backlog --scale=real ")
    names = ("what_ends_the_flapping", "commits_out_of_step_with_the_sync")
    both = [f"tests/experiments/test_5_flapping.py::test_{name}" for name in names]
    assert rerun(*both) == f"pytest -m extended {both[0]} && pytest -m real_time --scale=real {both[1]}"
    repeated = "pytest tests/unit/test_a.py::test_a --repeat 6 --results=evidence --resume"
    assert rerun("tests/unit/test_a.py::test_a", repeat=6) == repeated


def test_a_section_ends_with_the_next_of_its_level() -> None:
    """A section of a page reaches over the headings below its own."""
    found = pages.sections("# One\na\n## Two: it's\nb\n### Three\nc\n## Four\nd\n")
    assert list(found) == ["", "one", "two-its", "three", "four"]
    assert found["two-its"] == "## Two: it's\nb\n### Three\nc\n"
    assert found["one"] == found[""]


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


@pytest.mark.parametrize(("used", "asked"), [((100, 5, 5), 2), ((90, 90, 90), 4), ((98, 98, 98), 4)])
def test_what_cpu_of_three_pods_asks_for(used: tuple[int, ...], asked: int) -> None:
    """The payments text's trace: one pod at 100 % and two at 5 % ask for 2, not for 4 or 5; 90 % ask for 4, as it says."""
    spec = {"minReplicas": 1, "maxReplicas": 50, "metrics": [CPU], "behavior": AT_ONCE}
    content = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    usage = {name: hpa.Usage(percent * 10, at=995) for name, percent in zip("abc", used, strict=True)}
    pods = [hpa.Pod(name) for name in usage]
    decision, _ = hpa.decide(hpa.parse(content, "hpa.yaml"), hpa.State(), 3, [usage], 1000, pods=pods)
    assert decision.desired == asked
