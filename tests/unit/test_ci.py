"""The workflows: what the project names is what is tested, by actions that can't change; and the action and hook for others."""

import configparser
import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml

from lab import paths
from lab.__main__ import main
from tests.suite import PROGRAM_S

GITHUB = paths.PROJECT / ".github"
JOBS = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
PROJECT = tomllib.loads((paths.PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_each_python_of_the_project_is_tested():
    """Those of its classifiers, of which the least is the one that it requires."""
    pythons = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert JOBS["unit"]["strategy"]["matrix"]["python"] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_what_is_run_is_there():
    """Each environment of tox, and each file that a command names."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(paths.PROJECT / "tox.ini", encoding="utf-8")
    lines = [line for job in JOBS.values() for step in job["steps"] for line in step.get("run", "").splitlines()]
    for words in map(shlex.split, lines):
        if words[0] == "tox":
            assert all(f"testenv:{name}" in tox for name in words[words.index("-e") + 1].split(","))
        assert all((paths.PROJECT / word).exists() for word in words if re.match(r"docs/|tests/", word))


def test_every_action_is_pinned_by_its_commit():
    """A tag can be moved; the release that a commit is of stands behind it."""
    files = [*sorted(GITHUB.rglob("*.yml")), paths.PROJECT / "action.yml"]
    used = [
        line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines() if "uses: actions/" in line
    ]
    assert used
    assert all(re.search(r"uses: actions/[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in used)
    of_a_commit = {line.partition("@")[2].split()[0]: line.partition("#")[2] for line in used}
    assert len(set(of_a_commit.values())) <= len(of_a_commit)


ACTION = yaml.safe_load((paths.PROJECT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((paths.PROJECT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
EXAMPLES = paths.PROJECT / "docs" / "examples"
TRAFFIC = f"--profile={EXAMPLES}/evening-peak.yaml --workload={EXAMPLES}/enricher.yaml --start-s=45"


def git(*words):
    """What git says, in the folder of the test."""
    of = ["-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *of, *words], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def deployed(tmp_path, monkeypatch):
    """A repository whose one commit has the example's ScaledObject; a function that changes words of it."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet", "--initial-branch=main")
    file = tmp_path / "deploy" / "orders.yaml"
    file.parent.mkdir()
    file.write_text((EXAMPLES / "orders.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    git("add", ".")
    git("commit", "--quiet", "--message=Orders")

    def change(**words):
        text = file.read_text(encoding="utf-8")
        for field, (old, new) in words.items():
            assert f"{field}: {old}\n" in text
            text = text.replace(f"{field}: {old}\n", f"{field}: {new}\n")
        file.write_text(text, encoding="utf-8")
        return file

    return change


def review(capsys, *words):
    """The exit code and the comment."""
    code = main(["review", *words])
    return code, capsys.readouterr().out


WORSE = {"maxReplicaCount": ("12", "4"), "minReplicaCount": ("3", "0")}


def test_a_review_tells_what_a_change_does(deployed, capsys, tmp_path):
    """Findings that are new, each figure before and after, curves, and the diff; a breach and an error end with 1."""
    deployed(**WORSE)
    code, comment = review(capsys, f"--simulate={TRAFFIC}", f"--output={tmp_path / 'comment.md'}")
    assert code == 1
    assert comment == (tmp_path / "comment.md").read_text(encoding="utf-8")
    lines = comment.splitlines()
    assert lines[:2] == ["<!-- elastic-lab review -->", "### ✘ elastic-lab: 1 ScaledObject changed since `HEAD`"]
    assert "#### `ScaledObject orders/orders-enricher`, changed in `deploy/orders.yaml`" in lines
    assert "| most replicas (pods) | 12 | 4 |" in lines
    (age,) = (line for line in lines if line.startswith("| age of the oldest event"))
    assert (age.count("✔"), age.count("✘")) == (1, 1)
    assert [line[:18] for line in lines if re.search("[▁-█]{60}", line)] == [
        f"{name:18}" for name in ("messages/s", "replicas  before", "replicas  after", "lag       before", "lag       after")
    ]
    assert "+  maxReplicaCount: 4" in lines


def test_the_same_name_in_two_environments_is_two_objects(deployed, capsys, tmp_path):
    """Full copies without another name are usual: what is wrong in the first is not hidden by the second."""
    first = deployed()
    second = tmp_path / "staging" / "orders.yaml"
    second.parent.mkdir()
    second.write_text(first.read_text(encoding="utf-8"), encoding="utf-8")
    git("add", ".")
    git("commit", "--quiet", "--message=Staging")
    deployed(**WORSE)
    second.write_text(second.read_text(encoding="utf-8").replace("pollingInterval: 15", "pollingInterval: 20"), "utf-8")
    comment = review(capsys)[1]
    assert "2 ScaledObjects changed" in comment
    assert all(f"changed in `{name}/orders.yaml`" in comment for name in ("deploy", "staging"))


def test_a_change_without_traffic_is_audited(deployed, capsys):
    """New, gone, deleted, unreadable; a file without a ScaledObject is none of it; another base; a base that is not there."""
    assert review(capsys) == (0, "<!-- elastic-lab review -->\n### ✔ elastic-lab: 0 ScaledObjects changed since `HEAD`\n")
    file = deployed(**WORSE)
    code, comment = review(capsys, "--audit=--fail-on=nothing")
    assert (code, "Not simulated: " in comment, "- new: **" in comment) == (0, True, True)
    git("commit", "--quiet", "--all", "--message=Worse")
    deployed(**{name: pair[::-1] for name, pair in WORSE.items()})
    assert "- gone: **" in review(capsys)[1]
    assert ": 0 ScaledObjects" in review(capsys, "--base=HEAD^1")[1]
    file.write_text(file.read_text(encoding="utf-8").replace("maxReplicaCount: 12", "maxReplicaCount: 9"), encoding="utf-16")
    assert "-  maxReplicaCount: 4" in (comment := review(capsys)[1])
    assert "+  maxReplicaCount: 9" in comment  # as PowerShell writes it
    file.unlink()
    assert ", deleted in `deploy/orders.yaml`" in review(capsys)[1]
    file.write_text("kind: ScaledObject\nspec: [\n", encoding="utf-8")
    assert review(capsys)[0] == 2
    assert main(["review", "--base=gone"]) == 2
    assert "--base: 'gone' is not allowed; allowed: a commit that is here" in capsys.readouterr().err


def test_the_action_comments_by_its_own_steps(deployed, tmp_path):
    """Each of its scripts is run as a runner would, with a gh that writes down what it is asked."""
    deployed(**WORSE)
    git("commit", "--quiet", "--all", "--message=Worse")
    home = tmp_path / "runner"
    (home / "elastic-lab" / "bin").mkdir(parents=True)
    for name, script in {
        home / "elastic-lab" / "bin" / "elastic-lab": f'exec {sys.executable} -m lab "$@"',
        home / "gh": f'echo "$*" >> {home}/asked; case "$*" in *--paginate*) cat {home}/there;; esac',
    }.items():
        name.write_text(f"#!/bin/sh\n{script}\n")
        name.chmod(0o755)
    inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | {"simulate": TRAFFIC}
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {"github.repository": "o/r", "github.event.pull_request.number": "7", "github.token": "t"}
    around = {"RUNNER_TEMP": str(home), "GITHUB_STEP_SUMMARY": str(home / "summary"), "PATH": f"{home}:{os.environ['PATH']}"}
    around["PYTHONPATH"] = str(paths.PROJECT)

    def run(name):
        (step,) = (one for one in ACTION["runs"]["steps"] if one.get("name") == name)
        own = {
            key: re.sub(r"\$\{\{ (\S+) \}\}", lambda one: known[one[1]], str(value))
            for key, value in step.get("env", {}).items()
        }
        assert step["shell"] == "bash"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(
            command, env=os.environ | around | own, check=False, capture_output=True, timeout=PROGRAM_S
        ).returncode

    assert run("Review") == 1
    for there in ("", "4711\n"):
        (home / "there").write_text(there)
        assert (run("Show the summary"), run("Comment")) == (0, 0)
    assert "### ✘ elastic-lab: 1 ScaledObject changed since `HEAD^1`" in (home / "summary").read_text(encoding="utf-8")
    asked = [line.split(" --field")[0] for line in (home / "asked").read_text().splitlines() if "--method" in line]
    assert asked == ["api --method POST repos/o/r/issues/7/comments", "api --method PATCH repos/o/r/issues/comments/4711"]


def test_the_hook_reviews_what_is_staged(deployed, capsys):
    """As pre-commit runs it, with the names of files; its language installs the core. The first commit has none before it."""
    file = deployed(**WORSE)
    words = shlex.split(HOOK["entry"])
    assert (words[:2], HOOK["language"]) == (["elastic-lab", "review"], "python")
    code, comment = review(capsys, *words[2:], str(file), "--audit=--fail-on=warning")
    assert (code, "1 ScaledObject" in comment) == (1, True)
    git("update-ref", "-d", "HEAD")
    code, comment = review(capsys, *words[2:], str(file))
    assert (code, ", new in `deploy/orders.yaml`" in comment) == (0, True)
