"""The live board's page, asked as a browser asks it, over a Prometheus that is made up; and the picture that is taken of it."""

import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from wsgiref.simple_server import make_server

import pytest

from lab.board import app, picture
from lab.board.app import NEWEST, Board, create
from lab.board.panels import MARKS, PANELS
from lab.board.source import Series
from lab.errors import LabFault
from lab.record.trial import RUNNING
from lab.wait import until
from tests.unit.measure import whole
from tests.unit.report import browser

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The board's clock stands: on a busy machine a live trial would be over before its page is drawn."""
    standing = SimpleNamespace(time=lambda: NOW, strftime=time.strftime, localtime=time.localtime)
    monkeypatch.setattr(app, "time", standing)


class Known:
    """A source that knows two trials, and answers every panel with one series; ``fails`` makes it unreachable."""

    def __init__(self):
        self.known = {"trial-new": (NOW - 60, NOW), "trial-old": (NOW - 900, NOW - 800)}
        self.fails = False

    def trials(self):
        """The trials."""
        if self.fails:
            raise LabFault("Prometheus at http://127.0.0.1:1 does not answer: ConnectionError")
        return self.known

    def panel(self, panel, window):
        """One series for each query."""
        return [Series(query.legend, query, [window.start], [1.0]) for query in panel.queries]

    def marks(self, window):
        """A moment of each mark."""
        return {mark: [window.start + number] for number, mark in enumerate(MARKS)}


@pytest.fixture
def source():
    """What the board asks."""
    return Known()


@pytest.fixture
def ask(source):
    """Opens the page, then sends what a tick of it sends; returns the updates by id."""
    browser = create(Board(source, minutes=5)).server.test_client()
    (callback,) = json.loads(browser.get("/_dash-dependencies").data)

    def tick(chosen=NEWEST):
        names = [name.split(".") for name in callback["output"].strip(".").split("...")]
        values = {"tick": 1, "namespace": chosen}
        body = {
            "output": callback["output"],
            "outputs": [{"id": name, "property": what} for name, what in names],
            "inputs": [item | {"value": values[item["id"]]} for item in callback["inputs"]],
            "changedPropIds": ["tick.n_intervals"],
        }
        return json.loads(browser.post("/_dash-update-component", json=body).data)["response"]

    return tick


def test_a_tick_draws_every_panel(ask):
    """Each graph gets its figure, the status names the trial, and the moments are told."""
    found = ask()
    assert sum(bool(change.get("figure", {}).get("data")) for change in found.values()) == len(PANELS)
    assert found["status"]["children"].startswith("trial-new, live")
    assert len(found["moments"]["children"]) == len(MARKS)


def test_an_earlier_trial_can_be_chosen(ask):
    """The list holds every trial, and the one chosen is shown to its end."""
    options = ask()["namespace"]["options"]
    assert [option["value"] for option in options] == [NEWEST, "trial-new", "trial-old"]
    assert ask("trial-old")["status"]["children"].startswith("trial-old, over")


def test_what_is_not_there_is_said_and_leaves_the_page(ask, source):
    """Before the first trial, and when Prometheus goes away: the status says so, and the graphs keep what they show."""
    source.known = {}
    assert ask() == {"status": {"children": "no trial has data yet"}}
    source.fails = True
    assert ask() == {"status": {"children": "Prometheus at http://127.0.0.1:1 does not answer: ConnectionError"}}


def test_the_page_loads_nothing_from_elsewhere(source):
    """Every script and style is served by this process."""
    page = create(Board(source, minutes=5)).server.test_client().get("/").data.decode()
    assert "http://" not in page
    assert "https://" not in page


def test_a_page_that_gives_its_name_this_address_reads_nothing(source):
    """Its browser says the name."""
    browser = create(Board(source, minutes=5)).server.test_client()
    answers = {name: browser.get("/", base_url=f"http://{name}").status_code for name in ("localhost:8050", "rebound.example")}
    assert answers == {"localhost:8050": 200, "rebound.example": 403}


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
