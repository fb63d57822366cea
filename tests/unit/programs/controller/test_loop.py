"""The controller's loop on real HTTP and on fakes: it reads, decides and patches, and changes nothing on an error."""

from __future__ import annotations

import json
import math
import ssl
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from lab import paths
from lab.cluster.certs import Authority
from lab.errors import LabFault
from lab.host import processes
from lab.inputs import policy
from lab.kafka.lag import PartitionLag
from lab.programs.controller import loop
from lab.programs.controller.loop import PATCH, DeploymentScale, Loop, Metrics

POLICY = policy.load(paths.MANIFESTS / "controllers" / "controller-4500.yaml")
KAFKA_DOWN, NO_SCALE, NO_PATCH, FINE = "kafka", "scale", "patch", "fine"
UNREADABLE = (KAFKA_DOWN, NO_SCALE)


class World:
    """A Deployment and a topic; ``broken`` says what can't be asked, ``told`` holds what the recorder heard."""

    def __init__(self, replicas=4, lag=0, policy=POLICY):
        self.replicas, self.behind, self.broken = replicas, lag, FINE
        self.patches, self.told = [], []
        self.registry = CollectorRegistry()
        self.loop = Loop(policy, self.lag, self, lambda event, **fields: self.say(event, **fields), Metrics(self.registry))

    def lag(self):
        """The lag, on two partitions."""
        if self.broken == KAFKA_DOWN:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "broker down"))
        return {0: PartitionLag(self.behind, 0), 1: PartitionLag(7, 7)}

    def read(self):
        """The Deployment's replicas."""
        if self.broken == NO_SCALE:
            raise LabFault("GET scale: 403: forbidden")
        return self.replicas

    def write(self, replicas):
        """Patch them."""
        if self.broken == NO_PATCH:
            raise LabFault("PATCH scale: no answer")
        self.patches.append(replicas)
        self.replicas = replicas

    def say(self, event, **fields):
        """What the recorder is told."""
        self.told.append((event, fields))

    def shown(self, name, **labels):
        """A metric's value."""
        return self.registry.get_sample_value(name, labels)


def test_a_sync_patches_what_was_decided_and_tells_it():
    """24 wanted, 12 allowed: one patch, the reasons to the recorder, the numbers to Prometheus."""
    world = World(lag=24 * 4500)
    assert not world.loop.ready()
    world.loop.sync(0.0)
    assert (world.replicas, world.patches, world.loop.ready()) == (12, [12], True)
    ((event, fields),) = world.told
    assert (event, fields["lag"], fields["replicas"], fields["desired"]) == ("sync", 108_000, 4, 12)
    assert "ScaleUpLimit: 24 -> 12" in fields["reasons"]
    shown = [world.shown("controller_lag"), world.shown("controller_desired_replicas")]
    assert [*shown, world.shown("controller_syncs_total", outcome="scaled")] == [108_000, 12, 1]
    world.behind = 12 * 4500
    world.loop.sync(15.0)
    assert (world.patches, world.told[1][1]["desired"]) == ([12], 12), "no write without a change"
    assert world.shown("controller_syncs_total", outcome="kept") == 1
    world.broken = KAFKA_DOWN
    world.loop.sync(30.0)
    assert not world.loop.ready()


@pytest.mark.parametrize(("broken", "said"), [(KAFKA_DOWN, "broker down"), (NO_SCALE, "403"), (NO_PATCH, "no answer")])
@pytest.mark.parametrize("lag", [0, 1_500_000])
def test_an_error_changes_nothing_and_is_said(broken, said, lag, caplog):
    """Whatever can't be asked: no patch, not ready, no old number in a metric, one line; and the next sync goes on."""
    world = World(replicas=30, lag=lag)  # above the ceiling: every sync that can has something to patch
    world.broken = broken
    assert world.loop.sync(0.0) is None
    assert (world.replicas, world.patches, world.loop.ready()) == (30, [], False)
    assert math.isnan(world.shown("controller_lag"))
    assert world.told[0][0] == "sync_failed"
    assert said in world.told[0][1]["error"]
    assert "nothing is changed: " in caplog.text
    world.broken = FINE
    world.behind = 24 * 4500
    assert world.loop.sync(15.0).desired == 24
    assert world.loop.ready()


@given(st.lists(st.tuples(st.sampled_from([*UNREADABLE, NO_PATCH, FINE]), st.integers(0, 150_000)), max_size=40))
def test_failed_syncs_leave_no_trace(syncs):
    """At every sync that succeeds a walk with failures decides as the same walk without them: an error is not remembered."""
    failing, clean = World(), World()
    for index, (broken, lag) in enumerate(syncs):
        before = failing.replicas
        failing.broken, failing.behind, clean.behind = broken, lag, lag
        decided = failing.loop.sync(index * 15.0)
        if broken in UNREADABLE:
            assert decided is None
        if decided is None:
            assert failing.replicas == before
        else:
            assert clean.loop.sync(index * 15.0) == decided
            assert clean.replicas == failing.replicas


def test_a_recorder_that_takes_nothing_stops_no_one(caplog):
    """With Kafka away for long the producer's queue is full: the decision is carried out, and the log has it."""
    world = World(lag=24 * 4500)
    world.say = Mock(side_effect=BufferError("queue full"))
    world.loop.sync(0.0)
    assert world.replicas == 12
    assert "not told to the recorder: queue full" in caplog.text


def test_the_loop_syncs_until_it_is_stopped():
    """It syncs at once, then every period, and ends with its stop."""
    world, stop = World(lag=600, policy=replace(POLICY, sync_s=0.01)), threading.Event()
    said: list[str] = []
    world.say = Mock(side_effect=lambda event, **_: said.append(event) or (len(said) == 3 and stop.set()))
    runner = threading.Thread(target=world.loop.run, args=(stop,), daemon=True)
    runner.start()
    runner.join(timeout=10)
    assert not runner.is_alive()
    assert said == ["sync"] * 3
    assert world.loop.healthy()


PATH = "/apis/apps/v1/namespaces/ns/deployments/consumer/scale"


class Api(BaseHTTPRequestHandler):
    """An API with one scale; ``answer`` overrides what it says."""

    protocol_version = "HTTP/1.1"
    replicas = 4
    answer = None
    seen: list = []

    def do_GET(self):
        """Say what the scale is, as it is or as the body of a PATCH changes it."""
        self.seen.append((self.command, self.path, self.headers["Authorization"], self.headers["Content-Type"]))
        if size := int(self.headers["Content-Length"] or 0):
            type(self).replicas = json.loads(self.rfile.read(size))["spec"]["replicas"]
        spec = {"replicas": self.replicas} if self.replicas else {}
        code, text = self.answer or (200, json.dumps({"kind": "Scale", "spec": spec}))
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_PATCH = do_GET

    def log_message(self, *_):
        """Nothing."""


def scale(authority, port):
    """The scale at an API on that port whose certificate is of ``authority``."""
    return DeploymentScale("127.0.0.1", port, "secret", authority.cert.read_text(), "ns", "consumer")


@pytest.fixture
def api(tmp_path):
    """The API on a free port, and a scale that reaches it as a pod would."""
    authority = Authority(tmp_path)
    pair = authority.issue("api", "api", hosts=("127.0.0.1",))
    handler: Any = type("One", (Api,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler.scale = scale(authority, server.server_port)
    handler.port = server.server_port
    yield handler
    server.shutdown()
    server.server_close()


def test_replicas_are_read_and_patched(api):
    """One path, the service account's token, a merge patch; a Scale without the field is one of 0."""
    assert api.scale.read() == 4
    api.scale.write(7)
    assert (api.replicas, api.scale.read()) == (7, 7)
    assert [row[:3] for row in api.seen] == [(verb, PATH, "Bearer secret") for verb in ("GET", "PATCH", "GET")]
    assert api.seen[1][3] == PATCH
    api.replicas = 0
    assert api.scale.read() == 0


def test_a_connection_that_was_long_idle_is_made_anew(api, monkeypatch):
    """The API server has closed it meanwhile, and every second sync would fail."""
    ports = []
    monkeypatch.setattr(api, "setup", lambda self: (ports.append(self.client_address[1]), Api.setup(self)))
    for idle_s in (60, 60, 0, 0):
        monkeypatch.setattr(loop, "IDLE_S", idle_s)
        api.scale.read()
    assert len(set(ports)) == 3


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ((403, '{"message": "forbidden"}'), f"GET {PATH}: 403: forbidden"),
        ((500, "no JSON"), f"GET {PATH}: no answer: "),
    ],
)
def test_a_refusal_is_one_line_and_the_next_request_goes_on(api, answer, line):
    """Verb, path, code and the API's own words."""
    api.answer = answer
    with pytest.raises(LabFault) as fault:
        api.scale.read()
    assert line in str(fault.value)
    api.answer = None
    assert api.scale.read() == 4


def test_an_api_of_another_authority_is_not_believed_and_none_is_one_line(api, tmp_path):
    """Whoever answers on that port must be signed by the certificate authority of the pod's Secret."""
    other = Authority(tmp_path / "other")
    with pytest.raises(LabFault, match=r"no answer: .*CERTIFICATE_VERIFY_FAILED"):
        scale(other, api.port).read()
    assert api.seen == []
    with pytest.raises(LabFault, match=r"no answer: .*refused"):
        scale(other, processes.free_ports(1)[0]).read()


@pytest.mark.parametrize("ca", ["", "no PEM"])
def test_a_certificate_that_is_none_is_refused(ca):
    """Before anything is asked: an empty one must not mean whom the machine trusts."""
    with pytest.raises((ssl.SSLError, ValueError)):
        DeploymentScale("127.0.0.1", 1, "secret", ca, "ns", "consumer")
