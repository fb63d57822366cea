"""What every user carries: the checkout's size, its files and its words have a budget, and this prints what is spent."""

from __future__ import annotations

import ast
import logging
import subprocess

import pytest

from lab import paths

log = logging.getLogger("budgets")
pytestmark = pytest.mark.skipif(not (paths.PROJECT / ".git").exists(), reason="what git tracks is known in a clone alone")


@pytest.fixture(scope="module")
def checkout():
    """Every file of the checkout, as git tracks it."""
    listed = subprocess.run(
        ["git", "-C", paths.PROJECT, "ls-files", "-z"], check=True, capture_output=True, text=True, timeout=60
    )
    return [file for name in listed.stdout.split("\0") if name and (file := paths.PROJECT / name).is_file()]


def words(*files):
    """How many words the files have."""
    return sum(len(file.read_text(encoding="utf-8").split()) for file in files)


def spend(what, spent, budget):
    """Print what is spent of a budget, which is not to be exceeded."""
    log.info("%s: %s of %s", what, f"{spent:,}", f"{budget:,}")
    assert spent <= budget, f"{what}: {spent:,}, allowed {budget:,}: what comes in is paid for by what goes out"


def test_a_checkout_is_small(checkout):
    """A stranger clones it in seconds, and sees at a glance what is there.

    Of the sessions it has their verdicts, their lock, and a few records that every tox judges again.
    """
    spend("bytes of a checkout", sum(file.stat().st_size for file in checkout), 15_000_000)
    spend("files of a checkout", len(checkout), 1_400)
    evidence = {file.name: file.stat().st_size for file in checkout if file.parent == paths.PROJECT / "docs" / "evidence"}
    spend("bytes of the table of verdicts", evidence.pop("verdicts.csv"), 1_000_000)
    spend("bytes beside it", sum(evidence.values()), 100_000)
    judged = paths.PROJECT / "tests" / "records" / "judged"
    spend("bytes of records", sum(file.stat().st_size for file in checkout if file.is_relative_to(judged)), 6_000_000)


def test_the_pages_are_short(checkout):
    """README is read in three minutes and the handbook in half an hour; a decision fits a screen."""
    pages = [file for file in checkout if file.suffix == ".md"]
    decisions = [file for file in pages if file.parent.name == "decisions"]
    spend("words of Markdown", words(*pages), 50_000)
    spend("words of README.md", words(paths.PROJECT / "README.md"), 800)
    spend("words of the handbook", words(paths.PROJECT / "docs" / "handbook.md"), 8_000)
    spend("pages of decisions", len(decisions), 25)
    spend("words of the longest decision", max(map(words, decisions)), 300)


def test_an_experiment_is_described_in_150_words(checkout):
    """Hypothesis, method, what is asserted and what refutes it: results and history stand elsewhere."""
    folders = [paths.PROJECT / "tests" / name for name in ("experiments", "scenarios")]
    modules = [file for file in checkout if file.name.startswith("test_") and any(map(file.is_relative_to, folders))]
    described = {file: len((ast.get_docstring(ast.parse(file.read_text())) or "").split()) for file in modules}
    longest = max(described, key=lambda file: described[file])
    spend(f"words of the longest docstring of an experiment, {longest.name}", described[longest], 150)
