"""Each environment of tox.ini that collects every test has what these import: a test that is deselected is imported first."""

import configparser

import pytest

from lab import paths

WHOLE = {"all", "board"}  # the extras with which every test can be imported: tests of the boards need their libraries


def collecting():
    """The environments whose pytest is given no folder of tests, with their extras."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(paths.PROJECT / "tox.ini")
    shared = settings["testenv"]["extras"]
    for name in settings.sections():
        commands = settings[name].get("commands", "")
        if name.startswith("testenv:") and commands.lstrip().startswith("pytest") and "tests/" not in commands:
            extras = settings[name].get("extras", shared)
            yield pytest.param({one.strip() for one in extras.split(",")}, id=name.partition(":")[2])


@pytest.mark.parametrize("extras", collecting())
def test_an_environment_that_collects_every_test_can_import_them(extras):
    """Scenarios once had no library of the boards, and their session ended before its first test."""
    assert extras & WHOLE


def test_the_known_environments_are_among_them():
    """Or the rule above would hold of none."""
    assert {"spike", "scenario", "stretch", "real-time"} <= {str(one.id) for one in collecting()}
