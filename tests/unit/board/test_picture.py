"""The picture of the live board: when it is taken, once in each trial, and what a machine without a browser says."""

import threading
from dataclasses import replace
from wsgiref.simple_server import make_server

import pytest

from lab.board import picture
from lab.board.app import Board, create
from lab.errors import LabFault
from lab.record.trial import RUNNING
from lab.wait import until
from tests.unit.board.test_app import Known
from tests.unit.measure import whole
from tests.unit.report import browser

STEPS = [{"at": 0, "rate": 1, "phase": "baseline"}, {"at": 40, "rate": 9, "phase": "spike"}]
LAST = [{"at": 60, "rate": 1, "phase": "drain"}, {"at": 80, "rate": 2, "phase": "drain"}]
SOON_S = 30


def trial(**more):
    """A trial whose last phase is from 60 to 100 s."""
    inputs = whole.inputs(profile={"steps": STEPS + LAST, "duration": 100})
    return whole.trial(inputs, ended=RUNNING, **more)


def test_it_is_due_late_in_the_last_phase():
    """Which may have several steps. A trial without traffic has no such moment yet."""
    assert picture.due(trial(times={"settling": 900.0, "driving": 1000.0})) == 1000 + 60 + 0.9 * 40
    assert picture.due(trial(times={"settling": 900.0})) is None


def test_it_is_taken_once_in_each_trial_that_runs(tmp_path):
    """Not in one of before, nor in one that is over; a picture that fails is no fault of the trial."""

    def begin(name, one):
        (tmp_path / "records" / name).mkdir(parents=True)
        one.write(tmp_path / "records" / name)

    due, taken = trial(times={"driving": 0.0}), []

    def take(folder):
        taken.append(folder.name)
        raise LabFault("the browser broke")

    begin("before", due)
    watch = picture.Watch(tmp_path, take, every_s=0.01)
    begin("over", replace(due, ended="complete"))
    begin("first", due)
    until(lambda: taken == ["first"], SOON_S, "the first picture")
    begin("second", due)
    until(lambda: taken == ["first", "second"], SOON_S, "the second picture")
    watch.stop()
    assert taken == ["first", "second"]


@pytest.mark.parametrize(("lacks", "said"), [("which", "no browser"), ("find_spec", "no board"), ("", "")])
def test_what_is_lacking_is_said(monkeypatch, lacks, said):
    """In words for the page; nothing where all is there."""
    monkeypatch.setattr("shutil.which", lambda name: None if lacks == "which" else name)
    monkeypatch.setattr(picture, "find_spec", lambda _: None if lacks == "find_spec" else object())
    assert picture.lacking().startswith(said)
    assert bool(picture.lacking()) == bool(said)


def test_a_browser_that_fails_takes_none(monkeypatch, tmp_path):
    """It is a fault with the browser's last line, and no empty picture."""
    monkeypatch.setattr(picture, "BROWSERS", ("false",))
    with pytest.raises(LabFault, match="took no picture: its log is empty"):
        picture.shoot(tmp_path, "http://127.0.0.1:1")


@pytest.mark.services
@browser.needed
def test_a_browser_draws_the_board(tmp_path):
    """The picture has what the page drew by its scripts: it is far larger than that of an empty page."""
    server = make_server("127.0.0.1", 0, create(Board(Known(), minutes=5)).server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        drawn = picture.shoot(tmp_path, f"http://127.0.0.1:{server.server_port}").read_bytes()
    finally:
        server.shutdown()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 50_000
