"""The scale subresource over HTTPS, against a small API: what is sent, what is read, and what becomes of every refusal."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lab.cluster.certs import Authority
from lab.errors import LabFault
from lab.host import processes
from lab.programs.controller.loop import PATCH, DeploymentScale

PATH = "/apis/apps/v1/namespaces/ns/deployments/consumer/scale"


class Api(BaseHTTPRequestHandler):
    """An API with one scale; ``answer`` overrides what it says."""

    protocol_version = "HTTP/1.1"
    replicas = 4
    answer = None
    seen: list = []

    def do_GET(self):
        """Say what the scale is."""
        self._say()

    def do_PATCH(self):
        """Change it, then say what it is."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).replicas = body["spec"]["replicas"]
        self._say()

    def _say(self):
        self.seen.append((self.command, self.path, self.headers["Authorization"], self.headers["Content-Type"]))
        spec = {"replicas": self.replicas} if self.replicas else {}
        code, text = self.answer or (200, json.dumps({"kind": "Scale", "spec": spec}))
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Nothing."""


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
    handler.scale = DeploymentScale("127.0.0.1", server.server_port, "secret", authority.cert.read_text(), "ns", "consumer")
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


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ((403, '{"message": "forbidden"}'), f"GET {PATH}: 403: forbidden"),
        ((404, '{"message": "not found"}'), f"GET {PATH}: 404: not found"),
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


def test_an_api_of_another_authority_is_not_believed(api, tmp_path):
    """Whoever answers on that port must be signed by the certificate authority of the pod's Secret."""
    other = Authority(tmp_path / "other")
    stranger = DeploymentScale("127.0.0.1", api.port, "secret", other.cert.read_text(), "ns", "consumer")
    with pytest.raises(LabFault, match=r"no answer: .*CERTIFICATE_VERIFY_FAILED"):
        stranger.read()
    assert api.seen == []


def test_no_api_at_all_is_one_line(tmp_path):
    """A port where no one listens."""
    ca = Authority(tmp_path).cert.read_text()
    with pytest.raises(LabFault, match=r"no answer: .*refused"):
        DeploymentScale("127.0.0.1", processes.free_ports(1)[0], "secret", ca, "ns", "consumer").read()


@pytest.mark.parametrize("ca", ["", "no PEM"])
def test_a_certificate_that_is_none_is_refused(ca):
    """Before anything is asked: an empty one must not mean whom the machine trusts."""
    with pytest.raises((ssl.SSLError, ValueError)):
        DeploymentScale("127.0.0.1", 1, "secret", ca, "ns", "consumer")
