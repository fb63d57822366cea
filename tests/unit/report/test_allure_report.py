"""The Allure report: complete, in one page, and a browser asks no other host for anything."""

from __future__ import annotations

import base64
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from lab import paths
from lab.__main__ import main
from lab.errors import InputError, LabFault
from lab.report import allure_report, session_page
from lab.report.running_session import RunningSession
from lab.report.session import FAILED, Advice, Case, Tried
from lab.wait import until
from tests.unit.report import browser
from tests.unit.report.sessions import HELD, session

pytestmark = pytest.mark.services


def result(folder: Path, name: str, status: str, **labels: str) -> None:
    """Write one Allure result as the pytest plugin would."""
    made: dict[str, object] = dict.fromkeys(("uuid", "historyId", "testCaseId", "fullName", "name"), name)
    made |= {"status": status, "start": 1_700_000_000_000, "stop": 1_700_000_001_000}
    made["labels"] = [{"name": key, "value": value} for key, value in labels.items()]
    (folder / f"{name}-result.json").write_text(json.dumps(made))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> allure_report.Report:
    """A report of a result of each kind, made by the real generator."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on PATH")
    results = tmp_path_factory.mktemp("results")
    source = results / "allure-results"
    source.mkdir()
    words = {"held": "passed", "breached": "failed", "invalid": "broken", "broken": "broken", "no data": "passed"}
    for word, status in words.items():
        result(source, f"test_{word}", status, epic="Scaling", feature="1 signal", verdict=word)
    result(source, "test_asserted", "failed", epic="Scaling", feature="1 signal")
    result(source, "test_known", "passed", epic="KEDA", feature="zero", verdict="held", known="a stall of librdkafka")
    return allure_report.build(results)


@pytest.fixture
def served(built: allure_report.Report) -> Iterator[str]:
    """The report's address on loopback."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=built.index.parent))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_page_names_no_other_host_and_has_its_data_first(built: allure_report.Report) -> None:
    """No script, style, image or frame of another host, no analytics, and a policy that forbids the rest.

    The application starts when it is read, and asks for files of its data if they are not there yet.
    """
    page = built.index.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "googletagmanager" not in page
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert built.one_file
    assert "Elastic Lab" in page
    (application,) = allure_report.APPLICATION.finditer(page)
    assert page.index("window.allureReportData =") < page.index("window.allureReportDataReady = true") < application.start()
    assert page[application.end() :].split() == ["</body>", "</html>"]
    assert allure_report.APPLICATION.search(allure_report.closed("<head></head><script src=app.js></script></body>")) is None


@browser.needed
def test_a_browser_shows_it_and_asks_no_other_host(built: allure_report.Report, served: str) -> None:
    """Chromium renders the tests' names, from a server and from a file, and the page asks nobody but that server."""
    own = served.rpartition("/")[0]
    with browser.started() as chromium:
        for page in (served, built.index):
            view = browser.look(chromium, page)
            view.page.get_by_text("test_breached").first.wait_for()
            assert [address for address in view.requests if not address.startswith(own)] == []


def test_categories_and_grouping_are_the_labs(built: allure_report.Report) -> None:
    """Each word of the session's page is a category, and known behaviours of others are one; the tree is epic and feature."""
    data = dict(re.findall(r'd\("([^"]+)","([^"]*)"\)', built.index.read_text(encoding="utf-8")))
    categories = json.loads(base64.b64decode(data["widgets/categories.json"]))
    names = {node["name"] for node in categories["nodes"].values() if node["type"] == "category"}
    words = {"breached", "invalid trial", "no data", "broken: a fault of the lab", "failed beside its claims"}
    assert names == words | {"known behaviour of another project"}
    tree = base64.b64decode(data["widgets/default/tree.json"]).decode()
    assert all(f'"{name}"' in tree for name in ("Scaling", "1 signal", "KEDA", "zero"))


def test_a_build_that_was_killed_leaves_the_last_report_and_no_scratch(built: allure_report.Report) -> None:
    """The last report stays whole, and what the killed one had made goes with the next."""
    results, before = built.index.parent.parent, built.index.read_bytes()
    process = subprocess.Popen([sys.executable, "-m", "lab", "report", f"--results={results}"], cwd=paths.PROJECT)
    until(lambda: bool(list(results.glob(".report-*/allure-results"))), 120, "the build under way")
    process.send_signal(signal.SIGSTOP)
    children = psutil.Process(process.pid).children(recursive=True)  # they end by themselves
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=60)
    assert list(results.glob(".report-*"))
    assert built.index.read_bytes() == before
    allure_report.build(results)
    assert not list(results.glob(".report-*"))


def test_no_results_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to report is the user's to fix: exit code 2 and the folder's name."""
    assert main(["report", "--results", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    with pytest.raises(InputError):
        allure_report.build(tmp_path)


def test_no_node_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Node.js the fault says what to install."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LabFault, match=r"Node\.js 20 or later on PATH: not found"):
        allure_report.install()


@pytest.mark.parametrize("page", ["<html></html>", '<head><script src="https://elsewhere.example/x.js"></script></head>'])
def test_a_page_that_calls_elsewhere_is_refused(page: str) -> None:
    """Were a later Allure's page different, the build stops instead of shipping it."""
    with pytest.raises(LabFault, match="self-contained"):
        allure_report.closed(page)


@browser.needed
def test_the_sessions_page_links_to_the_evidence_of_each_test(built: allure_report.Report) -> None:
    """By the id that the result has as a label; the link opens that test. The archive holds the page and the report.

    Building again from the same results replaces the session's entry of history instead of adding one.
    """
    results = built.index.parent.parent
    allure_report.build(results)
    assert len((results / "history.jsonl").read_text().splitlines()) == 1
    state = RunningSession()
    state.begin(Case("tests/test_1.py::test_linked", "1_signal", title="It is linked")).end(FAILED, "why")
    session_page.leave(results, state)
    result(results / "allure-results", "test_linked", "failed", test="tests/test_1.py::test_linked")
    (results / "changes.json").write_text('{"schema": 1, "sessions": 3}')
    again = allure_report.build(results)
    assert again.page == results / session_page.PAGE
    assert "0 numbers of 3 sessions were judged by Apache Otava" in again.page.read_text()
    (link,) = re.findall(r'href="(report/index\.html#[^"]+)"', again.page.read_text())
    with browser.started() as chromium:
        view = browser.look(chromium, again.index, link.partition("#")[2])
        view.page.get_by_text("test_linked").first.wait_for()
        assert "test_breached" not in view.text
    with zipfile.ZipFile(allure_report.archive(results)) as packed:
        assert {"report.html", "summary.md", "session.json", "report/index.html"} <= set(packed.namelist())


def test_a_page_in_the_archive_links_only_to_what_is_in_it(tmp_path: Path) -> None:
    """The second trial's page is in it. Of a link to a record the text stays, and the page in the results keeps the link."""
    for name in ("records/a1/trial.json", "changed/report.html", "report/index.html"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text('<a href="records/a1/">a1</a> <a href="#b">b</a>')
    made = session([HELD], brought="my.yaml", advice=Advice(tried=Tried("ship", [], "changed/report.html")))
    made.write(tmp_path)
    kept = session_page.write(tmp_path, made, {HELD.experiment: "report/index.html#1"}).read_text()
    with zipfile.ZipFile(allure_report.archive(tmp_path)) as packed:
        page, changed = (packed.read(name).decode() for name in ("report.html", "changed/report.html"))
    links = [set(re.findall(r'href="([^"#]+)', text)) for text in (kept, page)]
    assert links == [{"records/a1/", "report/index.html", "changed/report.html"}, links[0] - {"records/a1/"}]
    assert changed == 'a1 <a href="#b">b</a>'
