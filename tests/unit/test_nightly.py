"""The nightly workflow names commands, options and files that exist, so that the example can't rot unseen."""

import configparser
import re
import shlex

import pytest
import yaml
from hypothesis import settings

from lab import paths
from lab.__main__ import main
from lab.components.build import GO_NEEDED
from lab.components.jars import JAVA_NEEDED
from lab.report.allure_report import NODE_NEEDED
from tests.suite import cases

pytestmark = pytest.mark.services

WORKFLOW = yaml.safe_load((paths.PROJECT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
JOBS, ENVIRONMENT = WORKFLOW["jobs"], WORKFLOW["env"]
STEPS, ON_KIND = JOBS["experiments"]["steps"], JOBS["kind"]["steps"]  # of every experiment, and of the core on kind


def commands(steps, program):
    """The arguments of each line that runs ``program``."""
    lines = [shlex.split(line) for step in steps for line in step.get("run", "").splitlines()]
    return [words[1:] for words in lines if words and words[0] == program]


def environments():
    """The environments of tox.ini."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(paths.PROJECT / "tox.ini", encoding="utf-8")
    return {name.removeprefix("testenv:") for name in tox.sections() if name.startswith("testenv:")}


def test_the_experiments_are_run_with_options_that_exist(pytestconfig):
    """Each tox environment is in tox.ini, and what is passed to pytest are its options with values they take."""
    runs = commands(STEPS, "tox")
    assert {words[words.index("-e") + 1] for words in runs} <= environments()
    (experiments,) = (words for words in runs if "--" in words)
    passed = experiments[experiments.index("--") + 1 :]
    options = dict(zip(passed[::2], passed[1::2], strict=True))
    assert options.keys() == {"--scale", "--repeat"}
    for option in options:
        pytestconfig.getoption(option)  # ValueError if there is none
    assert options["--scale"] in yaml.safe_load((paths.PROFILES / "scales.yaml").read_text())
    assert int(options["--repeat"]) > 1


def test_the_core_on_kind_is_run_and_judged():
    """Its environment exists, at the scale of the other runtime so that they can be compared; its gate counts its own tests."""
    runs = commands(ON_KIND, "tox")
    assert {words[words.index("-e") + 1] for words in runs} == {"kind"} <= environments()
    (passed,) = (words[words.index("--") + 1 :] for words in runs if "--" in words)
    (everything,) = (words for words in commands(JOBS["experiments"]["steps"], "tox") if "--" in words)
    assert passed == ["--scale", everything[everything.index("--scale") + 1]]
    (gate,) = commands(ON_KIND, ".tox/kind/bin/python")
    assert gate == ["-m", "lab", "report", "--results=results-kind", "--least", "$LEAST_KIND_TESTS"]
    assert 0 < int(ENVIRONMENT["LEAST_KIND_TESTS"]) < int(ENVIRONMENT["LEAST_TESTS"])


def test_the_real_systems_are_run_and_judged():
    """All of their trials are run; the gate looks where they leave their results, and has a count of its own."""
    given = JOBS["scenarios"]["steps"]
    assert commands(given, "tox") == [["-e", "scenario", "--notest"], ["-e", "scenario", "--", "-m", "scenario"]]
    assert "scenario" in environments()
    (gate,) = commands(given, ".tox/scenario/bin/python")
    assert gate == ["-m", "lab", "report", "--results=results-scenarios", "--least", "$LEAST_SCENARIO_TESTS"]
    assert "--results=results-scenarios" in (paths.PROJECT / "tox.ini").read_text(encoding="utf-8")


def test_the_searches_are_run_in_full_length():
    """All of tox's tests, under a profile that exists and draws more than theirs; then the archive and the known behaviours."""
    runs = commands(JOBS["thorough"]["steps"], "tox")
    thorough = ["-e", "tests", "--", "--hypothesis-profile=thorough"]
    assert runs == [["-e", "tests", "--notest"], thorough, ["-e", "defects"]]
    assert {"tests", "defects"} <= environments()
    assert settings.get_profile("thorough").max_examples > settings.get_profile("lab").max_examples
    taken, *_ = (step["with"] for step in JOBS["thorough"]["steps"] if "checkout" in step.get("uses", ""))
    assert taken == {"fetch-depth": 0, "filter": "blob:none"}
    assert ["-m", "tests.records", "--archive"] in commands(JOBS["thorough"]["steps"], ".tox/tests/bin/python")


def test_a_case_that_did_not_run_fails_the_gate():
    """The report counts every case of a parametrized test, and so does the gate: it asks for as many as pytest collects."""
    found = cases("-m", "spike or scenario", "tests/experiments", "tests/scenarios")
    for variable, folder in {"LEAST_TESTS": "tests/experiments/", "LEAST_SCENARIO_TESTS": "tests/scenarios/"}.items():
        assert int(ENVIRONMENT[variable]) == sum(case.startswith(folder) for case in found), variable


def test_the_gate_is_a_command_that_exists(capsys):
    """The gate takes ``--least`` from the one variable, out of the environment the experiments ran in."""
    (python,) = {word for step in STEPS for word in step.get("run", "").split() if word.startswith(".tox/")}
    assert python.split("/")[1] in environments()
    gate, build = (
        next(words[2:] for words in commands(STEPS, python) if words[:3] == ["-m", "lab", name]) for name in ("report", "build")
    )
    assert gate == ["report", "--least", "$LEAST_TESTS"]
    for arguments, told in ((gate, "--least"), (build, "build")):
        given = [argument.replace("$LEAST_TESTS", ENVIRONMENT["LEAST_TESTS"]) for argument in arguments]
        with pytest.raises(SystemExit) as ended:
            main([*given, "--help"])
        assert ended.value.code == 0
        assert told in capsys.readouterr().out


PARTS = ("report.html", "timelines.html", "report", "summary.md", "verdicts.json", "records", "history.jsonl")


def test_what_is_kept_is_kept_after_a_red_night_too():
    """The gate, the history, the summary and the artifacts do not depend on the experiments' success; nothing hides it."""
    ran = next(n for n, step in enumerate(STEPS) if "--repeat" in step.get("run", ""))
    assert len(STEPS[ran + 1 :]) == 5
    assert all(step["if"].startswith("always()") for step in STEPS[ran + 1 :])
    assert not any("continue-on-error" in step for step in STEPS)
    kept = {path for step in STEPS[ran + 1 :] for path in step.get("with", {}).get("path", "").split()}
    assert kept == {f"results/{name}" for name in PARTS}


def test_the_history_goes_round():
    """What a night saves is what the next one restores; a cache is never overwritten, so the keys differ."""
    restored, saved = (
        next(step["with"] for step in STEPS if f"cache/{what}" in step.get("uses", "") and "history" in step["with"]["path"])
        for what in ("restore", "save")
    )
    assert restored["path"] == saved["path"] == "results/history.jsonl"
    assert saved["key"].startswith(restored["restore-keys"])
    assert "github.run_id" in saved["key"]


def test_the_built_components_are_keyed_by_files_that_exist():
    """Every pattern finds a file, the pins' checksums among them; what is saved is what is restored, in the lab's cache."""
    restored = next(step for step in STEPS if step.get("id") == "components")["with"]
    patterns = re.findall(r"'([^']+)'", restored["key"])
    assert "lab/components/modules/**/go.sum" in patterns
    assert all(list(paths.PROJECT.glob(pattern)) for pattern in patterns)
    (saved,) = (
        step["with"] for step in STEPS if "components" in step.get("with", {}).get("key", "") and "save" in step["uses"]
    )
    assert saved["path"] == restored["path"]
    assert all("env.ELASTIC_LAB_CACHE" in path for path in restored["path"].splitlines())


def test_the_tools_are_as_new_as_the_lab_needs():
    """Java, Node.js and Go are at least what the lab refuses to run below."""
    chosen = {key: str(value) for step in STEPS for key, value in step.get("with", {}).items() if key.endswith("-version")}
    assert tuple(map(int, chosen["python-version"].split("."))) >= (3, 11)
    assert int(chosen["java-version"]) >= JAVA_NEEDED
    assert int(chosen["node-version"]) >= NODE_NEEDED
    assert tuple(map(int, chosen["go-version"].split("."))) >= GO_NEEDED


def test_it_may_only_read_and_ends_by_itself():
    """Least permissions, one at a time, a time limit that leaves room for the report, every action at a commit."""
    job = JOBS["experiments"]
    limit = next(step["timeout-minutes"] for step in STEPS if "--repeat" in step.get("run", ""))
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["concurrency"]["group"]
    assert limit < job["timeout-minutes"] <= 360
    every = [step for one in JOBS.values() for step in one["steps"]]
    assert all(re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in every if "uses" in step)
    assert all(0 < one["timeout-minutes"] <= 360 for one in JOBS.values())
    assert {"schedule", "workflow_dispatch"} == set(WORKFLOW[True])
