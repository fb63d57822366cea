"""The core: simulate, sync, tune, plane, threshold and audit with nothing installed but what the wheel itself requires."""

import ast
import functools
import json
import os
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from lab import extras, paths
from lab.__main__ import COMMANDS

from . import project

pytestmark = pytest.mark.services

EXAMPLES = paths.PROJECT / "docs" / "examples"
QUESTION = [f"--scaledobject={EXAMPLES / 'orders.yaml'}", f"--profile={EXAMPLES / 'evening-peak.yaml'}"]
QUESTION += [f"--workload={EXAMPLES / 'enricher.yaml'}", "--start-s=3"]
owners = functools.cache(metadata.packages_distributions)  # of each top-level module
# Runs a command of the lab as if the named top-level modules were not installed.
WITHOUT = """
import importlib.abc, json, sys

barred, arguments = json.loads(sys.argv[1]), json.loads(sys.argv[2])

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in barred:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from lab.__main__ import main
sys.exit(main(arguments))
"""


# The same on a system without what only Linux has: its /proc, and functions of os and signal.
ELSEWHERE = """
import os, signal, sys, sysconfig

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(arguments[0])

sys.addaudithook(refuse)
sysconfig.get_config_vars()  # read from a file that is named after the system
sys.platform = "darwin"
for owner, names in {os: ("pidfd_open", "sched_getaffinity"), signal: ("pidfd_send_signal",)}.items():
    for name in names:
        vars(owner).pop(name, None)
"""


@functools.cache
def required(extra="", of="elastic-lab"):
    """The distributions that ``of`` requires, with what these require, and so on; with those of ``extra``."""
    found, left = set(), [(of, extra)]
    while left:
        name, wanted = left.pop()
        for text in metadata.requires(name) or ():
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": wanted}):
                new = [(one.name, more) for more in one.extras or {""} if (one.name, more) not in found]
                found.update(new)
                left += new
    return {name.lower().replace("_", "-") for name, _ in found}


def imported():
    """The top-level modules that the lab's files import, but the lab's own and Python's."""
    found = set()
    for node in (
        node for file in (paths.PROJECT / "lab").rglob("*.py") for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    ):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        found |= {name.partition(".")[0] for name in names}
    return found - sys.stdlib_module_names - {"lab"}


def test_what_is_imported_is_brought_by_the_core_or_an_extra():
    """So each module that lacks is named with what installs it. Otava has an environment of its own (``tox -e changes``)."""
    assert imported() <= modules(required()).union({"otava"}, *extras.EXTRAS.values())


def modules(distributions):
    """The top-level modules of ``distributions``."""
    return {name for name, of in owners().items() if {one.lower().replace("_", "-") for one in of} & distributions}


def without(kept, *arguments, code=WITHOUT, folder=paths.PROJECT, **environment):
    """What Python says of ``code`` with the lab and the modules of the distributions ``kept`` alone."""
    barred = sorted(owners().keys() - modules(kept) - {"lab"})
    command = [sys.executable, "-c", code, json.dumps(barred), json.dumps(arguments)]
    how = {"cwd": folder, "env": os.environ | environment, "capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(command, check=False, **how)


@pytest.mark.parametrize("system", ["", ELSEWHERE], ids=["here", "without Linux"])
@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("", ["simulate", *QUESTION, "--fail-on=nothing"]),
        ("", ["tune", *QUESTION, "--candidates=5", "--processes=1"]),
        ("", ["plane", *QUESTION, "--windows=60", "--tolerances=0.1", "--lag-thresholds=4500"]),
        ("", ["sync", QUESTION[0], "--lag=33", "--replicas=4", "--partitions=12"]),
        ("", ["threshold", "--rate=100", "--slo=2"]),
        ("", ["audit", QUESTION[0].partition("=")[2], "--partitions=12", "--sarif"]),
        ("records", ["judge", str(project.COMMITTED)]),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else given or "core",
)
def test_a_command_needs_the_core_or_its_extra_alone(extra, arguments, system):
    """It imports nothing that another extra brings, and nothing that only Linux has."""
    ran = without(required(extra), *arguments, code=system + WITHOUT)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr[-1000:]
    assert ran.stdout


def test_what_an_extra_brings_is_named_where_it_is_missing(tmp_path):
    """One line that says what to install, and exit code 2."""
    ran = without(required(), "simulate", *QUESTION, f"--chart={tmp_path / 'x.png'}")
    line = "elastic-lab: altair is not installed: pip install 'elastic-lab[report]'\n"
    assert (ran.returncode, ran.stderr) == (2, line)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("accept", "trial"),
        ("demo", "trial"),
        ("down", "trial"),
        ("estimate", "records"),
        ("play", "play"),
        ("report", "report"),
    ],
)
def test_a_command_that_lacks_its_extra_has_help_that_says_so(command, extra):
    """Whoever asks what it does is told."""
    ran = without(required(), command, "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert COMMANDS[command] in " ".join(ran.stdout.split())
    assert f"is not installed: pip install 'elastic-lab[{extra}]'" in " ".join(ran.stdout.split())


def test_the_core_is_small():
    """No library of it is large, and no other comes in unseen."""
    files = [file.locate() for name in required() for file in metadata.files(name)]
    files += [file for name in ("lab", "fixtures", "manifests", "profiles") for file in (paths.PROJECT / name).rglob("*")]
    size = sum(file.stat().st_size for file in files if file.is_file())
    assert size < 100e6, f"{size / 1e6:.0f} MB"


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_an_extra_brings_its_modules(extra):
    """And the core brings none of them."""
    assert not set(extras.EXTRAS[extra]) - modules(required(extra))
    assert not set(extras.EXTRAS[extra]) & modules(required())


@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        ("report", "lab.commands.report"),
        ("trial", "lab.commands.images, lab.trial.runner, lab.evidence"),
        ("play", "lab.commands.play"),
        ("board", "lab.board.__main__"),
    ],
)
def test_an_extra_is_enough_for_what_it_is_named_after(extra, modules):
    """The modules that need most of it can be imported."""
    ran = without(required(extra), code=WITHOUT.partition("from lab.__main__")[0] + f"import {modules}\n")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_session_with_the_core_alone_names_the_extra(tmp_path):
    """The plugin stands in no one's way; a test that asks for a trial ends the session with one line."""
    folder = project.write(tmp_path / "ours")
    code = WITHOUT.partition("from lab.__main__")[0] + "import pytest\nsys.exit(pytest.main(arguments))\n"
    kept, seen = required() | required(of="pytest") | {"pytest"}, []
    for test in ("their_own_code", "test_mine"):
        given = ["-p", "lab.plugin", "-p", "no:cacheprovider", "-k", test]
        ran = without(kept, *given, code=code, folder=folder, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        seen.append((ran.returncode, ran.stdout + ran.stderr))
    (well, passed), (badly, said) = seen
    assert (well, badly) == (0, 2), said
    assert "1 passed" in passed
    assert "is not installed: pip install 'elastic-lab[" in said
