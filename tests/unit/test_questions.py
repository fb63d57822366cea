"""The question of an experiment has one text: docs/experiments.md asks what the module's first line asks."""

import re

import pytest

from lab import paths

ROW = re.compile(r"^\| \[[^]]+\]\(\.\./(tests/experiments/\S+)\) \| (.+?) \|", re.MULTILINE)
QUESTIONS = ROW.findall((paths.PROJECT / "docs" / "experiments.md").read_text())


@pytest.mark.parametrize(("module", "question"), QUESTIONS)
def test_the_page_asks_what_the_experiment_asks(module, question):
    """In the same words, but for the first letter."""
    first = (paths.PROJECT / module).read_text().partition("\n")[0]
    assert first.partition(": ")[2].lower() == question.lower()


def test_every_experiment_is_in_the_table():
    """All that are numbered, the model, and no other."""
    folder = paths.PROJECT / "tests" / "experiments"
    numbered = sorted(file.name for file in folder.glob("test_*.py") if re.match(r"test_(\d+_|model)", file.name))
    assert sorted(module.rpartition("/")[2] for module, _ in QUESTIONS) == numbered


@pytest.mark.parametrize("folder", ["experiments", "scenarios"])
def test_every_module_begins_with_a_question(folder):
    """The session's page shows it; the session's summary asks none."""
    modules = list((paths.PROJECT / "tests" / folder).rglob("test_*.py"))
    assert modules
    for file in modules:
        if file.stem != "test_summary":
            assert file.read_text().partition("\n")[0].endswith("?"), file
