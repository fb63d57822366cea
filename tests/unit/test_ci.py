"""The workflows: what the project names is what is tested, by actions that can't change."""

import configparser
import re
import shlex
import tomllib

import yaml

from lab import paths

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
    files = sorted(GITHUB.rglob("*.yml"))
    used = [
        line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines() if "uses: actions/" in line
    ]
    assert used
    assert all(re.search(r"uses: actions/[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in used)
    of_a_commit = {line.partition("@")[2].split()[0]: line.partition("#")[2] for line in used}
    assert len(set(of_a_commit.values())) <= len(of_a_commit)
