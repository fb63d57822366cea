"""The pytest plugin: options, the session's state, exit codes, and the fixtures of fixtures/.

It is loaded into every session of an environment that has the lab installed, so nothing here imports what only experiments
need.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from lab import extras
from lab.errors import BAD_INPUT, Breach, InputError, NoData
from lab.judge.claim import absent
from lab.report import cases
from lab.report.session import BROKEN, FAILED, FILE, Session
from lab.spec import scale as scales
from lab.spec.manifests import Library
from lab.spec.scale import Scale

if TYPE_CHECKING:
    from lab.trial.own import Own

pytest_plugins = [f"lab.fixtures.{name}" for name in ("cluster", "evidence", "kafka", "keda", "prometheus", "spark", "trials")]

MARKERS = (
    "spike: an experiment on a live cluster; the acceptance run",
    "scenario: a real system on a live cluster, with its author's figures beside the measured ones",
    "scale: the same trials, one scale a session; elastic-lab scale compares the sessions",
    "kind: needs a Docker daemon and --cluster kind",
)
JUDGING = ("spike", "scenario", "scale", "kind")
LIVE = ("spike", "scenario", "scale")  # a session of these leaves Allure results beside its records
VERDICTS, SUMMARY, PAGE = "verdicts.json", "summary.md", "report.html"  # what a session writes when it has judged, beside FILE
OWN = {"scaledobject": "ScaledObject", "traffic-profile": "traffic profile", "workload": "workload"}
PATHS = ("results", "from-records", *OWN)  # options whose value is a path
SESSION = pytest.StashKey[Session]()
ORDER = pytest.StashKey[int]()
WRITTEN = pytest.StashKey[Path]()  # the session's page
MOST_SEED = 999_999


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of an experiment session; ``--keep-cluster`` is pytest-kind's and means the same here."""
    _join_paths()
    group = parser.getgroup("elastic lab")
    group.addoption("--cluster", choices=("binary", "kind"), default="binary", help="runtime (default: binary)")
    text = "see profiles/scales.yaml (default: quick; for your own ScaledObject the most compressed that keeps its times)"
    group.addoption("--scale", metavar="NAME", help=f"quick, medium, standard, close, real or full: {text}")
    group.addoption("--results", type=Path, default=Path("results"), help="where records, verdicts and report go")
    group.addoption("--repeat", type=int, default=1, metavar="N", help="runs of each trial, in blocks (default: 1)")
    group.addoption("--order-seed", type=int, metavar="N", help="seed of the order within a block (default: a new one)")
    group.addoption("--resume", action="store_true", help="go on in --results: run only what has no finished record there")
    group.addoption("--from-records", type=Path, metavar="DIR", help="judge stored records; starts no cluster")
    group.addoption("--recheck", action="store_true", help="with --from-records: settle each ledger again, and compare")
    for name, what in OWN.items():
        text = f"your own {what}: runs the acceptance instead of the lab's experiments (docs/bring-your-own.md)"
        group.addoption(f"--{name}", type=Path, metavar="FILE", help=text)
    group.addoption("--spark-master", default="local[*]", help="Spark master of the ledger (default: local[*])")


def _join_paths() -> None:
    """Begin again with ``--scaledobject=FILE`` where the command line has ``--scaledobject FILE``.

    pytest chooses its root folder before it loads any plugin. It then takes a FILE that stands alone for a test, and that
    file's folder for the root: the configuration of the folder it was started in would not be read.
    """
    program = Path(sys.argv[0])
    if program.name not in ("pytest", "py.test") and program.parent.name != "pytest":
        return  # a program that calls pytest.main(): it is not ours to begin again
    given = sys.orig_argv
    joined = [given[0]]
    for word in given[1:]:
        if joined[-1] in {f"--{name}" for name in PATHS} and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    if joined != given:
        os.execv(sys.executable, [sys.executable, *joined[1:]])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin the session's state, register the markers, and leave Allure results beside the records of every experiment."""
    config.stash[SESSION] = Session()
    given = config.getoption("--order-seed")
    config.stash[ORDER] = 1 + secrets.randbelow(MOST_SEED) if given is None else given
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    marks = config.getoption("markexpr", "")
    live = any(mark in marks and f"not {mark}" not in marks for mark in LIVE)
    if live and not config.option.collectonly and not config.getoption("allure_report_dir", "unused"):
        config.option.allure_report_dir = str(config.getoption("--results") / "allure-results")
        config.option.clean_alluredir = earlier(config) is None  # what is refused deletes nothing


def order_seed(config: pytest.Config) -> int:
    """The seed of the order within each block."""
    return config.stash[ORDER]


def earlier(config: pytest.Config) -> InputError | None:
    """Why no trial may run into ``--results``: it has records of an earlier session, and ``--resume`` is not given."""
    options = config.option
    if options.from_records or options.resume or not (options.results / "records").is_dir():
        return None
    from lab.record import store

    count = len(store.stored(options.results))
    allowed = f"a folder without records, as it has {count} and none is run over; --resume runs only what is not finished there"
    return InputError("command line", "--results", str(options.results), allowed) if count else None


def judges(item: pytest.Item) -> bool:
    """Whether ``item`` is a test that judges trials; the others are tests of code."""
    return any(item.get_closest_marker(mark) for mark in JUDGING)


def experiment(item: pytest.Item) -> str:
    """The name of the experiment that ``item`` belongs to: its module's."""
    return item.path.stem.removeprefix("test_")


def own(config: pytest.Config) -> Own:
    """The files that a user brought with the options of :data:`OWN`."""
    from lab.trial.own import Own

    return Own(*(config.getoption(f"--{name}") for name in OWN))


def refuse(error: Exception) -> NoReturn:
    """End the session with the one line of ``error``, which was seen before anything started."""
    pytest.exit(str(error), returncode=BAD_INPUT)


@contextmanager
def refusing() -> Iterator[None]:
    """End the session for bad input, and for an extra that is not installed."""
    try:
        with extras.needed():
            yield
    except InputError as error:
        refuse(error)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse options and files that can't be used, before anything starts."""
    options = session.config.option
    with refusing():
        _check(options)
        if own(session.config):
            _inputs(session.config)


def _check(options: Any) -> None:
    if options.repeat < 1:
        raise InputError("command line", "--repeat", options.repeat, "a whole number from 1")
    if options.order_seed is not None and not 0 <= options.order_seed <= MOST_SEED:
        raise InputError("command line", "--order-seed", options.order_seed, f"a whole number from 0 to {MOST_SEED:,}")
    if options.resume and options.from_records:
        raise InputError("command line", "--resume", True, "without --from-records, which runs nothing")
    if options.from_records:
        from lab.record import store

        if not store.stored(options.from_records):
            raise InputError("command line", "--from-records", str(options.from_records), "a folder of records")
    if options.recheck and not options.from_records:
        raise InputError("command line", "--recheck", True, "beside --from-records, whose ledgers it settles")
    scales.load(options.scale or scales.QUICK)


def chosen_scale(config: pytest.Config) -> Scale:
    """The scale that ``--scale`` names, or the one for the files that a user brought."""
    name = config.getoption("--scale")
    return scales.load(name) if name else own(config).scale()


def _inputs(config: pytest.Config) -> Any:
    """The inputs of the acceptance on a user's files. Raises :class:`InputError` for a file that can't be used."""
    from lab.spec import inputs

    chosen = own(config).plan()
    traffic, policy, work = (chosen.pop(name) for name in ("profile", "policy", "workload"))
    scale, runtime = chosen_scale(config), config.getoption("--cluster")
    return inputs.read(traffic, policy, work, 1, scale, runtime, library=Library.of(config.rootpath), **chosen)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what will be run of a user's files, what was replaced in the ScaledObject, and how trials are repeated."""
    from lab.trial.own import told

    repeat = config.option.repeat
    blocks = [f"{repeat} blocks, in an order by seed {order_seed(config)} (--order-seed)"] if repeat > 1 else []
    return [*(told(_inputs(config)) if own(config) else []), *blocks]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a file of the user's only the acceptance runs, without one all but it; it is what asks for ``brought``.

    Tests that judge are labelled with their id, by which the session's page finds their evidence.
    """
    for item in items if config.pluginmanager.hasplugin("allure_pytest") else ():
        if judges(item):
            item.add_marker(pytest.mark.allure_label(item.nodeid, label_type=cases.ID))
    wanted = bool(own(config))
    other = [item for item in items if ("brought" in getattr(item, "fixturenames", ())) is not wanted]
    if other:
        config.hook.pytest_deselected(items=other)
        items[:] = [item for item in items if item not in other]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run into an earlier session's records, and take away what it said of its trials before they are judged anew."""
    options = session.config.option
    if not options.collectonly and any(map(judges, session.items)):
        if (error := earlier(session.config)) is not None:
            refuse(error)
        for name in (VERDICTS, SUMMARY, PAGE, FILE):
            (options.results / name).unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin the test in the session: what is judged from here on is its own."""
    if judges(item):
        item.config.stash[SESSION].begin(cases.case_of(item, experiment(item)))


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
    """Note how a test ended. It broke by anything but an assertion of its own, which is what Allure shows as failed."""
    report = yield
    if not judges(item):
        return report
    state, error = item.config.stash[SESSION], call.excinfo
    test = state.begin(cases.case_of(item, experiment(item)))
    if report.failed and error is not None:
        line = error.exconly().splitlines()[0]
        asserted = call.when == "call" and isinstance(error.value, (AssertionError, pytest.fail.Exception))
        test.end(FAILED if asserted else BROKEN, line)
        if not asserted:
            state.broke(f"{item.nodeid} ({call.when})", error.value, line)
    elif report.skipped or call.when == "call":
        test.end(report.outcome, str(error.value) if error else "")
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave verdicts.json, the session's page and summary, and Allure's environment for whoever reads the session.

    Exit with 3 when the lab had a fault, 2 on bad input, also beside breaches: what such a session says is not whole.
    """
    config, state = session.config, session.config.stash[SESSION]
    if state.rows:
        from lab.record.store import write_json

        write_json(config.getoption("--results") / VERDICTS, state.rows)
        folder = config.getoption("allure_report_dir", None)
        if folder and state.records:
            Path(folder, "environment.properties").write_text(state.environment())
    if state.began:
        _summarize(config, state)
    if state.exit_code is not None and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = state.exit_code


def _summarize(config: pytest.Config, state: Session) -> None:
    """Write session.json and what is made of it."""
    from lab.report import page

    seed = order_seed(config) if config.option.repeat > 1 else None
    state.repeated(config.option.repeat, seed)
    config.stash[WRITTEN] = page.leave(config.getoption("--results"), state)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say at last where the session's page is."""
    written = config.stash.get(WRITTEN, None)
    if written is not None:
        print(f"read {written}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print every verdict with its number, bound and unit, which trials are not valid, what broke, and the session in words."""
    state = config.stash[SESSION]
    if not state.began:
        return
    from lab.report import validity
    from lab.report.summary import Summary

    found = Summary(state.content(config.getoption("--results")))
    sections: Sequence[tuple[str, list[str]]] = (
        ("objectives", found.lines),
        ("validity of the trials", validity.lines(state.validity)),
        ("faults of the lab", state.faults),
        ("bad input", state.refused),
        ("the session", [found.headline]),
    )
    for title, lines in sections:
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> Scale:
    """The scale of the session's trials."""
    return chosen_scale(request.config)


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest) -> Path:
    """The folder chosen with ``--results``."""
    folder: Path = request.config.getoption("--results").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
