"""A session leaves nothing behind, wherever it crashes and however long it runs: no process, port, network or folder."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from lab import paths
from lab.__main__ import main
from lab.errors import FAULT, HELD, InputError, NoData
from lab.evidence import breached
from lab.host import identity, processes, runs
from lab.judge import gates
from lab.measure.fault_tally import tally, together
from lab.measure.validity import judge_validity
from lab.options import records_folder
from lab.record.rescue import rescue_all
from lab.record.store import Record, find, opened, stored
from lab.record.trial import RUNNING
from lab.wait import until
from tests.experiments.measure.memory import growth_over
from tests.faults.sessions import (
    ENDS_S,
    Session,
    building,
    coming_up,
    going_down,
    gone,
    networks,
    own_cache,
    settling,
    trial_in,
)
from tests.suite import NESTED_S, PROGRAM_S, experiments

pytestmark = pytest.mark.services

judging = trial_in("judging", "^judging$")


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    """A function that starts another session. The sessions of other tests, at the same time, are in another register."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", own_cache(tmp_path))
    started = []

    def start(phase):
        started.append(Session(phase, tmp_path))
        return started[-1]

    yield start
    for session in started:
        session.close()


@pytest.mark.parametrize(
    ("phase", "guarded"),
    [
        (building, True),
        (coming_up, False),
        pytest.param(settling, True, marks=pytest.mark.nightly),
        (trial_in("driving", ": driving$"), True),
        pytest.param(trial_in("driving", ": draining$"), False, marks=pytest.mark.nightly),
        (trial_in("closing", "^closing$"), False),
        pytest.param(judging, False, marks=pytest.mark.nightly),
        (going_down, True),
    ],
    ids=["building", "coming up", "settling", "driving", "draining", "closing", "judging", "going down"],
)
def test_a_session_killed_in_any_phase_leaves_nothing(sessions, phase, guarded, tmp_path):
    """Its guard clears up; where that was killed too, the next start does, and touches no process that isn't the lab's.

    But its trial's record is left, and can be looked at once it is closed with what there is.
    """
    session = phase(sessions)
    session.process.send_signal(signal.SIGSTOP)  # it stays where it is while it is looked at
    watchers, marked, held = session.guards(), session.marked(), session.networks()
    assert len(held) == (phase is not building)
    started = [one for one in psutil.process_iter() if one.pid in marked]
    started += [one for one in psutil.Process(session.process.pid).children(recursive=True) if one not in watchers]
    assert len(started) >= 2
    assert len(watchers) == 1
    if not guarded:
        watchers[0].kill()
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        session.kill()
        until(lambda: gone(watchers), ENDS_S, "the guard has ended")
        assert guarded != bool(session.marked())
        runs.sweep()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert not session.marked()
    assert not session.folders()
    until(lambda: gone(started), ENDS_S, "what the session started is gone")
    assert not held & networks().keys()
    for folder in tmp_path.glob("records/*"):
        ended = Record(folder).trial.ended
        rescue_all(folder, lambda: pytest.fail("no ledger was ingested"))
        record = opened(folder)
        assert record.trial.ended.startswith("killed: " if ended == RUNNING else ("complete", "deadline"))
        missing = record.trial.missing
        assert not missing if phase is judging else missing["ledger"].endswith("the topic is gone with its broker")
        assert len(record.transitions) > 5 or phase is settling
        assert record.trial.begun <= record.end <= record.trial.finished
        assert main(["judge", str(folder)]) == 0


def test_a_full_disk_is_one_line_and_leaves_nothing(sessions):
    """The components can write no more than 64 KiB into a file: no cluster comes up, and what had come up is ended."""
    session = sessions("full disk")
    assert session.says("^fault: ")
    assert session.process.wait(ENDS_S) == 1
    assert not session.marked()
    assert not session.folders()


@pytest.mark.nightly
def test_a_disk_that_gets_full_in_a_trial_is_a_fault_of_the_lab(sessions, tmp_path):
    """The trial ends at once, and its record is a part that can be looked at."""
    session = sessions("full record")
    assert "could not be kept: [Errno 27] File too large" in session.says("^fault: ")
    (folder,) = tmp_path.glob("records/*")
    record = opened(folder)
    assert record.trial.ended.startswith("fault: ")
    assert not record.finished
    assert main(["judge", str(folder)]) == 0


def test_a_kept_cluster_outlives_its_session_until_it_is_told(sessions):
    """Its session, its guard and every sweep pass it by, and its network stays its own. It came up at its second attempt."""
    session = sessions("kept")
    assert session.says("^(etcd|kafka) found its port taken: ") == "starting again (2 of 3)"  # whichever chose first
    run = Path(session.says("^up "))
    _, address, _, settings = session.says("^Kafka: ").split()
    assert session.process.wait(ENDS_S) == 0
    login = json.loads(Path(settings).read_text())
    assert AdminClient(login | {"bootstrap.servers": address}).list_topics(timeout=ENDS_S).brokers  # to a login
    found = processes.remembered(run)
    assert session.folders() == [run]
    assert runs.sweep() == 0
    assert len(found) >= 11
    held = session.networks()
    assert len(held) == 1
    down = subprocess.run([sys.executable, "-m", "lab", "down"], capture_output=True, text=True, timeout=PROGRAM_S, check=True)
    assert re.match("[1-9][0-9]* clusters ended", down.stdout)
    assert gone(found)
    assert not session.marked()
    assert not session.folders()
    assert not held & networks().keys()


def test_an_interrupted_trial_leaves_its_partial_record(tmp_path, capsys):
    """Ctrl-C in the middle of a spike: the record holds all that was consumed until then, and no process is left."""
    command = experiments("-k", "a_10x_spike_is_absorbed", f"--results={tmp_path}")
    said = tmp_path / "session.log"
    with said.open("wb") as output:
        # As in a terminal: what runs in a shell's background is started with SIGINT ignored, and hands that on.
        heeding: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(command, cwd=paths.PROJECT, stdout=output, stderr=subprocess.STDOUT, **heeding)

    def driving():
        assert process.poll() is None, said.read_text()[-2000:]
        return any('"phase": "spike"' in file.read_text() for file in tmp_path.glob("records/*/group_events.jsonl"))

    try:
        until(driving, NESTED_S, "the spike began")
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(NESTED_S) == 2
    finally:
        process.kill()
    assert len(started) >= 11
    until(lambda: gone(started), ENDS_S, "what the session started is gone")
    (folder,) = tmp_path.glob("records/*")
    record = opened(folder)
    assert (record.trial.ended, record.trial.missing) == ("interrupted", {}), said.read_text()[-2000:]
    assert record.driven < record.end
    assert len(record.transitions) > 10
    assert len(record.samples) > 100
    assert {"profile", "assigned"} <= set(record.group_events["event"])
    settled = record.reconciliation
    assert settled.produced == settled.processed + settled.unseen_messages > 20_000
    assert settled.processed > 5_000
    assert (settled.lost_messages, settled.phantom_messages, settled.mismatched_receipts) == (0, 0, 0)
    assert sum(part.committed or 0 for part in record.offsets.values()) <= settled.processed
    with pytest.raises(InputError, match="ended: 'interrupted'"):
        find(tmp_path, record.id)
    assert main(["judge", str(folder)]) == 0
    assert f"{record.id}: only a part of a trial: interrupted" in capsys.readouterr().out


def test_a_reused_pid_is_left_alone(tmp_path):
    """A pid whose start is not the recorded one belongs to someone else; so does one from before the machine was started."""
    own = identity.identify(os.getpid())
    (tmp_path / "pids").mkdir()
    for change in ({"ticks": own.ticks - 1}, {"boot": "another"}):
        (tmp_path / "pids" / str(own.pid)).write_text(json.dumps({"name": "x", **vars(own), **change}))
        assert processes.remembered(tmp_path) == []
    (tmp_path / "pids" / str(own.pid)).write_text(json.dumps({"name": "x", **vars(own)}))
    assert [process.pid for process in processes.remembered(tmp_path)] == [own.pid]


FLOORS = (4, 0)
TWO_FLOORS = [f"tests/experiments/test_faults.py::test_a_group_comes_through_faults[{floor}-1]" for floor in FLOORS]
BLOCK_MIN = 4.5  # a trial on either floor at quick
# The lab's own, an invariant: what grows by a quarter from the middle third of two hours to the last doubles in two more.
FLAT = 1.25
BAD = ("lost", "unseen", "unexplained", "untold")  # of messages, and of trials


@pytest.mark.live
def test_hours_of_bursts_under_faults_leave_nothing_and_grow_no_memory(tmp_path, monkeypatch, pytestconfig):
    """``tox -e soak``: one session of such trials, each with other faults: no process, folder or file is left, no message lost.

    On either floor no kind of process has more memory, or more processes, in the last third of the trials than in the middle,
    but for FLAT. A trial that the machine disturbed is run again, and counts here with both; the others keep what must hold.
    With ``--from-records=DIR`` nothing runs, and the records of an earlier soak, which may have ended early, are judged.
    """
    earlier, minutes = (pytestconfig.getoption(name) for name in ("lab_from_records", "soak"))
    blocks = max(1, round(minutes / BLOCK_MIN))
    results = records_folder(earlier) if earlier else pytestconfig.getoption("lab_results").resolve()
    wrong: dict[str, Any] = {}
    if not earlier:
        scratch = tmp_path / "tmp"
        scratch.mkdir()
        monkeypatch.setenv("ELASTIC_LAB_CACHE", own_cache(tmp_path))
        monkeypatch.setenv("TMPDIR", str(scratch))
        command = experiments("-m", "faults", f"--repeat={blocks}", f"--results={results}", tests=TWO_FLOORS)
        process = subprocess.Popen(command, cwd=paths.PROJECT)
        try:
            code = process.wait(2 * 60 * minutes + NESTED_S)
        finally:
            process.kill()
            process.wait()
        left = {
            "folders": [one.name for one in paths.state_dir().glob("*-*")],
            "processes": [pid for run, pids in identity.marked().items() if run.is_relative_to(tmp_path) for pid in pids],
            "files": [one.name for one in scratch.iterdir() if not one.name.startswith("pytest-of-")],
        }
        wrong |= {name: some for name, some in left.items() if some}
        # A fault also where a trial stayed invalid; one that broke is missing.
        wrong |= {} if code in (HELD, FAULT) else {"exit code": code}
    wrong |= wrong_in(results, len(TWO_FLOORS) * blocks)
    assert not wrong, wrong


def wrong_in(results, least):
    """What the finished trials among the records in ``results`` show that must not be; there are to be ``least`` of them."""
    ended = [one for one in map(Record, stored(results).values()) if one.finished and one.trial.files]
    records = sorted((opened(one.folder) for one in ended), key=lambda one: one.trial.begun)
    wrong: dict[str, Any] = {} if len(records) >= least else {"trials": f"{len(records)} finished, of {least}"}
    tallies = []
    for one in records:
        tallies.append(tally([one]))
        said = breached(one)
        if said is None and not gates.reason(judge_validity(one)):
            said = ["no data for what must hold"]
        wrong |= {one.name: said} if said else {}
        one.release()
    told = together(tallies)
    wrong |= {name: told[name] for name in BAD if told[name]}
    for floor in FLOORS:
        try:
            grown = growth_over([one for one in records if one.policy.min_replicas == floor])
        except NoData as missing:
            wrong[f"memory from {floor} pods"] = str(missing)
        else:
            wrong |= {f"{name}, from {floor} pods": times for name, times in grown.items() if times > FLAT}
    return wrong
