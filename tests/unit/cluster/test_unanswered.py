"""A server that takes connections and never answers, or is busy: a call ends in time, and a wait with its deadline."""

import json
import socket
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab.cluster import apply, keda
from lab.errors import LabFault, NoAnswer
from lab.inputs.events import Delete, PauseScaling, Restart
from lab.trial import scaling, signals
from lab.trial.closing import bounded
from lab.trial.events import perform
from lab.trial.stage import CONSUMER, Stage
from lab.trial.watch import Transitions, group
from lab.wait import until, within

HANGS_S = 20.0  # shorter than what a call may take by itself, longer than what is stated here
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}


def kubeconfig(folder, address):
    """The file by which the API server at ``address`` is reached."""
    server = {"server": address, "insecure-skip-tls-verify": True}
    lists = {"clusters": [{"name": "x", "cluster": server}], "users": [{"name": "x", "user": {}}]}
    lists |= {"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}
    file = folder / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x"} | lists))
    return file


@pytest.fixture(params=["http", "https"])
def stage(request, tmp_path):
    """A trial under way whose API server is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel takes the connections
        file = kubeconfig(tmp_path, f"{request.param}://127.0.0.1:{silent.getsockname()[1]}")
        made = object.__new__(Stage)
        made.api, made.namespace, made.folder = apply.connect(file), "trial-x", tmp_path
        made.cluster = SimpleNamespace(api=lambda: apply.connect(file))
        made.inputs = SimpleNamespace(workload=SimpleNamespace(pod_owner="Deployment"), policy=SimpleNamespace(name="x"))
        made.transitions = SimpleNamespace(pods=lambda _: [{"metadata": {"name": "x"}}])
        made.reports = SimpleNamespace(owned=lambda: {"x": 1})
        yield made


@pytest.mark.parametrize(
    "call",
    [
        lambda stage: apply.create_namespace(stage.api, "x"),
        lambda stage: apply.objects(stage.api, [SECRET], "x"),
        lambda stage: apply.delete(stage.api, [SECRET], "x"),
        lambda stage: keda.refusal(stage.api, keda._idle(1), "x"),
        lambda stage: scaling.scale(stage, CONSUMER, 3),
        lambda stage: Transitions(stage.api, "x", stage.folder / "lines"),
        lambda stage: group(stage.api, "x", "x"),
        lambda stage: signals.send(stage, "x", "containerd://x", 9),
        *(partial(perform, event) for event in (Delete(), PauseScaling(), Restart())),
    ],
)
def test_a_call_that_is_not_answered_ends(stage, call, monkeypatch):
    """With a fault that says so; without a time-out it would wait for ever."""
    monkeypatch.setattr(apply, "ANSWER_S", 0.2)
    monkeypatch.setattr(signals, "_ANSWER_S", 0.1)
    with pytest.raises(LabFault, match=r"no answer within [\d.]+ s$|not within 0\.2 s"):
        bounded(partial(call, stage), HANGS_S)  # what is said is what it took, which a busy machine makes longer


@pytest.mark.parametrize(
    "wait",
    [
        lambda api: apply.wait_for_api_service(api, "v1beta1.metrics.k8s.io", 0.3, lambda: None),
        lambda api: apply.wait_for_definitions(api, ["scaledobjects.keda.sh"], 0.3, lambda: None),
        lambda api: until(lambda: keda.refusal(api, keda._idle(1), "x") is None, 0.3, "KEDA's webhooks"),
    ],
)
def test_a_wait_ends_with_its_deadline(stage, wait):
    """However long a call of it may take by itself, which is longer than this test waits."""
    assert apply.ANSWER_S > HANGS_S
    with pytest.raises(LabFault, match=r"not within 0\.3 s \(\w+ http"):
        bounded(partial(wait, stage.api), HANGS_S)


@pytest.fixture
def busy(tmp_path):
    """A client of an API server that is busy and says to come again in ten minutes, and the times at which it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(time.monotonic())
            self.send_response(503)
            self.send_header("Retry-After", "600")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield apply.connect(kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}")), asked
        server.shutdown()


def test_a_busy_server_is_asked_again_soon_and_not_for_ever(busy, monkeypatch):
    """However long it says that it will be. Its last answer is the caller's."""
    monkeypatch.setattr(apply, "AGAIN_S", 0.1)
    api, asked = busy
    with pytest.raises(ApiException) as refused:
        bounded(client.VersionApi(api).get_code, HANGS_S)
    assert refused.value.status == 503
    assert len(asked) == 4
    assert asked[-1] - asked[0] >= 0.3


def test_a_wait_for_a_busy_server_ends_with_its_deadline(busy):
    """What it sleeps until it asks again is a part of the wait."""
    api, asked = busy
    with pytest.raises(LabFault, match=r"not within 0\.3 s"):
        bounded(partial(apply.wait_for_api_service, api, "v1beta1.metrics.k8s.io", 0.3, lambda: None), HANGS_S)
    assert asked[-1] - asked[0] < 2 * apply.AGAIN_S


def test_a_server_of_another_protocol_is_no_answer():
    """As that of a port which is none of Prometheus'."""

    def greet(server):
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"SSH-2.0\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=greet, args=(server,), daemon=True).start()
        assert not apply.answers(f"http://127.0.0.1:{server.getsockname()[1]}")


def test_a_call_has_what_is_left_of_its_wait():
    """And a server that can't be reached is asked again until then. Outside of a wait a call has its own time."""
    limits = []

    def ask():
        limits.append(within(30))
        raise NoAnswer("refused")

    with pytest.raises(LabFault, match=r"^the server: not within 0\.2 s \(refused\)$"):
        until(ask, 0.2, "the server")
    assert len(limits) > 1
    assert max(limits) <= 0.2
    assert within(30) == 30
