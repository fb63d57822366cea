"""A picture of the live board, which this machine's own browser takes in a trial; it becomes a file of the trial's record.

It is taken once in each trial, late in its last phase. By then the scaling is over, and the board shows all of it. Board and
browser run at the lowest priority: they take what the trial leaves.
"""

from __future__ import annotations

import logging
import math
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from lab import clock
from lab.errors import InputError, LabFault
from lab.host import processes, runs
from lab.record import store
from lab.record import trial as trials
from lab.record.store import BOARD
from lab.record.trial import RUNNING, Trial
from lab.wait import until

log = logging.getLogger("lab.board")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LATE = 0.9  # of the last phase
LOOK_S = 2.0
BOARD_S, BROWSER_S = 60.0, 120.0
ALL_MINUTES = 720  # the board shows no more than the trial has
IDLE = ("nice", "-n", "19")
# The virtual time ends before the page asks a second time; it stands still while an answer is awaited.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1400,960",
    "--virtual-time-budget=1900",
)


def browser() -> str | None:
    """The path of a browser that takes pictures; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def lacking() -> str:
    """What this machine lacks to take a picture; "" where it has all."""
    if browser() is None:
        return f"no browser: none of {', '.join(BROWSERS)} is on PATH"
    return "" if find_spec("dash") else "no board: pip install 'elastic-lab[board]'"


def due(trial: Trial) -> float | None:
    """When the picture of ``trial`` is to be taken, epoch s; None before its traffic begins."""
    begun = trial.times.get("driving")
    start, end, _ = trial.inputs.profile.phases()[-1]
    return None if begun is None else begun + start + LATE * (end - start)


class Watch:
    """Has ``take`` called once with the folder of each trial that runs under ``results``, when it is due, until :meth:`stop`.

    A picture that can't be taken is a warning: no trial fails by it.
    """

    def __init__(self, results: Path, take: Callable[[Path], None] | None = None, every_s: float = LOOK_S) -> None:
        self._results, self._take, self._every_s = results, take or take_picture, every_s
        self._over = threading.Event()
        self._past = set(store.stored(results))
        self._due: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch, name="board", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no further picture."""
        self._over.set()
        self._thread.join(BOARD_S + BROWSER_S)

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                for name, folder in store.stored(self._results).items():
                    if name not in self._past:
                        self._look(name, folder)
            except (LabFault, InputError, OSError, subprocess.SubprocessError) as error:
                log.warning("the live board's picture is not taken: %s", error)

    def _look(self, name: str, folder: Path) -> None:
        if name not in self._due and (at := due(trials.read(folder))) is not None:
            self._due[name] = at
        if clock.now() >= self._due.get(name, math.inf):
            self._past.add(name)
            if trials.read(folder).ended == RUNNING:
                self._take(folder)


def take_picture(folder: Path) -> None:
    """Put a picture of the live board into the record of the running trial in ``folder``; none once that is being closed.

    Raises :class:`LabFault` where the board does not come up, or the browser fails or takes too long.
    """
    with runs.guarded() as run:
        (port,) = processes.free_ports(1)
        command = [sys.executable, "-m", "lab.board", "--port", str(port), "--minutes", str(ALL_MINUTES)]
        board = processes.start(run, "board", [*IDLE, *command])
        until(lambda: _listens(port), BOARD_S, "the live board listens", board.check)
        drawn = shoot(run, f"http://127.0.0.1:{port}")
        board.check()  # of a board that died a browser shows its own page
        if trials.read(folder).ended == RUNNING:  # it is sealed some seconds later
            partial = folder / f".{BOARD}"
            shutil.copy(drawn, partial)
            partial.replace(folder / BOARD)
            log.info("%s: the live board's picture is taken", folder.name)


def shoot(run: Path, address: str) -> Path:
    """The picture of the page at ``address``, a PNG in the folder ``run``. Raises :class:`LabFault` where there is none."""
    drawn = run / BOARD
    own = [f"--user-data-dir={run / 'browser'}", f"--screenshot={drawn}", address]
    started = processes.start(run, "browser", [*IDLE, browser() or BROWSERS[0], *FLAGS, *own])
    try:
        started.process.wait(BROWSER_S)
    except subprocess.TimeoutExpired:
        raise LabFault(f"the browser took no picture within {BROWSER_S:g} s") from None
    if not drawn.is_file():
        raise LabFault(f"the browser took no picture: {processes.last_line(started.log)}")
    return drawn


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
