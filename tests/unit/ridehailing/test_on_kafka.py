"""The scenario's programs on a real broker: Locust drives two ingestion pods; what was answered 202 is on the topic."""

import json
import os
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import requests
from confluent_kafka import Consumer, TopicPartition

from lab import event
from lab.kafka import topics
from lab.ridehailing import message
from lab.ridehailing.addresses import Follower
from lab.ridehailing.city import DRIVER, SURGE, TRIP, City
from lab.wait import until

pytestmark = pytest.mark.cluster
PROFILE = {
    "kind": "steps",
    "duration": 6,
    "steps": [{"at": 0, "rate": 20, "phase": "baseline"}, {"at": 3, "rate": 60, "phase": "spike"}],
}


def read_all(bootstrap, topic, partitions):
    """The values of every message of the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    values, ended = [], 0
    while ended < partitions:
        found = consumer.poll(10)
        assert found is not None, "the topic did not end within 10 s"
        if found.error():
            ended += 1
        else:
            values.append(found.value())
    consumer.close()
    return values


@contextmanager
def pod(bootstrap, module, service, **settings):
    """A real pod of a service; yields (its URL, its topic)."""
    run = uuid.uuid4().hex[:8]
    names = {"TOPIC": f"events-{run}", "REPORTS_TOPIC": f"reports-{run}"}
    topics.create(bootstrap, {names["TOPIC"]: 4, names["REPORTS_TOPIC"]: 1})
    around = os.environ | names | {"BOOTSTRAP_SERVERS": bootstrap, "HTTP_PORT": "0", "METRICS_PORT": "0"} | settings
    running = subprocess.Popen([sys.executable, "-m", module], env=around)
    follower = Follower(bootstrap, names["REPORTS_TOPIC"], (service,))
    try:
        assert follower.find(30) == []
        yield follower.known[service].urls[0], names["TOPIC"]
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0
        follower.close()


def test_a_bad_request_is_one_clear_line_and_no_event(bootstrap):
    """422 with the field for a body, 404 for a kind, and only what was answered 202 is on the topic."""
    good = City(1).driver_location(1, 1)
    with pod(bootstrap, "lab.ridehailing.ingestion", "ingestion") as (url, topic):
        paths = {"bad": f"{url}/api/events/{DRIVER}", "unknown": f"{url}/api/events/match"}
        answers = [
            requests.post(paths["bad"], json=good | {"lat": 99}, headers={"Event-Seq": "1"}, timeout=10),
            requests.post(paths["bad"], data="{", headers={"Event-Seq": "2"}, timeout=10),
            requests.post(paths["bad"], data=b"\xff", headers={"Event-Seq": "3"}, timeout=10),
            requests.post(paths["bad"], json=good, timeout=10),
            requests.post(paths["unknown"], json=good, headers={"Event-Seq": "4"}, timeout=10),
            requests.post(paths["bad"], json=good, headers={"Event-Seq": "5"}, timeout=10),
        ]
    assert [answer.status_code for answer in answers] == [422, 422, 422, 422, 404, 202]
    assert "lat: 99 is not allowed; allowed: a number from -90 to 90" in answers[0].json()["error"]
    assert [event.decode(value).seq for value in read_all(bootstrap, topic, 4)] == [5]


def test_riders_wait_for_a_free_driver(bootstrap):
    """Six riders, two drivers at a time, 0.3 s each: the last waits for three turns, and each match is an event."""
    with pod(bootstrap, "lab.ridehailing.matching", "driver-matching", SLOTS="2", MATCH_MS="300") as (url, topic):

        def ask(number):
            body = {"ride_id": f"ride-{number}", "timestamp": 1}
            return requests.post(f"{url}/api/match", json=body, headers={"Event-Seq": str(number)}, timeout=10).json()

        with ThreadPoolExecutor(6) as riders:
            waited = sorted(answer["waited_ms"] for answer in riders.map(ask, range(6)))
        refused = requests.post(f"{url}/api/match", json={"ride_id": "x", "timestamp": 1}, timeout=10)
    assert waited[0] >= 290  # a timer of the event loop may be early by its resolution
    assert waited[-1] >= 800  # more than two turns; it came some milliseconds after the first
    assert refused.status_code == 422
    assert sorted(event.decode(value).seq for value in read_all(bootstrap, topic, 4)) == list(range(6))


@pytest.fixture(scope="module")
def driven(bootstrap):
    """(the reports, the events, the exit codes) of a small run of Locust against two ingestion pods."""
    run = uuid.uuid4().hex[:8]
    events, reports = f"events-{run}", f"reports-{run}"
    topics.create(bootstrap, {events: 4, reports: 1})
    around = os.environ | {"BOOTSTRAP_SERVERS": bootstrap, "TOPIC": events, "REPORTS_TOPIC": reports, "SEED": "7"}

    def start(module, who, **more):
        return subprocess.Popen([sys.executable, "-m", module], env=around | {"HOSTNAME": who} | more)

    ports = {"HTTP_PORT": "0", "METRICS_PORT": "0"}
    pods = [start("lab.ridehailing.ingestion", f"ingestion-{number}", **ports) for number in range(2)]
    follower = Follower(bootstrap, reports, ("ingestion",))
    try:
        until(lambda: follower.follow(0.1) or len(follower.known["ingestion"].urls) == 2, 30, "two pods listen")
        driver = start(
            "lab.ridehailing.traffic", "driver", PROFILE_YAML=json.dumps(PROFILE), ZONES="10", DRIVERS="50", START_IN="4"
        )
        code = driver.wait(60)
    finally:
        for pod in pods:
            pod.send_signal(signal.SIGTERM)
        codes = [pod.wait(20) for pod in pods]
    until(lambda: follower.follow(0.1) or not follower.known["ingestion"].urls, 10, "both said that they leave")
    follower.close()
    said = [json.loads(value) for value in read_all(bootstrap, reports, 1)]
    return said, [event.decode(value) for value in read_all(bootstrap, events, 4)], [code, *codes]


def told(said, name):
    """The reports called ``name``."""
    return [row for row in said if row["event"] == name]


def test_every_answer_202_is_an_event_on_the_topic(driven):
    """The tally's acknowledged are what the topic holds, each number once; nothing failed or is unknown."""
    said, events, codes = driven
    tally = told(said, "produced")[0]
    assert codes == [0, 0, 0]
    assert tally["completed"]
    assert tally["sent"] == tally["acked"] == len(events) > 100
    assert sorted(one.seq for one in events) == list(range(len(events)))


def test_the_driver_reports_like_the_producer(driven):
    """Profile, phases in order and on time, then the tally; and Locust's CSV files."""
    said, _, _ = driven
    start = told(said, "profile")[0]["start"]
    assert [(row["phase"], row["at"] - start) for row in told(said, "phase")] == [("baseline", 0), ("spike", 3)]
    files = {row["name"]: row["text"] for row in told(said, "csv")}
    assert "/api/events/driver-location" in files["stats"]
    assert files["stats_history"].splitlines()[0].startswith("Timestamp,User Count")


def test_both_pods_are_used_and_the_weights_are_the_texts(driven):
    """5 : 3 : 1 within what chance allows."""
    _, events, _ = driven
    kinds = [message.named(one.entity_id)[0] for one in events]
    shares = {kind: kinds.count(kind) / len(kinds) for kind in (DRIVER, TRIP, SURGE)}
    assert shares[DRIVER] == pytest.approx(5 / 9, abs=0.15)
    assert shares[TRIP] == pytest.approx(3 / 9, abs=0.15)
    assert shares[SURGE] == pytest.approx(1 / 9, abs=0.1)


def test_a_surge_update_says_the_truth_of_its_time(driven):
    """The multiplier in the payload is the city's, computed again from the event's own time."""
    said, events, _ = driven
    start = told(said, "profile")[0]["start"]
    city = City(7, 10, 50)
    surges = [one for one in events if message.named(one.entity_id)[0] == SURGE]
    assert surges
    for one in surges:
        zone = message.named(one.entity_id)[1]
        assert json.loads(one.payload)["multiplier"] == pytest.approx(city.multiplier(zone, one.ts / 1e9 - start), abs=0.001)
