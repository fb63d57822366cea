"""The scenario's programs on a real broker: Locust drives two ingestion pods; what was answered 202 is on the topic."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from threading import Barrier, Event
from urllib.parse import urlsplit

import pytest
import requests
from confluent_kafka import Producer

from lab import paths
from lab.host.processes import free_ports
from lab.kafka import event, topics
from lab.programs.telemetry import Reports
from lab.wait import until
from tests.scenarios.ride_hailing.programs import message, traffic
from tests.scenarios.ride_hailing.programs.addresses import LISTENING, Follower, bearer
from tests.scenarios.ride_hailing.programs.city import DRIVER, SURGE, WEIGHTS, City
from tests.unit.programs.consumer.messages import read_all

pytestmark = pytest.mark.services
PROGRAMS = "tests.scenarios.ride_hailing.programs"
TOKEN = "of-this-trial"
OURS = bearer(TOKEN)
STARTS_S, ENDS_S, ANSWERS_S = 120, 120, 60  # on a machine that runs other tests too
LINGER_S = 3  # of a pod that lets a client hear that it leaves: longer than a busy machine takes for that
# A closed loop waits for its answers, so a busy machine makes fewer events of it. Paced users send all, later.
STEPS = [{"at": 0, "rate": 30, "phase": "baseline"}, {"at": 6, "rate": 90, "phase": "spike"}]
PROFILE = {"kind": "steps", "duration": 12, "steps": STEPS}
USERS = CLOSED, PACED = "EventProducer", "PacedProducer"


def values(bootstrap, topic, partitions=4):
    """The values of every message of the topic."""
    return [one.value() for one in read_all(bootstrap, topic, range(partitions))]


def lingering(module):
    """The command of a service's ``module`` that lingers for LINGER_S."""
    said = f"from {PROGRAMS} import service; service.LINGER_S = {LINGER_S}; from {module} import main"
    return [sys.executable, "-c", f"import sys; {said}; sys.exit(main())"]


def ride(number):
    """(the body, the headers) of a request for a driver."""
    return {"ride_id": f"ride-{number}", "timestamp": 1}, OURS | {"Event-Seq": str(number), "Content-Type": "application/json"}


def named(bootstrap):
    """The environment of programs on topics of a run's own."""
    run = uuid.uuid4().hex[:8]
    names = {"TOPIC": f"events-{run}", "REPORTS_TOPIC": f"reports-{run}"}
    topics.create(bootstrap, {names["TOPIC"]: 4, names["REPORTS_TOPIC"]: 1})
    return names | {"BOOTSTRAP_SERVERS": bootstrap, "HTTP_PORT": "0", "METRICS_PORT": "0", "SERVICE_TOKEN": TOKEN}


@contextmanager
def pod(bootstrap, command, service, **settings):
    """A real pod of a service, a module or a command; yields (its URL, its topic)."""
    names = named(bootstrap)
    command = [sys.executable, "-m", command] if isinstance(command, str) else command
    running = subprocess.Popen(command, env=os.environ | names | settings, cwd=paths.PROJECT)
    follower = Follower(bootstrap, names["REPORTS_TOPIC"], (service,))
    try:
        follower.find(STARTS_S)
        yield follower.known[service].urls[0], names["TOPIC"]
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(ENDS_S) == 0
        follower.close()


def test_a_bad_request_is_one_clear_line_and_no_event(bootstrap):
    """422 with the field for a body, 404 for a kind, never a 500, which would be of unknown fate; all are counted.

    A page of a browser gets 403. Only what was answered 202 is on the topic.
    """
    (metrics,) = free_ports(1)
    good = City(1).driver_location(1, 1)
    with pod(bootstrap, f"{PROGRAMS}.ingestion", "ingestion", METRICS_PORT=str(metrics)) as (url, topic):

        def ask(seq, kind=DRIVER, media="application/json", **body):
            headers = OURS | {"Content-Type": media} | ({"Event-Seq": str(seq)} if seq else {})
            return requests.post(f"{url}/api/events/{kind}", headers=headers, timeout=ANSWERS_S, **body)

        wrong = ask(1, json=good | {"lat": 99})
        unread = [ask(2, data="{"), ask(3, data=b"\xff"), ask(None, json=good)]
        unread += [ask(6, data=b"[" * 4000), ask(7, data=b"{}", media="application/json; charset=none")]  # the first: too deep
        others = [ask(4, kind="match", json=good), ask(8, data=b" " * 5000), ask(5, json=good)]
        browser = OURS | {"Event-Seq": "9", "Origin": "http://elsewhere.example"}
        page = requests.post(f"{url}/api/events/{DRIVER}", json=good, headers=browser, timeout=ANSWERS_S)
        refused = counted(metrics, "refused")
    assert "lat: 99 is not allowed; allowed: a number from -90 to 90" in wrong.json()["error"]
    assert {answer.status_code for answer in (wrong, *unread)} == {422}
    assert [answer.status_code for answer in others] == [404, 413, 202]
    assert page.status_code == 403
    assert refused == len(unread) + 3
    assert [event.decode(value).seq for value in values(bootstrap, topic)] == [5]


STRANGERS = [None, TOKEN, "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}s", f"Basic {TOKEN}", b"Bearer \xff"]


@pytest.mark.parametrize("module", ["ingestion", "matching", "riders"])
def test_a_strangers_write_is_refused(bootstrap, module):
    """401 to one who has not been given the trial's token, on each path; what has it is answered, and alone is on the topic."""
    service = {"ingestion": "ingestion", "matching": "driver-matching", "riders": "rider-api"}[module]
    method, path, body = {
        "ingestion": ("POST", f"/api/events/{DRIVER}", City(1).driver_location(1, 1)),
        "matching": ("POST", "/api/match", ride(1)[0]),
        "riders": ("GET", "/api/quote?ride=1", None),
    }[module]
    with pod(bootstrap, f"{PROGRAMS}.{module}", service) as (url, topic):

        def ask(shown, path=path):
            headers = {"Event-Seq": "1"} | ({} if shown is None else {"Authorization": shown})
            return requests.request(method, f"{url}{path}", json=body, headers=headers, timeout=ANSWERS_S).status_code

        refused = [ask(one, at) for one in STRANGERS for at in (path, "/", "/metrics")]
        answered = ask(OURS["Authorization"])
    assert refused == [401] * len(refused)
    assert answered in (200, 202)
    assert len(values(bootstrap, topic)) == (0 if module == "riders" else 1)


def counted(metrics, outcome):
    """How many events the pod with /metrics on that port has counted as ``outcome``."""
    text = requests.get(f"http://127.0.0.1:{metrics}/metrics", timeout=ANSWERS_S).text
    lines = [line for line in text.splitlines() if line.startswith("ingestion_events_total{")]
    return sum(float(line.split()[-1]) for line in lines if f'outcome="{outcome}"' in line)


def test_riders_wait_for_a_free_driver(bootstrap):
    """Six riders, two drivers at a time, 1 s each: the last waits for three turns, and each match is an event.

    Riders who did not come at the same time wait for less: what lies between the first and the last is taken off.
    """
    with pod(bootstrap, f"{PROGRAMS}.matching", "driver-matching", SLOTS="2", MATCH_MS="1000") as (url, topic):
        together, asked = Barrier(6, timeout=STARTS_S), []

        def ask(number):
            body, headers = ride(number)
            with closing(HTTPConnection(urlsplit(url).netloc, timeout=ANSWERS_S)) as connection:
                connection.connect()
                together.wait()
                asked.append(time.monotonic())
                connection.request("POST", "/api/match", json.dumps(body), headers)
                asked.append(time.monotonic())
                return json.load(connection.getresponse())

        begun = time.monotonic()
        with ThreadPoolExecutor(6) as riders:
            waited = sorted(answer["waited_ms"] for answer in riders.map(ask, range(6)))
        lasted, apart = time.monotonic() - begun, max(asked) - min(asked)
        refused = requests.post(f"{url}/api/match", json={"ride_id": "x", "timestamp": 1}, headers=OURS, timeout=ANSWERS_S)
    assert waited[0] >= 990  # a timer of the event loop may be early by its resolution
    assert lasted >= 3 * 0.99
    assert waited[-1] >= 2100 - 1000 * apart  # more than two turns; a busy pod may hear of the last a while after the first
    assert refused.status_code == 422
    assert sorted(event.decode(value).seq for value in values(bootstrap, topic)) == list(range(6))


def test_a_leaving_pod_answers_all_that_wait(bootstrap):
    """Six seconds of queue when SIGTERM comes: each is found a driver, so is one who has not heard that it leaves."""
    settings, knows = {"SLOTS": "5", "MATCH_MS": "1000"}, Event()
    with ThreadPoolExecutor(36) as riders:
        with pod(bootstrap, lingering(f"{PROGRAMS}.matching"), "driver-matching", **settings) as (url, topic):

            def ask(number):
                body, headers = ride(number)
                return requests.post(f"{url}/api/match", json=body, headers=headers, timeout=ENDS_S).status_code

            def ask_late(number):
                follower = Follower(bootstrap, topic.replace("events", "reports"), ("driver-matching",))
                follower.find(STARTS_S)
                knows.set()
                until(lambda: follower.follow(0.01) or not follower.known["driver-matching"].urls, STARTS_S, "it leaves")
                follower.close()
                return ask(number)

            late = riders.submit(ask_late, 34)
            assert knows.wait(STARTS_S)
            waiting = [riders.submit(ask, number) for number in range(34)] + [late]
            wait(waiting, ANSWERS_S, FIRST_COMPLETED)
        answers = [one.result(ENDS_S) for one in waiting]
    assert answers == [200] * 35
    assert len(values(bootstrap, topic)) == 35


@pytest.fixture(scope="module", params=USERS)
def driven(bootstrap, request):
    """(the reports, the events, the exit codes, what each pod took) of a small run of Locust against two ingestion pods.

    A third has said where it listens and is gone without a word.
    """
    names = named(bootstrap) | {"SEED": "7"}
    events, reports = names["TOPIC"], names["REPORTS_TOPIC"]

    def start(module, who, **more):
        around = os.environ | names | {"HOSTNAME": who} | more
        return subprocess.Popen([sys.executable, "-m", f"{PROGRAMS}.{module}"], env=around, cwd=paths.PROJECT)

    gone, *metrics = free_ports(3)
    dead = f"http://127.0.0.1:{gone}"
    producer = Producer({"bootstrap.servers": bootstrap})
    Reports(producer, reports, "dead").say(LISTENING, service="ingestion", url=dead)
    producer.flush(ANSWERS_S)
    pods = [start("ingestion", f"ingestion-{port}", METRICS_PORT=str(port)) for port in metrics]
    follower = Follower(bootstrap, reports, ("ingestion",))
    try:
        until(lambda: follower.follow(0.1) or len(follower.known["ingestion"].urls) == 3, STARTS_S, "three pods have said it")
        given = {"PROFILE_YAML": json.dumps(PROFILE), "TRAFFIC_USER": request.param, "CYCLE_S": "0.25"}
        given |= {"ZONES": "10", "DRIVERS": "50", "START_IN": "20"}  # s: Locust's own start
        code = start("traffic", "driver", **given).wait(STARTS_S + ENDS_S)
        took = [counted(port, "acked") for port in metrics]
    finally:
        for pod in pods:
            pod.send_signal(signal.SIGTERM)
        codes = [pod.wait(ENDS_S) for pod in pods]
    until(lambda: follower.follow(0.1) or follower.known["ingestion"].urls == [dead], ANSWERS_S, "both said that they leave")
    follower.close()
    said = [json.loads(value) for value in values(bootstrap, reports, 1)]
    return said, [event.decode(value) for value in values(bootstrap, events)], [code, *codes], took


def told(said, name):
    """The reports called ``name``."""
    return [row for row in said if row["event"] == name]


def test_every_answer_202_is_an_event_on_the_topic(driven):
    """The tally's acknowledged are what the topic holds, each number once, half from each pod; nothing failed or is unknown.

    What the dead pod refused, and Locust counts, another has taken. The driver reports like the producer: profile, phases in
    order and on time, then the tally; and Locust's CSV files.
    """
    said, events, codes, took = driven
    tally = told(said, "produced")[0]
    assert codes == [0, 0, 0]
    assert tally["completed"]
    assert tally["sent"] == tally["acked"] == sum(took) == len(events) > 100
    assert sorted(one.seq for one in events) == list(range(len(events)))
    assert took[0] / len(events) == pytest.approx(1 / 2, abs=0.15)
    failures = "".join(row["text"] for row in told(said, "csv") if row["name"] == "failures")
    assert "ConnectionRefusedError" in failures
    start = told(said, "profile")[0]["start"]
    assert [(row["phase"], row["at"] - start) for row in told(said, "phase")] == [("baseline", 0), ("spike", 6)]
    files = {row["name"]: row["text"] for row in told(said, "csv")}  # each in one part
    assert "/api/events/driver-location" in files["stats"]
    assert files["stats_history"].splitlines()[0].startswith("Timestamp,User Count")


def test_paced_users_send_the_whole_profile_and_say_how_late(driven):
    """A closed loop has no schedule to be late by."""
    said, *_ = driven
    tally, user = told(said, "produced")[0], told(said, "profile")[0]["user"]
    late = [value for name, value in tally.items() if name.startswith("late_")]
    assert len(late) == {CLOSED: 0, PACED: 3}[user]
    assert late == sorted(late)
    assert user == CLOSED or (tally["sent"], late[0] >= 0) == (6 * 30 + 6 * 90, True)


def test_events_have_the_texts_weights_and_the_citys_multipliers(driven):
    """5 : 3 : 1, within what chance allows; a surge update has the truth of its event's own time."""
    said, events, *_ = driven
    kinds = [message.named(one.entity_id)[0] for one in events]
    for kind, weight in WEIGHTS.items():
        assert kinds.count(kind) / len(kinds) == pytest.approx(weight / 9, abs=0.15 if weight > 1 else 0.1)
    start = told(said, "profile")[0]["start"]
    city = City(7, 10, 50)
    surges = [one for one in events if message.named(one.entity_id)[0] == SURGE]
    assert surges
    for one in surges:
        zone = message.named(one.entity_id)[1]
        assert json.loads(one.payload)["multiplier"] == pytest.approx(city.multiplier(zone, one.ts / 1e9 - start), abs=0.001)


def test_a_service_that_never_says_where_it_listens_is_a_fault(bootstrap, monkeypatch, capsys):
    """One line that names it, and exit code 1: nothing was wrong with what the user wrote."""
    for name, value in (named(bootstrap) | {"PROFILE_YAML": json.dumps(PROFILE)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(traffic, "FIND_S", 0.5)
    monkeypatch.setattr(sys, "argv", ["traffic"])
    assert traffic.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("no pod of ingestion has said where it listens: not within 0.5 s")
