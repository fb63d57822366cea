"""The demo's folder: what is put into it, what is left alone, and that its experiment is one."""

import subprocess
import sys

import pytest
import yaml

from lab import __main__ as command
from lab.commands import demo
from lab.errors import InputError
from tests.suite import NESTED_S


def test_the_folder_has_an_experiment_its_profile_and_its_policy(tmp_path):
    """The files that a newcomer changes; a second demo is one of the changed files. A folder with other files is left alone."""
    folder = tmp_path / "new"
    demo.prepare(folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == set(demo.FILES)
    assert yaml.safe_load((folder / "manifests" / "scaledobjects" / "scaler.yaml").read_text())["kind"] == "ScaledObject"
    profile = folder / "profiles" / "spike.yaml"
    profile.write_text("kind: steady\n")
    demo.prepare(folder)
    assert profile.read_text() == "kind: steady\n"
    (tmp_path / "theirs.txt").write_text("theirs")
    with pytest.raises(InputError, match=r"--folder: .* is not allowed; allowed: a new folder, an empty one"):
        demo.prepare(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "theirs.txt"}
    assert command.main(["demo", f"--folder={tmp_path / 'theirs.txt'}"]) == 2


@pytest.mark.services
def test_its_experiment_is_collected(tmp_path):
    """In the folder alone: what it imports is there, and the plugin knows its mark and its fixtures."""
    demo.prepare(tmp_path)
    words = [sys.executable, "-m", "pytest", "-m", "spike", "--setup-plan", "-p", "no:cacheprovider", "--results=results"]
    planned = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "test_the_group_keeps_up" in planned.stdout
    assert "rootdir: " + str(tmp_path.resolve()) in planned.stdout
