"""The question of an experiment has one text: docs/experiments.md asks what the module's first line asks."""

import re

from lab import paths

ROW = re.compile(r"^\| \[[^]]+\]\(\.\./(tests/experiments/\S+)\) \| (.+?) \|", re.MULTILINE)
QUESTIONS = ROW.findall((paths.PROJECT / "docs" / "experiments.md").read_text())


def test_the_page_asks_what_the_experiments_ask():
    """In the same words, but for the first letter; all that are numbered, the model, and no other.

    Every module begins with a question, which the session's page shows; the session's summary asks none.
    """
    folder = paths.PROJECT / "tests" / "experiments"
    for module, question in QUESTIONS:
        assert (paths.PROJECT / module).read_text().partition("\n")[0].partition(": ")[2].lower() == question.lower()
    numbered = sorted(file.name for file in folder.glob("test_*.py") if re.match(r"test_(\d+_|model)", file.name))
    assert sorted(module.rpartition("/")[2] for module, _ in QUESTIONS) == numbered
    modules = [file for name in ("experiments", "scenarios") for file in (paths.PROJECT / "tests" / name).rglob("test_*.py")]
    assert len(modules) > len(QUESTIONS)
    for file in modules:
        assert file.stem == "test_summary" or file.read_text().partition("\n")[0].endswith("?"), file
