"""The pytest plugin: options, what is refused before anything starts, the choice of tests and their plan, and the fixtures
of fixtures/.

It is loaded into every session of an environment that has the lab installed, so nothing here imports what only experiments
need.
"""

from __future__ import annotations

import argparse
import re
import secrets
import signal
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from lab import extras, options, paths, project
from lab.errors import BAD_INPUT, FAULT, InputError, LabFault
from lab.host import machine
from lab.inputs import scale as scales
from lab.report import last_session
from lab.report.running_session import RunningSession, case_of
from lab.report.session import FILE, ID, INTERRUPTED
from lab.report.verdict_text import natural

if TYPE_CHECKING:
    from lab.report.schedule import Schedule

FIXTURES = ("evidence", "services", "trials")
pytest_plugins = ["lab.plugin.outcomes", *(f"lab.fixtures.{name}" for name in FIXTURES)]

MARKERS = (
    "spike: experiments 1 to 8, their smallest trials, and a 10x spike: a quarter of an hour on a live cluster",
    "extended: a further trial of an experiment or a scenario, for the night",
    "duration(seconds, scale='quick'): how long the test's trials take, run once at that scale; for the plan of a session",
    "speed(least): events/s (lab.host.speed) that a machine must do; on a slower one the session ends before anything starts",
    "scenario: a real system on a live cluster, with its author's figures beside the measured ones",
    "scale: the same trials, one scale a session; python -m tests.scale compares the sessions",
    "stretch: an experiment of text 1's stretch goals, on a live cluster, in a session of its own",
    "acceptance: one policy through bursts, a 10x spike and the way back to the floor; 20 minutes a run at standard",
    "faults: a schedule of faults beside bursts, one for each seed; elastic-lab evidence faults counts what they did",
    "backlog: more than 20 million events at real time; more than two hours",
    "real_time: what only uncompressed settings decide, for --scale=real; most take an hour",
    "kind: needs a Docker daemon and --cluster kind",
    "live: runs on a live cluster, in a session of its own; each of these is, and tox leaves them out",
)
JUDGING = ("spike", "extended", "stretch", "scenario", "scale", "acceptance", "faults", "backlog", "real_time", "kind")
LIVE = JUDGING[:-1]  # a session of these leaves Allure results beside its records; "kind" stands beside one of them
VERDICTS, SUMMARY, PAGE = "verdicts.json", "summary.md", "report.html"  # what a session writes when it has judged, beside FILE
SESSION = pytest.StashKey[RunningSession]()
ORDER = pytest.StashKey[int]()
BESIDE = pytest.StashKey[str]()  # why the session's results go into another folder than was asked for
CLAIMED = pytest.StashKey[bool]()  # the folder of results is this session's alone


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of an experiment session; ``--keep-cluster`` is pytest-kind's and means the same here."""
    short = project.read(Path()).values.get(options.SHORT_OPTIONS) != "off"
    options.declare(parser.getgroup("elastic lab").addoption, parser.addini, short=short)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, object, object]:
    """Refuse in one line a conftest.py that declares an option of the lab's; any other error goes on."""
    try:
        return (yield)
    except (ValueError, argparse.ArgumentError) as error:
        places = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        declaring = [code.co_filename for code in places if code.co_name == "pytest_addoption"]
        named = re.search(r"--[a-z][a-z-]*", str(error))
        if not declaring or named is None or named[0].removeprefix("--") not in options.SHORT:
            raise
        line = f'{named[0]} is an option of elastic-lab and of {declaring[-1]}: {options.SHORT_OPTIONS} = "off" under '
        raise pytest.UsageError(
            f"{line}[tool.{project.TABLE}] in pyproject.toml leaves it, and the lab's is --lab-{named[0][2:]}"
        ) from None


class Ending:
    """Keeps in a session's ``state`` why it ends early; the hook is given no session that it could be found by."""

    def __init__(self, state: RunningSession) -> None:
        self._state = state

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Called by Ctrl-C, whose error has no text, and by ``pytest.exit``, which gives a reason."""
        self._state.stop(str(excinfo.value) or INTERRUPTED)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin the session's state, register the markers, and leave Allure results beside the records of every experiment."""
    folder = config.inipath.parent if config.inipath else config.rootpath
    with refusing():
        options.configure(config.option, config.getini, folder, project.read(config.invocation_params.dir))
    config.stash[SESSION] = state = RunningSession()
    config.pluginmanager.register(Ending(state))
    given = config.getoption("lab_order_seed")
    config.stash[ORDER] = 1 + secrets.randbelow(options.MOST_SEED) if given is None else given
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    asked = config.option.lab_results
    config.option.lab_results = options.results_folder(config.option)
    if config.option.lab_results != asked:
        beside = config.option.lab_results
        config.stash[BESIDE] = (
            f"{asked} has records of an earlier session (--resume goes on there): this one goes into {beside}"
        )
    if options.user_files(config.option):
        config.args = [*config.args, *([] if str(paths.ACCEPTANCE) in config.args else [str(paths.ACCEPTANCE)])]
    marks = config.getoption("markexpr", "")
    live = any(mark in marks and f"not {mark}" not in marks for mark in LIVE)
    if live and not config.option.collectonly:
        _claim(config)  # before Allure clears its folder
    if live and not config.option.collectonly and not config.getoption("allure_report_dir", "unused"):
        config.option.allure_report_dir = str(config.getoption("lab_results") / "allure-results")
        config.option.clean_alluredir = True


def _claim(config: pytest.Config) -> None:
    """Have the folder of results for this session alone, until its end; refuse the session where another one has it."""
    if CLAIMED in config.stash or hasattr(config, "workerinput"):  # a worker's session has it
        return
    folder = config.getoption("lab_results")
    with refusing():
        from lab.host import resources  # of an extra

        lock = resources.claim(folder)
    config.stash[CLAIMED] = True
    config.add_cleanup(lock.release)


def order_seed(config: pytest.Config) -> int:
    """The seed of the order within each block."""
    return config.stash[ORDER]


def judges(item: pytest.Item) -> bool:
    """Whether ``item`` is a test that judges trials; the others are tests of code."""
    return any(mark.name in JUDGING for mark in item.iter_markers())


def experiment(item: pytest.Item) -> str:
    """The name of the experiment that ``item`` belongs to: its module's."""
    return item.path.stem.removeprefix("test_")


def refuse(error: Exception) -> NoReturn:
    """End the session with the one line of ``error``, which was seen before anything started."""
    pytest.exit(str(error), returncode=BAD_INPUT)


@contextmanager
def refusing() -> Iterator[None]:
    """End the session for bad input, and for an extra that is not installed."""
    try:
        with extras.needed("trial"):
            yield
    except InputError as error:
        refuse(error)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse options and files that can't be used, before anything starts."""
    given = session.config.option
    began = session.config.invocation_params
    with refusing():
        options.check_root([str(word) for word in began.args], began.dir, session.config.rootpath)
        options.check(given)
        session.config.stash[SESSION].expectations = options.expectations(given)
        if brought := options.user_files(given):
            options.acceptance_inputs(given, session.config.rootpath)
            session.config.stash[SESSION].brought = brought.name
        session.config.stash[SESSION].altering = options.altering(given)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what will be run of a user's files, what was replaced in the ScaledObject, and how trials are repeated."""
    from lab.trial.user_files import header_lines

    given = config.option
    blocks = (
        [f"{given.lab_repeat} blocks, in an order by seed {order_seed(config)} (--lab-order-seed)"]
        if given.lab_repeat > 1
        else []
    )
    beside = [config.stash[BESIDE]] if BESIDE in config.stash else []
    brought = header_lines(options.acceptance_inputs(given, config.rootpath)) if options.user_files(given) else []
    return [*beside, *brought, *blocks]


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a file of the user's only the acceptance runs, without one all but it; it is what asks for ``brought``.

    A repository's own acceptance comes before the lab's.
    Tests that judge are marked ``live``, and labelled with their id, by which the session's page finds their evidence. They run
    in the natural order of their experiments, in which reports show them: 1, 2, ... 10.
    """
    for item in filter(judges, items):
        item.add_marker("live")
        if config.pluginmanager.hasplugin("allure_pytest"):
            item.add_marker(pytest.mark.allure_label(item.nodeid, label_type=ID))
    wanted = bool(options.user_files(config.option))
    chosen = [item for item in items if ("brought" in getattr(item, "fixturenames", ())) is wanted]
    if wanted:
        chosen = [item for item in chosen if not item.path.is_relative_to(paths.ACCEPTANCE)] or chosen
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    ordered = iter(sorted(filter(judges, items), key=lambda item: natural(str(item.path))))
    items[:] = [next(ordered) if judges(item) else item for item in items]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take away what an earlier session said of its trials in this folder, keep what is asked for now, and print the plan.

    From here on SIGTERM interrupts the session like Ctrl-C: what it has judged is kept. A CI system ends a job so.
    """
    given = session.config.option
    if not given.collectonly and any(map(judges, session.items)):
        _claim(session.config)
        if not given.lab_from_records:
            try:
                machine.check_system()
                machine.check_speed(_least_speed(session.items))
            except LabFault as fault:
                pytest.exit(str(fault), returncode=FAULT)
        for name in (VERDICTS, SUMMARY, PAGE, FILE):
            (given.lab_results / name).unlink(missing_ok=True)
        last_session.keep(given.lab_results.resolve(), getattr(session.config, "cache", None))
        judging = [item for item in session.items if judges(item) and "evidence" in getattr(item, "fixturenames", ())]
        session.config.stash[SESSION].plan(case_of(item, experiment(item)) for item in judging)
        if not given.lab_from_records:
            from lab.report.schedule import Progress

            terminal = session.config.pluginmanager.get_plugin("terminalreporter")
            say = terminal.write_line if terminal is not None else print
            session.config.pluginmanager.register(Progress(_schedule(session.config, judging), say))
        _heed_sigterm(session.config)


def _least_speed(items: Sequence[pytest.Item]) -> float:
    """The events/s that the most demanding of ``items`` asks for with the mark ``speed``; 0 where none does."""
    return max((mark.args[0] for item in items if (mark := item.get_closest_marker("speed"))), default=0)


def _schedule(config: pytest.Config, items: Sequence[pytest.Item]) -> Schedule:
    """The schedule of ``items``, by what the mark ``duration`` says of each."""
    from lab.report.schedule import Planned, Schedule

    planned = []
    for item in items:
        case, mark = case_of(item, experiment(item)), item.get_closest_marker("duration")
        said = {"seconds": mark.args[0], "at": mark.kwargs.get("scale", scales.QUICK)} if mark else {}
        planned.append(Planned(item.nodeid, f"{case.heading}: {case.title}", **said))
    return Schedule(planned, options.chosen_scale(config.option), config.option.lab_repeat)


def _heed_sigterm(config: pytest.Config) -> None:
    """Let SIGTERM interrupt the session like Ctrl-C, until its end; a handler that is there stays."""

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        config.add_cleanup(restore)
