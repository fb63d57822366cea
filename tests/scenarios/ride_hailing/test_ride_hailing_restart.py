"""Ride-hailing: is the pipeline's table whole after its driver was killed in the middle of a batch (docs/ride-hailing.md)?

Hypothesis. The file sink's log makes a batch visible whole or not at all, and a driver that starts again goes on from the
checkpoint. So a SIGKILL in a batch costs no event and doubles none.

Method. Events as the group emits them, every tenth twice. The driver is killed in a batch that it has begun (its offsets are
in the checkpoint) and not ended (no commit): once at its beginning, twice with rows written that are not in the table. It is
started again on the same folder. Spark runs in the driver's process, and on a ``local-cluster``.

Asserted. Each kill came in a batch. Files of killed batches are there, and not in the table. The table has every event once.

Refuted by one event missing or doubled.
"""

import os
import signal
import sys
import uuid
from functools import partial

import allure
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from lab import paths
from lab.host import processes, runs
from lab.kafka import event, topics
from lab.wait import until
from tests.scenarios.ride_hailing.programs import dashboard, sinklog
from tests.scenarios.ride_hailing.programs.pipeline import Table
from tests.scenarios.ride_hailing.programs.surge import DRIVER, payload

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

PROGRAM = "tests.scenarios.ride_hailing.programs.pipeline"
PARTITIONS, ROUND = 4, 400  # events in each round; a round ends with a kill
BEGUN, WRITTEN = "begun", "written"
KILLS = (BEGUN, WRITTEN, WRITTEN)  # how far the batch was
START_S = 300.0  # of a driver with its JVM, on a busy machine
LOOK_S = 0.002


class Driver:
    """The pipeline's driver as a process of ``run``, on the topic ``topic`` and the folder ``storage``."""

    def __init__(self, run, bootstrap, topic, storage, master):
        self._run = run
        self._given = {"BOOTSTRAP_SERVERS": bootstrap, "OUTPUT_TOPIC": topic, "STORAGE": str(storage), "TRIGGER_MS": "0"}
        self._given |= {"MASTER": master, "POD_IP": "127.0.0.1"}
        self.table = Table(storage)

    def start(self):
        """Start it, without waiting."""
        (port,) = processes.free_ports(1)
        around = os.environ | self._given | {"METRICS_PORT": str(port)}
        self.process = processes.start(self._run, "driver", [sys.executable, "-m", PROGRAM], around, paths.PROJECT).process

    def kill(self):
        """SIGKILL it and its JVM, which is a process of its own, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def check(self):
        """A driver that has ended by itself is a fault of the pipeline."""
        assert self.process.poll() is None, "the driver has ended"

    def batches(self):
        """(the last batch that was begun, the last that was ended), -1 for none."""
        folders = (self.table.checkpoint / name for name in ("offsets", "commits"))
        return tuple(max((int(file.name) for file in folder.glob("[0-9]*")), default=-1) for folder in folders)

    def reached(self, stage, after, earlier):
        """Whether a batch after batch ``after`` has come as far as ``stage``; ``earlier`` are the orphans of killed batches."""
        begun, _ = self.batches()
        return begun > after and (stage == BEGUN or bool(self.orphans() - earlier))

    def orphans(self):
        """The files of rows that are not in the table."""
        files, _ = sinklog.table(self.table.rows) or (set(), 0.0)
        return set(self.table.rows.glob("*.parquet")) - files


class Topic:
    """A topic of emitted events on a real broker."""

    def __init__(self, bootstrap):
        self.name = f"output-{uuid.uuid4().hex[:8]}"
        topics.create(bootstrap, {self.name: PARTITIONS})
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self.sent = 0

    def add(self, count):
        """Send ``count`` events more; every tenth is sent twice, as a group does that lost a commit."""
        for number in range(self.sent, self.sent + count):
            partition, offset = number % PARTITIONS, number // PARTITIONS
            content = event.encode(1, number, (1_700_000_000 + number) * 10**9, payload(DRIVER, number % 6))
            value = event.emitted(content, partition, offset, 1_700_000_000 + number)
            for _ in range(1 + (number % 10 == 0)):
                self._producer.produce(self.name, value=value, partition=partition)
        self._producer.flush(30)
        self.sent += count


@pytest.fixture
def run():
    """A run whose processes end with the test, and with a session that dies."""
    with runs.guarded() as own:
        yield own


@allure.story("A driver that is killed")
@pytest.mark.parametrize("master", ["local[2]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.extended)])
def test_the_table_is_whole_after_kills_in_the_middle_of_a_batch(run, kafka, tmp_path, evidence, master):
    """Kill after kill in a batch under way; then the table beside what was sent."""
    topic = Topic(kafka.bootstrap)
    driver = Driver(run, kafka.bootstrap, topic.name, tmp_path, master)
    kills = []
    for stage in KILLS:
        after, earlier = driver.batches()[0], driver.orphans()
        topic.add(ROUND)
        driver.start()
        until(partial(driver.reached, stage, after, earlier), START_S, f"a batch {stage}", driver.check, LOOK_S)
        driver.kill()
        kills.append(driver.batches())
    orphans = driver.orphans()
    topic.add(ROUND)
    driver.start()
    reader = dashboard.Reader(driver.table.rows)
    until(partial(caught_up, reader, topic.sent), START_S, "every event in the table", driver.check)
    driver.process.send_signal(signal.SIGTERM)
    assert driver.process.wait(60) == 0
    files, _ = sinklog.table(driver.table.rows) or (set(), 0.0)
    content = (row for file in files for row in pq.read_table(file).to_pylist())
    found = [(row["partition"], row["offset"], row["seq"]) for row in content]
    evidence.report(master, {"kills": len(kills), "files of killed batches": len(orphans), "events": len(found)})

    assert all(begun > ended for begun, ended in kills)
    assert len(orphans) >= KILLS.count(WRITTEN)
    assert orphans <= driver.orphans()
    assert sorted(found) == sorted((number % PARTITIONS, number // PARTITIONS, number) for number in range(topic.sent))


def caught_up(reader, events):
    """Read what is new; whether the reader has so many ``events``."""
    for _ in reader.take():
        pass
    return reader.board.rows >= events
