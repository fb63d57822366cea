"""The second half of the plugin: how each test ended, and what the session leaves and says when it is over."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from lab.errors import Breach, NoData
from lab.judge.claim import absent
from lab.plugin import SESSION, VERDICTS, experiment, judges
from lab.report.running_session import RunningSession, case_of
from lab.report.session import BROKEN, FAILED

WRITTEN = pytest.StashKey[Path]()  # the session's page
QUIET_END = "lab_quiet_end"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take from a configuration file that a command says last whether a user's file can be shipped, and where its page is."""
    parser.addini(QUIET_END, "a command prints the answer on a user's file and the address of its page", "bool", False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin the test in the session: what is judged from here on is its own."""
    if judges(item):
        item.config.stash[SESSION].begin(case_of(item, experiment(item)))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Make a figure that a record does not hold "no data", wherever a test asks for it: the lab is not broken by it."""
    try:
        return (yield)
    except NoData as missing:
        if not judges(pyfuncitem):
            raise
        verdict = absent(str(missing))
        pyfuncitem.config.stash[SESSION].judged([verdict], experiment(pyfuncitem), [])
        raise Breach(str(verdict)) from missing


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how a test ended, and have Allure show it. It broke by anything but an assertion of its own, as for Allure."""
    report = yield
    if not judges(item):
        return report
    state, error = item.config.stash[SESSION], call.excinfo
    test = state.begin(case_of(item, experiment(item)))
    if report.failed and error is not None:
        line = error.exconly().splitlines()[0]
        asserted = call.when == "call" and isinstance(error.value, (AssertionError, pytest.fail.Exception))
        test.end(FAILED if asserted else BROKEN, line)
        if not asserted:
            state.broke(f"{item.nodeid} ({call.when})", error.value, line)
    elif report.skipped or call.when == "call":
        test.end(report.outcome, str(error.value) if error else "")
    if call.when != "call" and item.config.pluginmanager.hasplugin("allure_pytest"):
        from lab.report import allure_test

        if call.when == "setup":
            allure_test.begin(test)
        else:
            allure_test.end(test, state.pictures.get(test.picture, ""))
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave verdicts.json, the session's page and summary, and Allure's environment for whoever reads the session.

    Exit with 3 when the lab had a fault, 2 on bad input, also beside breaches: what such a session says is not whole.
    """
    config, state = session.config, session.config.stash[SESSION]
    if session.shouldfail:  # of --exitfirst and --maxfail
        state.stop(str(session.shouldfail))
    if state.rows:
        from lab.record.store import write_json

        write_json(config.getoption("lab_results") / VERDICTS, state.verdicts)
        folder = config.getoption("allure_report_dir", None)
        if folder and state.records:
            Path(folder, "environment.properties").write_text(state.environment())
    if state.began:
        _summarize(config, state)
    if state.exit_code is not None and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = state.exit_code


def _summarize(config: pytest.Config, state: RunningSession) -> None:
    """Write session.json and what is made of it."""
    from lab.report import session_page

    state.runs = config.option.lab_repeat
    config.stash[WRITTEN] = session_page.leave(config.getoption("lab_results"), state)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say at last where the session's page is, unless a command does."""
    written = config.stash.get(WRITTEN, None)
    if written is not None and not config.getini(QUIET_END):
        print(f"read {written}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print every verdict with its number, what is not valid, broke or did not run, and at last the session in words."""
    state = config.stash[SESSION]
    if not state.began:
        return
    from lab.report.summary import Summary

    summary = Summary(state.session(config.getoption("lab_results")))
    for title, lines in summary.terminal:
        if title == str(summary.decision) and config.getini(QUIET_END):
            continue
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(line)
