"""The same words and the same counts in the terminal, in summary.md, which CI shows of each step, and on the session's page."""

from __future__ import annotations

import pytest

from lab.judge.claim import BREACHED as WORD
from lab.report import page as renderer
from lab.report.extent import Extent
from lab.report.session import BROKEN, INTERRUPTED, NOT_RUN
from lab.report.summary import Summary
from tests.unit.report.sessions import (
    BREACHED,
    HEAD,
    HELD,
    INVALID,
    NO_DATA,
    Page,
    content,
    html,
    markdown,
    plain,
    terminal,
)

ROWS = [HELD, BREACHED, NO_DATA, INVALID]
OUTCOMES = {"5 brokers": BROKEN, "6 last": NOT_RUN, "3 dip": BROKEN}
SENTENCES = (
    "The session was interrupted: 4 of 5 experiments and 4 of 5 tests ran.",
    "Not run: all of 6 last.",
    "2 tests are broken, 1 of them by invalid trials.",
    "1 claim was breached.",
    "1 verdict is invalid.",
    "1 verdict has no data.",
)
everywhere = pytest.mark.parametrize("page", [terminal, markdown, html])


@everywhere
def test_what_is_no_pass_is_told_everywhere(page: Page) -> None:
    """A broken test, a breach, an invalid trial, no data and an interruption, in one headline and each by its name."""
    text = plain(page(ROWS, [], HEAD, outcomes=OUTCOMES, stopped=INTERRUPTED))
    assert " ".join(SENTENCES) in text
    for one in ("drain", "dip", "idle", "why 6 last not run"):
        assert one in text
    assert "claims: 1 held, 1 breached, 1 no data, 1 invalid" in text
    assert "tests: 2 broken; tests: 1 not run" in text


@everywhere
def test_a_whole_session_says_nothing_of_its_extent(page: Page) -> None:
    """Nothing is missed where all that was asked for ran."""
    text = page([HELD], [], HEAD)
    assert "not run" not in text.lower().replace("not-run", "")
    assert "interrupted" not in text


def test_ci_shows_the_summary_of_a_step(pytestconfig: pytest.Config) -> None:
    """The file that is written, not another text."""
    workflow = (pytestconfig.rootpath / ".github" / "workflows" / "nightly.yml").read_text()
    assert f"cat results/{renderer.MARKDOWN}" in workflow


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (INTERRUPTED, "The session was interrupted: "),
        ("stopping after 1 failures", "The session was stopped (stopping after 1 failures): "),
        ("", "The session is incomplete: "),
    ],
)
def test_an_incomplete_session_says_why(stopped: str, said: str) -> None:
    """Ctrl-C, a reason of pytest's, or a session of before that kept none."""
    made = content([HELD], [], HEAD, outcomes={"6 last": NOT_RUN}, stopped=stopped)
    assert Summary(made).headline.startswith(said)
    assert Summary(made).headline.endswith("In what ran nothing broke, nothing was breached, and every figure is there.")


def test_the_trials_that_ran_are_counted_of_those_that_were_asked_for() -> None:
    """Where the session kept them; a test that never began asked for none."""
    made = content([HELD], [], HEAD, outcomes={"6 last": NOT_RUN}, stopped=INTERRUPTED)
    made["asked"] = {"trials": 36, "done": 34}
    assert "1 of 2 experiments, 1 of 2 tests and 34 of 36 trials that they asked for ran." in Summary(made).headline
    older = {name: value for name, value in made.items() if name not in ("asked", "stopped")} | {"head": {"trials": "32"}}
    assert "1 of 2 experiments, 1 of 2 tests and 32 trials ran." in Summary(older).headline


def test_an_experiment_that_ran_in_part_is_named_as_such() -> None:
    """By its number; the entry has its tests in words and the one that was cut off."""
    made = content([HELD], [], HEAD, stopped=INTERRUPTED)
    left = made["tests"][0] | {"id": "b", "title": "It lasts", "outcome": NOT_RUN, "remark": "cut off", "rows": []}
    extent = Extent(made | {"tests": [*made["tests"], left]})
    assert extent.sentences[1] == "Not run: a part of 2 reaction."
    (entry,) = extent.entries
    assert entry.text == "1 of 2 tests did not run: It lasts (cut off)"


def test_what_did_not_run_is_no_breach_and_no_pass() -> None:
    """Its word is its own, below a breach and above a pass."""
    made = content([HELD, BREACHED], [], HEAD, outcomes={"6 last": NOT_RUN})
    words = {one.name: one.word for one in Summary(made).experiments}
    assert words == {"2 reaction": WORD, "6 last": NOT_RUN}
