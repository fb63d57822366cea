"""The nightly workflow names commands, options and files that exist, so that the example can't rot unseen."""

import configparser
import re
import shlex

import pytest
import yaml
from hypothesis import settings

from lab import paths
from lab.components import build
from lab.components.jars import JAVA_NEEDED
from lab.components.toolchain import GO_NEEDED
from lab.judge import expectation
from lab.report.allure_report import NODE_NEEDED
from tests import mutation
from tests.experiments.test_faults import SEEDS

pytestmark = pytest.mark.services

GITHUB = paths.PROJECT / ".github"
WORKFLOW = yaml.safe_load((GITHUB / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
JOBS = WORKFLOW["jobs"]
PREPARE, KEEP = (
    yaml.safe_load((GITHUB / "actions" / name / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    for name in ("prepare", "keep")
)
SESSIONS = {"experiments": "extended", "kind": "kind", "scenarios": "scenario"}  # the environments of those with a report
TOX = configparser.ConfigParser(interpolation=None)
TOX.read(paths.PROJECT / "tox.ini", encoding="utf-8")


def commands(job):
    """The words of each line that ``job`` runs."""
    return [shlex.split(line) for step in JOBS[job]["steps"] for line in step.get("run", "").splitlines()]


def given(job, action):
    """What ``job`` gives to an ``action`` of the project's own."""
    return next(step["with"] for step in JOBS[job]["steps"] if step.get("uses") == f"./.github/actions/{action}")


@pytest.mark.parametrize(("job", "environment"), SESSIONS.items())
def test_a_session_is_held_against_what_is_expected(job, environment, pytestconfig):
    """By its environment of tox, whose folder is kept; each expects a suite of the committed file."""
    command = TOX[f"testenv:{environment}"]["commands"]
    folder = given(job, "keep")["results"]
    assert given(job, "prepare") == {"environment": environment, "results": folder}
    assert f"--results={folder} " in command
    file, suite = re.search(r"--expected=(\S+):(\w+)", command).groups()
    assert expectation.read(paths.PROJECT / file, suite).known
    (ran,) = commands(job)
    more = {"experiments": ["--", "--repeat", "3"], "kind": [], "scenarios": ["--", "-m", "scenario"]}
    assert ran == ["tox", "-e", environment, *more[job]]
    pytestconfig.getoption("lab_repeat")  # ValueError if there is none


def test_each_night_has_faults_of_its_own():
    """A night begins ten seeds after the one before it. The folder of its results is kept."""
    (ran,) = commands("faults")
    assert ran == ["tox", "-e", "faults", "--", "--scale=medium", "--faults=${{", "github.run_number", "}}0"]
    assert SEEDS <= 10
    folder = given("faults", "keep")["results"]
    assert given("faults", "prepare") == {"environment": "faults", "results": folder}
    assert f"--results={folder} " in TOX["testenv:faults"]["commands"]


def test_the_searches_are_run_in_full_length():
    """tox's tests and those it leaves out, under a profile that exists and draws more than theirs; then the archive."""
    assert commands("thorough") == [
        ["tox", "-e", "tests", "--", "-m", "not live", "--hypothesis-profile=thorough"],
        [".tox/tests/bin/python", "-m", "tests.records", "--archive"],
    ]
    assert settings.get_profile("thorough").max_examples > settings.get_profile("lab").max_examples
    assert JOBS["thorough"]["steps"][0]["with"] == {"fetch-depth": 0, "filter": "blob:none"}


def test_every_module_of_the_checker_is_mutated():
    """In an environment of its own; each module is there, as are its tests and the lines that are left out."""
    assert TOX["testenv:mutation"]["dependency_groups"] == "test, mutation"
    (ran,) = commands("mutation")
    assert ran[:4] == ["tox", "-e", given("mutation", "prepare")["environment"], "--"]
    judge = {path.stem for path in (paths.PROJECT / "lab" / "judge").glob("*.py")} - {"__init__"}
    assert set(mutation.JUDGE) == judge
    for module, tests in mutation.TESTS.items():
        assert all((paths.PROJECT / one).exists() for one in (module, *tests))
    for module, lines in mutation.EXPLAINED.items():
        source = (paths.PROJECT / module).read_text()
        assert all(re.search(rf"^ *{re.escape(line)}", source, re.MULTILINE) for line in lines)


def test_what_only_asserts_is_not_mutated():
    """Annotations and strict=; a number in the same line is."""
    source = "def f(a: int | None = 3) -> int | str:\n    return dict(zip(a, a, strict=True))\n"
    places = list(mutation.left_out("lab/judge/gates.py", source))
    assert {source.splitlines()[row - 1][begin:end] for (row, begin), (_, end) in places} == {"int | None", "int | str", "True"}


def test_known_behaviours_are_asked_of_the_newest_release(tmp_path, monkeypatch):
    """Go pins it in the file that the build reads, before what is built by that pin is looked for."""
    pin, asked = commands("upstream")
    assert pin == ["go", "-C", "lab/components/modules/kubernetes", "get", f"{build.KEDA_MODULE}@latest"]
    assert (paths.PROJECT / pin[2] / "go.mod").is_file()
    assert [step.get("run", step.get("uses")) for step in JOBS["upstream"]["steps"]][1:3] == [
        " ".join(pin),
        "./.github/actions/prepare",
    ]
    assert asked[1:] == ["-e", given("upstream", "prepare")["environment"]] == ["-e", "defects"]
    (tmp_path / "kubernetes").mkdir()
    (tmp_path / "kubernetes" / "go.mod").write_text(f"require (\n\t{build.KEDA_MODULE} v2.99.0 // indirect\n)\n")
    monkeypatch.setattr(build, "MODULES", tmp_path)
    assert build._pinned(build.KEDA_MODULE, "kubernetes") == "2.99.0"


def test_every_job_restores_what_was_built():
    """By one action; every pattern of the key finds a file. What is saved is what is restored, in the lab's cache."""
    assert all(f"testenv:{given(job, 'prepare')['environment']}" in TOX for job in JOBS)
    restored = next(step for step in PREPARE if step.get("id") == "components")["with"]
    patterns = re.findall(r"'([^']+)'", restored["key"])
    assert "lab/components/modules/**/go.sum" in patterns
    assert all(list(paths.PROJECT.glob(pattern)) for pattern in patterns)
    (saved,) = (step["with"] for step in PREPARE if "cache/save" in step.get("uses", ""))
    assert saved["path"] == restored["path"]
    assert all("env.ELASTIC_LAB_CACHE" in path for path in restored["path"].splitlines())


def test_what_is_kept_is_kept_after_a_red_night_too():
    """The history, the summary and the artifacts do not depend on the session's success; nothing hides it."""
    assert all(JOBS[job]["steps"][-1]["if"] == "always()" for job in (*SESSIONS, "faults"))
    assert all(step["if"].startswith("always()") for step in KEEP)
    assert "continue-on-error" not in str([WORKFLOW, PREPARE, KEEP])
    kept = {path.rpartition("}}/")[2] for step in KEEP for path in step.get("with", {}).get("path", "").splitlines()}
    pages = {"report.html", "timelines.html", "report", "summary.md", "verdicts.json"}
    assert kept == {*pages, "records", "history.jsonl", "series.jsonl"}


def test_the_history_goes_round():
    """What a night saves is what the next one restores; a cache is never overwritten, so the keys differ."""
    restored, saved = (
        next(step["with"] for step in steps if "history" in step.get("with", {}).get("path", "")) for steps in (PREPARE, KEEP)
    )
    assert restored["path"] == saved["path"]
    assert saved["path"].split("\n")[:2] == [f"${{{{ inputs.results }}}}/{name}.jsonl" for name in ("history", "series")]
    assert saved["key"].startswith(restored["restore-keys"])
    assert "github.run_id" in saved["key"]


def test_changes_are_looked_for_before_the_report_is_kept():
    """In the series that the session left; then the report is built again, by environments that exist."""
    looked = next(n for n, step in enumerate(KEEP) if step["name"] == "Look for changes")
    assert looked < min(n for n, step in enumerate(KEEP) if step["name"].startswith("Keep"))
    ran = [line.split()[:3] for line in KEEP[looked]["run"].splitlines()]
    assert ran == [["tox", "-e", "changes"], ["tox", "-e", "report"]]
    assert {"testenv:changes", "testenv:report"} <= set(TOX)


def test_the_tools_are_as_new_as_the_lab_needs():
    """Java, Node.js and Go are at least what the lab refuses to run below."""
    chosen = {key: str(value) for step in PREPARE for key, value in step.get("with", {}).items() if key.endswith("-version")}
    assert tuple(map(int, chosen["python-version"].split("."))) >= (3, 11)
    assert int(chosen["java-version"]) >= JAVA_NEEDED
    assert int(chosen["node-version"]) >= NODE_NEEDED
    assert tuple(map(int, chosen["go-version"].split("."))) >= GO_NEEDED


def test_it_may_only_read_and_ends_by_itself():
    """Least permissions, one at a time, time limits that leave room for the report, every action at a commit or of its own."""
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["concurrency"]["group"]
    assert {"schedule", "workflow_dispatch"} == set(WORKFLOW[True])
    for job in JOBS.values():
        assert sum(step.get("timeout-minutes", 0) for step in job["steps"]) < job["timeout-minutes"] <= 360
    used = [
        step["uses"] for steps in (*(job["steps"] for job in JOBS.values()), PREPARE, KEEP) for step in steps if "uses" in step
    ]
    assert all(re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}|\./\.github/actions/\w+", one) for one in used)
