"""What needs attention stands above the rest: a breach, no data, an invalid trial, a broken test, a missing experiment."""

from __future__ import annotations

from lab.report import page as renderer
from lab.report import summary
from lab.report.summary import Summary
from tests.unit.report.sessions import (
    BREACHED,
    HEAD,
    HELD,
    INVALID,
    INVARIANT,
    NO_DATA,
    Page,
    content,
    markdown,
    pages,
    plain,
    section,
)


@pages
def test_a_breach_is_told_before_the_table(page: Page) -> None:
    """Under its own heading: who, how much, against what, and the note."""
    text = page([HELD, BREACHED], [], HEAD)
    assert "2 reaction, drain: 1.62 x, wanted < 1.5 x; two hot | ones" in section(text, "Breached")
    assert "reaction: 71.2" not in section(text, "Breached")
    assert text.index("Breached") < text.index("All verdicts")
    assert "✘ breached" in section(text, "All verdicts")
    assert "1 held, 1 breached, 0 no data" in plain(text)


@pages
def test_no_data_is_told_and_is_no_pass(page: Page) -> None:
    """What could not be measured has its own heading with the reason, and is not counted as held."""
    text = page([HELD, NO_DATA], [], HEAD)
    assert "4 ceiling, idle: n/a, wanted < 90 s; fast enough (no data: no spike)" in section(text, "No data")
    assert "1 held, 0 breached, 1 no data" in plain(text)
    assert section(text, "Breached") == section(text, "Missing") == ""


@pages
def test_an_invalid_trial_is_told_and_is_neither_a_pass_nor_a_breach(page: Page) -> None:
    """Its claims have their own heading with the reason, and their own count."""
    text = page([HELD, INVALID], [], HEAD)
    assert "3 dip, dip: 71.2 s, wanted < 90 s; fast enough (invalid: steal 0.3)" in section(text, "Invalid")
    assert section(text, "Breached") == ""
    assert "1 held, 0 breached, 0 no data, 1 invalid" in plain(text)


@pages
def test_a_missing_experiment_is_told(page: Page) -> None:
    """An experiment that was expected and judged nothing is named and counted; one that was judged is not."""
    text = page([HELD], [], HEAD, expected=["2 reaction", "5 brokers"])
    assert "5 brokers: no verdict at all" in section(text, "Missing")
    assert "2 reaction" not in section(text, "Missing")
    assert "1 of 2 experiments missing" in plain(text)


@pages
def test_all_held_has_nothing_to_tell(page: Page) -> None:
    """No empty heading where nothing went wrong."""
    text = page([HELD], [], HEAD, expected=["2 reaction"])
    assert [section(text, name) for name in ("Breached", "No data", "Missing")] == ["", "", ""]
    assert "missing" not in text.lower()


def test_missing_keeps_the_expected_order() -> None:
    """Each once, in the order asked for; a verdict without data is a verdict."""
    expected = ["9 kafka", "4 ceiling", "1 signal", "9 kafka", "2 reaction"]
    assert Summary(content([HELD, NO_DATA], expected=expected)).missing == ["9 kafka", "1 signal"]


@pages
def test_a_broken_test_is_told_and_nothing_is_praised_beside_it(page: Page) -> None:
    """In the headline, with its reason, and in the counts; that all held is not said."""
    text = plain(page([INVARIANT], [], HEAD, outcomes={"5 brokers": "broken"}))
    assert "1 test is broken." in text
    assert "why 5 brokers broken" in text
    assert "tests: 1 broken" in text
    assert "all held" not in text
    assert summary.ALL_WELL not in text


@pages
def test_a_test_that_fails_beside_its_claims_is_told(page: Page) -> None:
    """A plain assertion is no claim, and no verdict shows it; one that failed by a breach is told by the breach alone."""
    text = plain(page([INVARIANT, BREACHED], [], HEAD, outcomes={"2 reaction": "failed", "5 brokers": "failed"}))
    assert "1 claim was breached. 1 test failed beside its claims." in text
    assert "why 5 brokers failed" in text
    assert "why 2 reaction failed" not in text


@pages
def test_tests_that_invalid_trials_broke_are_counted_as_such(page: Page) -> None:
    """They are broken for whoever counts tests; the reason is the trial's."""
    text = plain(page([INVALID], [], HEAD, outcomes={"3 dip": "broken"}))
    assert "1 test is broken, 1 of them by invalid trials. 1 verdict is invalid." in text


@pages
def test_trials_that_are_not_known_to_be_valid_are_told(page: Page) -> None:
    """What they say may be the machine's: nothing is well before that is known."""
    made = content([INVARIANT], [], HEAD)
    made["validity"] = [{"trial": "a1", "word": "no data", "remark": "no data: CPU time that the hypervisor took"}]
    text = plain((renderer.markdown if page is markdown else renderer.html)(Summary(made)))
    assert "1 trial is not known to be valid." in text
    assert summary.ALL_WELL not in text
