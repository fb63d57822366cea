"""Builds the Allure report of a session: one page that opens from a disk or a server, and calls no one.

The generator is Allure 3, pinned by the committed lock file and installed once into the user's cache. Its template asks
for an analytics script that no option turns off: that is cut out, and a content security policy lets nothing be fetched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock

from lab import paths
from lab.errors import InputError, LabFault
from lab.report import allure_input, changes, session, session_page
from lab.report.session import ID, Session
from lab.report.trend import is_session, trend
from lab.wait import reporting

log = logging.getLogger("lab.report")

NODE = Path(__file__).parent / "node"
NODE_NEEDED = 20
ONE_FILE_BYTES = 60_000_000
INSTALL_S, GENERATE_S = 600, 600
LOCK, MARK = "report.lock", "results.sha256"
ARCHIVE = "report.zip"

POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; form-action 'none'\">"
)
ANALYTICS = re.compile(
    r'<script\b[^>]*\bsrc="https?://www\.googletagmanager\.com/[^"]*"[^>]*>\s*</script>\s*<script>.*?</script>', re.DOTALL
)
APPLICATION = re.compile(r'<script\s+src="data:text/javascript[^"]*"\s*></script>')
LINK = re.compile(r'<a href="([^"#]+)[^"]*">(.*?)</a>', re.DOTALL)  # of a page of the lab's own to another file
FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|href|data)=[\"']?(?:https?:)?//", re.I
)


@dataclass(frozen=True)
class Report:
    """A built report: its ``index``, whether all of it is in that one file, its size in bytes, and the session's ``page``."""

    index: Path
    one_file: bool
    size: int
    page: Path | None = None

    def __str__(self) -> str:
        how = "open it in a browser" if self.one_file else f"python -m http.server --bind 127.0.0.1 -d {self.index.parent}"
        return f"{self.index} ({self.size / 1e6:.1f} MB; {how})"


def build(results: Path) -> Report:
    """Build ``results/report`` from ``results/allure-results``, keeping ``history.jsonl``; the last stays until it is done.

    ``InputError`` if there are no Allure results; ``LabFault`` if Node.js is missing or the generator fails.
    """
    results = results.resolve()
    source = _source(results)
    tool = install()
    one_file = sum(path.stat().st_size for path in source.iterdir()) <= ONE_FILE_BYTES
    names = sorted(path.name for path in source.glob("*-result.json"))
    mark = hashlib.sha256("\n".join(names).encode()).hexdigest()
    found = session.read(results)
    target = results / "report"
    history = results / "history.jsonl"
    with FileLock(results / LOCK), _scratch(results, "report") as scratch:
        made, kept = scratch / "report", scratch / "history.jsonl"
        again = (target / MARK).is_file() and (target / MARK).read_text() == mark  # these very results were reported already
        kept.write_text("".join(_earlier(history, again)), encoding="utf-8")
        allure_input.prepare(source, scratch / source.name, found)
        settings = {"ELASTIC_LAB_HISTORY": str(kept), "ELASTIC_LAB_SINGLE_FILE": str(one_file).lower()}
        settings["ALLURE_READ_CONCURRENCY"] = "1"  # in the order of their names
        log.info("building the report of %d tests", len(names))
        with reporting(lambda: "building the report"):
            command = [_node(), str(tool / "node_modules" / "allure" / "cli.js"), "generate"]
            command += ["--config", str(NODE / "allurerc.mjs"), "--output", str(made), "--cwd", str(scratch), source.name]
            done = _run(command, tool, settings, GENERATE_S)
        if done.returncode or not (made / "index.html").is_file():
            raise LabFault(f"the Allure report was not built (exit {done.returncode}): {_last_line(done)}")
        index = made / "index.html"
        index.write_text(closed(index.read_text(encoding="utf-8")), encoding="utf-8")
        (made / MARK).write_text(mark)
        shutil.rmtree(target, ignore_errors=True)
        made.replace(target)
        kept.replace(history)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    lines = history.read_text(encoding="utf-8").splitlines()
    return Report(target / "index.html", one_file, size, _page(results, found, lines, mark) if found else None)


def _earlier(history: Path, again: bool) -> list[str]:
    """The lines of earlier sessions, of which the last is left out where this one is reported ``again``.

    A line that is no session, as a full disk leaves it, is left out too, with a warning.
    """
    lines = history.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if history.is_file() else []
    lines = lines[:-1] if again else lines
    kept = [line for line in lines if is_session(line)]
    if len(kept) < len(lines):
        log.warning("%s: %d of %d lines are no sessions, and are left out", history, len(lines) - len(kept), len(lines))
    return kept


def _page(results: Path, found: Session, history: list[str], mark: str) -> Path:
    """Keep the main numbers of the session, and write its page, which links to the report and shows what changed."""
    changes.keep(results, found, mark)
    shown = replace(found, sections=[*changes.section(results, found), *found.sections])
    return session_page.write(results, shown, _evidence(history[-1]), trend(found, history))


def _evidence(line: str) -> dict[str, str]:
    """The address of each test's page in the report whose ``line`` of history it is, by pytest's id, a label of the test."""
    tests = json.loads(line)["testResults"].values()
    labels = ((label, one["id"]) for one in tests for label in one["labels"])
    return {label["value"]: f"report/index.html#{identity}" for label, identity in labels if label["name"] == ID}


def archive(results: Path) -> Path:
    """Pack the session's pages, its summary, its verdicts and the Allure report into one file; returns that file.

    The page of a second trial is among them. Records are too large: the pages in the archive have no links to them.
    """
    found = session.read(results)
    tried = [found.advice.tried.page] if found and found.advice and found.advice.tried else []
    pages = [session_page.PAGE, *tried]
    names = (*pages, session_page.MARKDOWN, session_page.TIMELINES, session.FILE, "verdicts.json", "report")
    target = results / ARCHIVE
    with FileLock(results / LOCK), _scratch(results, "archive") as scratch:
        made = scratch / ARCHIVE
        listed = (file for name in names for file in sorted([results / name, *(results / name).rglob("*")]))
        files = {str(file.relative_to(results)): file for file in listed if file.is_file()}
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, file in files.items():
                if name in pages:
                    packed.writestr(name, _linked(file.read_text(encoding="utf-8"), Path(name).parent, files))
                else:
                    packed.write(file, name)
        made.replace(target)
    return target


def _linked(page: str, folder: Path, files: Collection[str]) -> str:
    """The ``page``, which stands in ``folder``, with links to ``files`` alone; of any other link the text stays."""

    def kept(link: re.Match[str]) -> str:
        address = os.path.normpath(folder / unquote(unescape(link[1])))
        return link[0] if address in files else link[2]

    return LINK.sub(kept, page)


def closed(page: str) -> str:
    """The report's page without its analytics and with a policy that lets it fetch nothing from another host.

    The application of a page in one file is moved behind its data: on a busy machine it would find none, and fail for good.
    ``LabFault`` if the page would still name another host's script, style, image or frame.
    """
    page = ANALYTICS.sub("", page)
    if application := APPLICATION.search(page):  # a page of several files fetches its data
        rest = page[: application.start()] + page[application.end() :]
        end = rest.rfind("</body>")
        page = rest[:end] + application.group() + rest[end:]
    head = re.search(r"<head[^>]*>", page)
    found = FETCHED.search(page)
    if head is None or found is not None or "googletagmanager" in page:
        what = "it has no <head>" if head is None else f"it still names {found.group() if found else 'an analytics host'}"
        raise LabFault(f"the report can't be made self-contained: {what}; is Allure's version still the pinned one?")
    return page[: head.end()] + "\n    " + POLICY + page[head.end() :]


def install() -> Path:
    """The folder with the pinned Allure generator in the user's cache, installed by the first who needs it."""
    lock = hashlib.sha256((NODE / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = paths.cache_dir() / f"allure-{lock}"
    _node()
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if folder.is_dir():
            return folder
        npm = shutil.which("npm")
        if npm is None:
            raise LabFault("the report needs npm on PATH to install Allure once: not found")
        with _scratch(folder.parent, folder.name) as scratch:
            made = scratch / folder.name
            made.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(NODE / name, made / name)
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            with reporting(lambda: "installing Allure into the cache"):
                done = _run(command, made, {}, INSTALL_S)
            if done.returncode:
                raise LabFault(f"npm could not install Allure (exit {done.returncode}): {_last_line(done)}")
            made.replace(folder)
    return folder


@contextmanager
def _scratch(folder: Path, name: str) -> Iterator[Path]:
    """A new folder in ``folder`` until the block ends. What a killed process left goes first: the lock is held."""
    for left in folder.glob(f".{name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as made:
        yield Path(made)


def _node() -> str:
    node = shutil.which("node")
    need = f"the report needs Node.js {NODE_NEEDED} or later on PATH"
    if node is None:
        raise LabFault(f"{need}: not found")
    found = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    major = re.match(r"v(\d+)", found)
    if major is None or int(major.group(1)) < NODE_NEEDED:
        raise LabFault(f"{need}: found {found or 'one that does not run'}")
    return node


def _run(command: list[str], folder: Path, settings: dict[str, str], limit_s: float) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ALLURE_")} | settings
    streams: dict[str, Any] = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(command, cwd=folder, env=own, timeout=limit_s, check=False, **streams)
    except subprocess.TimeoutExpired as error:
        raise LabFault(f"{Path(command[0]).name} {command[1]} was not done after {limit_s:.0f} s") from error


def _source(results: Path) -> Path:
    source = results / "allure-results"
    if not source.is_dir() or not any(source.glob("*-result.json")):
        raise InputError(results, "--results", str(results), "a folder whose allure-results holds at least one test's result")
    return source


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", f"{done.stdout}\n{done.stderr}")
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), lines[-1] if lines else "it said nothing")
