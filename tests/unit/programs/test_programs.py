"""The programs: a bad flag is one line, exit code 2 and nothing started; the producer, the same twice; who is signalled."""

import json
import os
import socket
import subprocess
import sys
import uuid
from itertools import pairwise

import pytest

from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
from lab.programs.consumer.__main__ import pin
from lab.programs.signaller import first_process
from tests.suite import refused
from tests.unit.programs.consumer.messages import read_all


@pytest.mark.parametrize(
    ("program", "flags", "flag"),
    [
        ("consumer", ["--bootstrap-servers=127.0.0.1:9"], "metrics-port"),
        ("producer", ["--bootstrap-servers=127.0.0.1:9"], "metrics-port"),
        ("lagscaler", ["--grpc-port=0"], "metrics-port"),
        ("lagscaler", ["--metrics-port=0"], "grpc-port"),  # which two processes could otherwise share unnoticed
    ],
)
def test_a_port_in_use_is_one_clear_line(program, flags, flag):
    """The flag, the port and what is allowed; exit code 2, before any work."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", f"lab.programs.{program}", *flags, f"--{flag}={port}"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    line = next(line for line in ran.stderr.splitlines() if "lab." in line)
    assert ran.returncode == 2
    assert f"argument --{flag}: {port} is not allowed; allowed: a free port of --pod-ip" in line


X = "--bootstrap-servers=x"
SEVERAL = (
    "command line: --topic-partitions: 0 is not allowed; allowed: 1 to 10,000 with --topics 2"  # their partitions' numbers
)


@pytest.mark.parametrize(
    ("program", "arguments", "environment", "line"),
    [
        ("consumer", [X, "--process-ms=0"], {}, "argument --process-ms: '0' is not allowed"),
        ("consumer", [X], {"BALANCER": "fair"}, "argument --balancer: 'fair' is not allowed"),
        ("consumer", [X, "--retry-ms=1,2,x"], {}, "argument --retry-ms: '1,2,x' is not allowed"),
        ("consumer", [X], {"POISON": "3"}, "argument --poison: '3' is not allowed; allowed: PARTITION:"),
        ("consumer", [X, "--fail-rate=2"], {}, "argument --fail-rate: '2' is not allowed"),
        ("consumer", [X, "--fail-rate=0.6", "--poison-rate=0.5"], {}, "poison_rate: 0.5 is not allowed; allowed: at most 1 - "),
        ("consumer", [X, "--topics=2"], {}, SEVERAL),
        ("consumer", [X, "--cpus=0,9999"], {}, "command line: --cpus: 9999 is not allowed; allowed: the cores of this"),
        ("consumer", [X, "--cpus=0-1"], {}, "argument --cpus: '0-1' is not allowed; allowed: numbers of cores with commas"),
        ("consumer", [], {}, "--bootstrap-servers"),
        ("producer", [X, "--rate=-5"], {}, "argument --rate: '-5' is not allowed"),
        ("producer", [X, "--profile=nowhere.yaml"], {}, "nowhere.yaml: No such file"),
        ("producer", [X, "--spike-hold=5000"], {}, "spike_hold: 5000.0 is not allowed"),
        ("producer", [X], {"PROFILE_YAML": "kind: ["}, "PROFILE_YAML:2: no YAML"),
        ("producer", [X, "--topics=2"], {}, SEVERAL),
        ("exporter", [X, "--metrics-port=99999"], {}, "argument --metrics-port: '99999'"),
        ("exporter", [X, "--topics=2"], {}, SEVERAL),
    ],
)
def test_a_bad_flag_is_one_clear_line(program, arguments, environment, line):
    """Flag, variable, value and what is allowed; exit code 2."""
    assert line in refused(f"lab.programs.{program}", arguments, environment)


def test_a_consumer_runs_on_its_cores():
    """On those that it is given, and without any on all that it has."""
    there = os.sched_getaffinity(0)
    try:
        pin(())
        assert os.sched_getaffinity(0) == there
        pin({min(there)})
        assert os.sched_getaffinity(0) == {min(there)}
    finally:
        os.sched_setaffinity(0, there)


EVENTS = 6_000
HANG_S = 120  # for what takes some seconds on a quiet machine: it only ends a test that hangs


def produce(bootstrap, *flags):
    """Run the producer at 3,000 events/s for two seconds; returns its exit code, its topic, and its reports."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"reports-{name}": 1})
    command = [sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={bootstrap}", f"--topic=events-{name}"]
    command += [f"--reports-topic=reports-{name}", "--profile=steady", "--rate=3000", "--duration=2", "--entities=1000", *flags]
    ran = subprocess.run(command, timeout=HANG_S, capture_output=True, check=False)
    reports = [json.loads(one.value()) for one in read_all(bootstrap, f"reports-{name}")]
    return ran.returncode, f"events-{name}", reports


@pytest.fixture(scope="module")
def produced(bootstrap):
    """One run of the producer with seed 7: its exit code, topic, and reports, and all events."""
    code, topic, reports = produce(bootstrap, "--partitions=4", "--seed=7")
    return code, topic, reports, read_all(bootstrap, topic, range(4))


def identities(messages, numbered=lambda one: one.partition()):
    """(number of the partition, entity_id, seq) of every event in order of seq."""
    return sorted(((numbered(one), *event.decode(one.value())[:2]) for one in messages), key=lambda row: row[2])


def test_what_is_produced_is_what_was_due_and_acknowledged(produced):
    """All events of the profile, each once, at the profile's due time, acknowledged, and the tally says so."""
    code, _, reports, messages = produced
    told = {name: reports[-1][name] for name in ("event", "sent", "acked", "unknown", "failed")}
    assert told == {"event": "produced", "sent": EVENTS, "acked": EVENTS, "unknown": 0, "failed": 0}
    assert code == 0
    assert [seq for _, _, seq in identities(messages)] == list(range(EVENTS))
    assert all(one.key() == event.KEY.pack(event.decode(one.value()).entity_id) for one in messages)
    stamps = sorted(event.decode(one.value()).ts for one in messages)
    assert all(abs(later - earlier - 1e9 / 3000) < 2_000 for earlier, later in pairwise(stamps))


def test_the_same_seed_gives_the_same_events(bootstrap, produced):
    """A second run sends the same entities with the same seqs to the same partitions; another seed does not.

    On two topics an event has the number that it has on one: the client's own choice among four partitions is the lab's among
    two times two.
    """
    _, topic, _ = produce(bootstrap, "--seed=7", "--topics=2", "--topic-partitions=2", "--partitions=2")
    on = Numbering((topic, f"{topic}-2"), 2)
    again = [one for part in on.topics for one in read_all(bootstrap, part, range(on.each))]
    assert identities(again, lambda one: on.number(one.topic(), one.partition())) == identities(produced[3])
    ends = {number: part.end for number, part in LagReader(bootstrap, topic, on).read().items()}
    assert ends == {number: part.end for number, part in LagReader(bootstrap, topic, produced[1]).read().items()}
    _, other, _ = produce(bootstrap, "--seed=8", "--partitions=4")
    assert identities(read_all(bootstrap, other, range(4))) != identities(produced[3])


OURS, PAUSE = "4:cpu:/\n", "4:cpu:/../pause\n"


@pytest.fixture
def proc(tmp_path):
    """Writes processes as the kernel shows them: number, command, parent and cgroup."""

    def write(*rows):
        (tmp_path / "self").mkdir()
        for pid, command, parent, cgroup in rows:
            folder = tmp_path / str(pid)
            folder.mkdir()
            (folder / "stat").write_text(f"{pid} ({command}) S {parent} {pid} {pid} 0 -1")
            (folder / "cgroup").write_text(cgroup)
        return tmp_path

    return write


def test_the_first_process_is_neither_the_pods_nor_a_child_nor_the_signaller(proc):
    """The pod's pause process has another cgroup; a child has a parent; a command may hold any signs; one has just ended."""
    found = proc((1, "pause", 0, PAUSE), (7, "py (x) 0 0", 0, OURS), (9, "child", 7, OURS), (20, "python", 0, OURS))
    (found / "8").mkdir()
    assert first_process(20, found) == 7


@pytest.mark.parametrize("others", [[], [(7, "one", 0, OURS), (8, "two", 0, OURS)]])
def test_none_and_two_are_refused(proc, others):
    """A signal to a guess would be one to another process."""
    found = proc(*others, (20, "python", 0, OURS))
    with pytest.raises(LookupError, match=f"one first process is expected in this container, there are {len(others)}"):
        first_process(20, found)
