"""``elastic-lab accept``: the word on a user's file, its exit code, what to change, and a trial of that where it is wanted."""

import json
import subprocess
from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from lab import paths
from lab.__main__ import main
from lab.commands import accept, advice, simulate, situation, tune
from lab.errors import BAD_INPUT, BREACHED, FAULT, HELD, InputError
from lab.flags import Flags
from lab.foresee import variants
from lab.inputs import scale as scales
from lab.inputs.manifests import COMMITTED
from lab.judge.claim import BREACHED as BREACHED_WORD
from lab.report import session as session_file
from lab.report import shipping
from lab.report.session import Case, Head, Session
from lab.trial.user_files import UserFiles

from .measure.built import sealed
from .measure.conftest import REPORTS, TRANSITIONS, build
from .report import sessions

EXAMPLES = paths.PROJECT / "docs" / "examples"
FILES = UserFiles(*(EXAMPLES / f"{name}.yaml" for name in ("orders", "evening-peak", "enricher")))
WINDOW = "stabilizationWindowSeconds: 600"


@pytest.fixture(autouse=True, scope="module")
def few():
    """Few variants; of fewer, none holds at each point of the sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variants, "CANDIDATES", 14)
        yield


@pytest.fixture(autouse=True)
def empty(monkeypatch, tmp_path):
    """A folder with no file in it."""
    monkeypatch.chdir(tmp_path)


def words(scaledobject=FILES.scaledobject):
    """The command with the examples' files."""
    given = {"scaledobject": scaledobject, "profile": FILES.profile, "workload": FILES.workload}
    return ["accept", *(f"--{name}={file}" for name, file in given.items())]


def store(folder):
    """A record of the examples' trial under ``folder``: 24 replicas where 12 are allowed."""
    chosen = FILES.read(scales.load("medium"), "binary", COMMITTED)
    record = folder / "records" / chosen.id
    (record / "inputs").mkdir(parents=True)
    build(record, TRANSITIONS, REPORTS)
    sealed(record, id=chosen.id, inputs=chosen, scale=str(chosen.scale))


def hasty(folder):
    """A ScaledObject in ``folder`` that gives pods back at once."""
    text = FILES.scaledobject.read_text()
    assert WINDOW in text
    file = folder / "flapping.yaml"
    file.write_text(text.replace(WINDOW, "stabilizationWindowSeconds: 0"))
    return file


@pytest.fixture
def flapping(tmp_path):
    """The file of a ScaledObject that gives pods back at once."""
    return hasty(tmp_path)


@pytest.fixture(scope="module")
def advised(tmp_path_factory):
    """That file as it is judged, its inputs, and what is advised for its flips and its drain: note and changed file."""
    given = UserFiles(hasty(tmp_path_factory.mktemp("theirs")), FILES.profile, FILES.workload)
    inputs = given.read(given.scale(), "binary", COMMITTED)
    return given, inputs, *advice.advise(given, inputs, {"flips", "drain"}, None)


@pytest.fixture
def ended(monkeypatch):
    """Trials that end as they are told, (exit code, verdicts), in this order; yields the files that they were of."""
    told, ran = [], []

    def run(options, given, results):
        code, rows = told.pop(0)
        case = Case("a.py::test_it", "acceptance", outcome="failed" if code else "passed", rows=rows)
        session = Session(head=Head(scale="medium: times / 15"), tests=[case], brought=given.name) if rows else None
        ran.append(given.scaledobject)
        results.mkdir(exist_ok=True)
        return accept.Acceptance(code, results, session, shipping.of(session) if session else None)

    monkeypatch.setattr(accept, "_accept", run)
    return told, ran


@pytest.mark.services
def test_a_stored_trial_is_judged_from_any_folder(tmp_path, capfd):
    """Exit code 1, and its page begins with the word, what decides, and what to change."""
    store(tmp_path / "stored")
    assert main([*words(), "--from-records=stored", "--results=left"]) == BREACHED
    printed = capfd.readouterr().out
    assert printed.splitlines()[-2:] == ["orders.yaml: don't ship", "read left/report.html"]
    assert printed.count("read left/report.html") == 1  # pytest leaves both lines to the command
    assert "✘ replicas wanted beyond the partitions: 12 pods, wanted = 0 pods" in printed
    page = sessions.plain((tmp_path / "left" / "report.html").read_text())
    assert page.index("orders.yaml: don't ship") < page.index("What to change") < page.index("Bounds, counted")
    assert json.loads((tmp_path / "left" / "session.json").read_text())["brought"] == "orders.yaml"
    assert (tmp_path / "left" / "summary.md").read_text().count("orders.yaml: don't ship") == 1


def test_what_to_change_is_tried_and_both_are_shown(flapping, ended, capsys):
    """The exit code is that of the file as it is given. The change is a diff of that file, comments and all."""
    told, ran = ended
    told += [(BREACHED, [sessions.BREACHED]), (HELD, [sessions.HELD])]
    assert main([*words(flapping), "--try-fix"]) == BREACHED
    printed = capsys.readouterr().out
    changed = flapping.parent / "results" / "changed" / "flapping.yaml"
    assert ran == [flapping, changed.relative_to(flapping.parent)]
    assert yaml.safe_load(changed.read_text()) != yaml.safe_load(flapping.read_text())
    assert "with the change: ship\n✔ reaction: 71.2 s, wanted < 90 s" in printed
    assert changed.read_text().splitlines()[0] == flapping.read_text().splitlines()[0]
    page = sessions.plain((flapping.parent / "results" / "report.html").read_text())
    assert page.index("flapping.yaml: don't ship") < page.index("+++ b/flapping.yaml") < page.index("With that change: ship")


def test_what_a_simulation_breaches_at_real_time_is_not_shipped(flapping, ended, capsys):
    """All held at medium, where the replicas had less time to flap. A change is proposed, and its trial is the word on it."""
    told, _ = ended
    told += [(HELD, [sessions.HELD]), (HELD, [sessions.HELD])]
    assert main([*words(flapping), "--try-fix"]) == BREACHED
    printed = capsys.readouterr().out
    assert (
        "flapping.yaml: no answer\nall held at medium; a simulation at real time breaches an objective: --scale real decides"
        in printed
    )
    assert "✘ simulated at real time: flips: " in printed
    assert "with the change: ship" in printed
    page = sessions.plain((flapping.parent / "results" / "report.html").read_text())
    assert (
        page.index("flapping.yaml: no answer") < page.index("simulated at real time: flips") < page.index("+++ b/flapping.yaml")
    )


def test_a_file_that_can_not_be_simulated_says_so(ended, monkeypatch, capsys):
    """It is no reason not to ship; the page has it too."""

    def refused(*_):
        raise InputError("my.yaml", "query", "x", "another")

    monkeypatch.setattr(advice, "breached_at_real_time", refused)
    ended[0].append((HELD, [sessions.HELD]))
    assert main(words()) == HELD
    why = "my.yaml: query: 'x' is not allowed; allowed: another"
    said = f"all held at medium; its behaviour at real time was not simulated ({why})"
    assert said in capsys.readouterr().out


def test_a_breach_that_was_expected_is_no_pass(monkeypatch, tmp_path):
    """pytest's own code says nothing against it where --expected names it."""
    case = Case("a.py::test_it", "acceptance", outcome="passed", rows=[replace(sessions.BREACHED, as_expected=True)])
    stamps = iter((None, (1, 1)))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: SimpleNamespace(wait=lambda: 0))
    monkeypatch.setattr(accept, "_stamp", lambda results: next(stamps))
    monkeypatch.setattr(session_file, "read", lambda results: Session(tests=[case], brought="my.yaml"))
    options = Namespace(topic="", cluster="binary", scale=None, from_records=None, options=[])
    found = accept._accept(options, FILES, tmp_path)
    assert (found.code, found.decision.word) == (BREACHED, shipping.DO_NOT_SHIP)


def test_one_of_several_objects_is_chosen_by_its_name(flapping, ended, capsys):
    """The others stay as they are."""
    told, _ = ended
    other = FILES.scaledobject.read_text().replace("name: orders-enricher", "name: other", 1)
    flapping.write_text(f"{other}---\n{flapping.read_text()}")
    assert main(words(flapping)) == BAD_INPUT
    assert "2 ScaledObjects are in it: other, orders-enricher; choose one with --name" in capsys.readouterr().err
    told.append((BREACHED, [sessions.BREACHED]))
    assert main([*words(flapping), "--name=orders-enricher"]) == BREACHED
    assert "flapping.yaml (orders-enricher): don't ship" in capsys.readouterr().out
    changed = (flapping.parent / "results" / "changed" / "flapping.yaml").read_text()
    assert changed.startswith(f"{other}---\n")
    assert changed != flapping.read_text()


@pytest.mark.parametrize(
    ("code", "rows"), [(HELD, [sessions.HELD]), (BREACHED, [sessions.NO_DATA]), (FAULT, [sessions.INVALID]), (FAULT, [])]
)
def test_nothing_is_proposed_where_no_claim_was_breached(ended, capsys, code, rows):
    """The exit code is the session's. One trial runs, and its answer is printed once."""
    told, ran = ended
    told.append((code, rows))
    assert main([*words(), "--try-fix"]) == code
    assert ran == [FILES.scaledobject]
    printed = capsys.readouterr().out
    assert ("what to change" in printed, printed.count("orders.yaml: ")) == (False, bool(rows))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([*words(), "--profile=none"], "--profile: 'none' is not allowed; allowed: a YAML file, or one of "),
        ([*words(), "--scaledobject=none.yaml"], "none.yaml: No such file or directory; allowed: a readable"),
        ([*words(), "--workload=-"], "--workload: '-' is not allowed; allowed: a file: it is read again"),
        ([*words(), "--scale=fast"], "'fast' is not allowed"),
        ([*words(), "--try-fix", "--from-records=x"], "--try-fix: True is not allowed; allowed: without --from-records"),
    ],
)
def test_bad_input_is_said_before_anything_starts(ended, capsys, given, line):
    """One line and exit code 2."""
    try:
        code = main(given)
    except SystemExit as end:  # argparse's
        code = end.code
    assert code == BAD_INPUT
    said = capsys.readouterr()
    assert line in said.err
    assert (len(said.err.splitlines()), said.out, ended[1]) == (1, "", [])


def test_a_change_that_holds_in_a_simulation_is_preferred(advised):
    """It says what the simulation says of both, by number and bound."""
    given, _, found, text = advised
    flips = next(note for note in found.notes if note.startswith("simulated: flips: "))
    assert flips.endswith("0 with the change, wanted = 0 flips")
    assert "a simulation of the file as it is does not show: drain" in found.notes
    assert "-          stabilizationWindowSeconds: 0" in found.diff.splitlines()
    assert yaml.safe_load(text)["metadata"] == yaml.safe_load(given.scaledobject.read_text())["metadata"]


def test_a_change_breaches_nothing_at_any_point_of_a_sync_nor_at_the_trials_scale(advised, tmp_path):
    """A window of 300 s, which costs less, flips at one point of five at real time, and at each at medium."""
    _, inputs, _, text = advised
    changed = tmp_path / "changed.yaml"
    changed.write_text(text)
    asked = Flags("elastic-lab simulate", None, environment=False)
    situation.add_flags(asked)
    assert inputs.scale.name == "medium"
    for flags in (["--start-s=0"], ["--start-s=2", "--scale=medium"]):
        theirs = [f"--scaledobject={changed}", f"--profile={FILES.profile}", f"--workload={FILES.workload}"]
        question = situation.read(asked.parse_args([*theirs, *flags]))
        each = list(simulate.at_points(question, question.simulated()))
        assert len(each) == 5
        assert BREACHED_WORD not in {one.verdict for verdicts in each for one in verdicts}


@pytest.mark.parametrize(("tried", "taken"), [("abc", "c"), ("ab", "b"), ("a", None)])
def test_a_change_that_holds_at_the_trials_scale_too_goes_first(monkeypatch, tried, taken):
    """Of these a breaches at real time, b at the trial's scale, and c at neither."""
    monkeypatch.setattr(tune, "_breaches", lambda question, one: (question, one) in {("real", "a"), ("scale", "b")})
    assert tune._first_held(["real", "scale"], tried) == taken
