"""Who may act through a running cluster: every listening socket tried without credentials, every identity beyond its rights."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import socket
import ssl
from collections import defaultdict
from pathlib import Path

import psutil
import pytest
from kubernetes import config
from kubernetes.client.exceptions import ApiException

from lab.cluster import apply, broker
from lab.host import processes
from lab.trial import addresses
from tests.wire import asks_for_login

pytestmark = pytest.mark.services

# What a listener answers one who has no credentials. docs/decisions/05 says why each may be as it is.
SHUT = "shut: TLS asks for a client certificate"
KNOWN = "known: 401 or 403 for all but its health"
READ = "read: figures and health, whatever host a request names, nothing that writes"
OWN = "read by its own address: figures and health, not where a request names another host, nothing that writes"
JUDGES = "judges: TLS, an admission review is answered and nothing is kept"
LOGIN = "login: Kafka answers no request before one"
OPEN = "open: neither TLS nor a login"

# The listeners of each component, in no order: a port is chosen when the cluster starts.
LISTENERS = {
    "etcd": (SHUT, SHUT),
    "kube-apiserver": (KNOWN,),
    "kube-controller-manager": (KNOWN,),
    "kube-scheduler": (KNOWN,),
    "node": (SHUT,),
    "metrics-server": (KNOWN,),
    "keda-operator": (READ, READ, SHUT),
    "keda-adapter": (KNOWN, READ),
    "keda-webhooks": (JUDGES,),
    "kube-state-metrics": (READ, READ),
    "prometheus": (READ,),
    "kafka": (LOGIN, LOGIN, LOGIN),
}
# KEDA takes a port for these and no address: they listen on every address of the machine.
EVERYWHERE = {("keda-adapter", READ), ("keda-webhooks", JUDGES)}
POSTS = ("/", "/-/quit", "/-/reload", "/api/v1/admin/tsdb/delete_series?match[]=up", "/api/v1/write", "/api/v1/namespaces")
WRITES = (("PUT", "/"), ("DELETE", "/"), *(("POST", path) for path in (*POSTS, "/v3/kv/put")))
ANSWERS_S = 30
BODY_OF_WRITES = b'{"key": "AA==", "value": "AA=="}'  # whole for etcd's gateway; the others refuse before they read it


def listening(cluster):
    """The addresses that each of the cluster's processes listens on, by the component's name."""
    names = {item.process.pid: item.name for item in [*cluster.plane.daemons, cluster.broker.daemon]}
    found = defaultdict(set)
    for process in processes.remembered(cluster.run):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends meanwhile
            every = [process, *process.children(recursive=True)]
            for entry in [entry for one in every for entry in one.net_connections("inet")]:
                if entry.status == psutil.CONN_LISTEN:
                    address = ipaddress.ip_address(entry.laddr.ip)
                    address = getattr(address, "ipv4_mapped", None) or address
                    found[names.get(process.pid, process.name())].add((address, entry.laddr.port))
    return found


def https(port, context):
    """A connection that is not made yet."""
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=ANSWERS_S, context=context)


def asked(port, method="GET", path="/", tls=False, **headers):
    """The status and body of one request without credentials; None where the connection itself is refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERS_S)
    if tls:
        connection = https(port, ssl._create_unverified_context())
    try:
        connection.request(method, path, body=BODY_OF_WRITES if method != "GET" else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def behaviour(port):
    """Which of the behaviours the listener on ``port`` shows, found by asking it."""
    if (plain := asked(port, path="/metrics")) and plain[0] == 400 and b"HTTPS" in plain[1].upper():
        plain = None  # a Go server says in plain text that it wants TLS
    if plain is not None:
        start = asked(port)
        taken = [write for write in WRITES if (answer := asked(port, *write)) and answer[0] < 400 and answer != start]
        assert not taken, f"port {port} takes {taken} from one without credentials"
        rebound = asked(port, path="/metrics", Host="rebound.example")  # as a web page has it, whose name is now this address
        return READ if rebound is not None and rebound[0] == plain[0] else OWN
    if (closed := asked(port, path="/healthz", tls=True)) is not None:
        answers = [asked(port, *write, tls=True) for write in (*WRITES, ("GET", "/metrics"), ("GET", "/api/v1/secrets"))]
        if all(answer is not None and answer[0] in (401, 403) for answer in answers):
            return KNOWN
        assert all(answer is not None and answer[0] == 404 for answer in answers), answers
        assert closed[0] == 404, closed
        judged = asked(port, "POST", "/validate-keda-sh-v1alpha1-scaledobject", tls=True)
        assert judged is not None
        assert b"allowed" in judged[1], judged
        return JUDGES
    if asks_for_certificate(port):
        return SHUT
    return LOGIN if asks_for_login(port) else OPEN


def asks_for_certificate(port, host="127.0.0.1", protocols=()):
    """Whether the server speaks TLS and answers a client without a certificate nothing at all.

    With TLS 1.3 the client's side of the handshake is over before the server has looked for the certificate. A server of gRPC
    answers one who names no protocol nothing, either.
    """
    try:
        plain = socket.create_connection((host, port), timeout=ANSWERS_S)
        context = ssl._create_unverified_context()
        if protocols:
            context.set_alpn_protocols(protocols)
        wrapped = context.wrap_socket(plain)
    except OSError:
        return False
    with wrapped:
        try:
            wrapped.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            return wrapped.recv(1) == b""
        except OSError:  # an alert, or the connection is reset
            return True


def test_every_listener_is_one_that_is_known_and_does_what_is_said_of_it(cluster):
    """The table above is the whole cluster: no socket more, none elsewhere, and none does more without credentials."""
    found = listening(cluster)
    table = [(name, address, port, behaviour(port)) for name in sorted(found) for address, port in sorted(found[name], key=str)]
    for name, address, port, does in table:
        print(f"{name:24} {address}:{port:<6} {does}")
    shown = {name: sorted(does for other, _, _, does in table if other == name) for name in found}
    assert shown == {name: sorted(wanted) for name, wanted in LISTENERS.items()}
    assert {(name, does) for name, address, _, does in table if not address.is_loopback} == EVERYWHERE


def test_prometheus_is_read_by_no_page_of_another_origin(cluster):
    """Its default lets any page read every figure."""
    ((_, port),) = listening(cluster)["prometheus"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERS_S)
    connection.request("GET", "/api/v1/query?query=up", headers={"Origin": "http://elsewhere"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (200, None)


def gateway(port, certificate, key):
    """What etcd's JSON gateway says to the holder of ``certificate`` on a page of elsewhere: status and allowed origin."""
    context = ssl._create_unverified_context()
    context.load_cert_chain(certificate, key)
    connection = https(port, context)
    connection.request("POST", "/v3/kv/range", body=b'{"key": "AA=="}', headers={"Origin": "http://elsewhere"})
    answer = connection.getresponse()
    return answer.status, answer.headers.get("Access-Control-Allow-Origin")


def test_etcd_answers_no_certificate_but_the_apiservers(cluster):
    """A client certificate of the cluster's own authority, which every component has, does not open etcd."""
    plane = cluster.plane
    own = plane.run / "certs" / "etcd"
    for _, port in listening(cluster)["etcd"]:
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            gateway(port, plane.admin.cert, plane.admin.key)
        assert gateway(port, own / "client.crt", own / "client.key") == (404, None), "no gateway, no word to another origin"


def test_the_login_is_readable_by_its_user_alone(cluster):
    """No command line has it and no log; the broker's files and etcd's have it, which no one else may read."""
    password = cluster.kafka_settings["sasl.password"]
    apply.objects(cluster.api(), addresses.login_objects(cluster.kafka_settings, cluster.pod_bootstrap), "default")
    assert [process.pid for process in psutil.process_iter() if _shows(process, password)] == []
    held = [file for file in _files(cluster.run) if password.encode() in _content(file)]
    own = {broker.settings_file(cluster.run), broker.settings_file(cluster.run).with_name("server.properties")}
    assert own == {file for file in held if cluster.run / "etcd" not in file.parents} < set(held)
    assert {file: oct(file.stat().st_mode) for file in held if file.stat().st_mode & 0o077} == {}
    assert cluster.run.stat().st_mode & 0o077 == 0


def _files(folder):
    """The files below ``folder``. Kafka removes those of a deleted topic a minute later, and their folders, at any moment."""
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names]


def _content(file):
    """What a file holds; nothing when it was removed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes()
    return b""


def _shows(process, password):
    """Whether the command line of ``process``, which every user may read, has ``password`` in it."""
    with contextlib.suppress(psutil.Error):
        return any(password in word for word in process.cmdline())
    return False


# One act for each identity that is not its own, and that its component on a kind cluster would be denied too.
DENIED = {
    "system-kube-controller-manager": ("ScaledObject", "keda.sh/v1alpha1", "create"),
    "system-kube-scheduler": ("Deployment", "apps/v1", "create"),
    "system-node-lab-node": ("Secret", "v1", "list"),
    "system-serviceaccount-keda-keda-operator": ("Pod", "v1", "create"),
    "system-serviceaccount-keda-keda-adapter": ("ScaledObject", "keda.sh/v1alpha1", "delete"),
    "system-serviceaccount-keda-keda-webhooks": ("ScaledObject", "keda.sh/v1alpha1", "delete"),
    "system-serviceaccount-kube-system-metrics-server": ("Secret", "v1", "list"),
    "system-serviceaccount-monitoring-kube-state-metrics": ("Secret", "v1", "list"),
    "system-serviceaccount-monitoring-prometheus": ("Pod", "v1", "create"),
}
BODY = {"metadata": {"name": "not-mine", "namespace": "default"}, "spec": {}}


def act(kubeconfig, everything, kind, version, verb):
    """The status of a dry run of ``verb`` on a ``kind`` in the namespace default, and what the API server says."""
    path = "/" + everything.resources.get(api_version=version, kind=kind).urls["namespaced_base"].lstrip("/")
    path = path.format(namespace="default")
    body = {"apiVersion": version, "kind": kind, **BODY} if verb == "create" else None
    method, target = {"list": ("get", path), "create": ("post", path), "delete": ("delete", f"{path}/none")}[verb]
    dynamic = apply.dynamic_client(config.new_client_from_config(str(kubeconfig)))
    try:
        dynamic.request(method, target, body=body, query_params=[("dryRun", "All")])
    except ApiException as error:
        return error.status, str(error.body)
    return 200, ""


@pytest.mark.parametrize("identity", DENIED)
def test_a_component_may_not_do_what_is_not_its_work(cluster, identity):
    """The act is denied by RBAC or the node authorizer, and it is not to the session's own identity."""
    everything, plane = apply.dynamic_client(cluster.api()), cluster.plane
    status, words = act(plane.run / "certs" / f"{identity}.kubeconfig", everything, *DENIED[identity])
    assert status == 403, words
    assert identity.rpartition("-")[2] in words
    status, words = act(plane.kubeconfig, everything, *DENIED[identity])
    assert status in (200, 404, 422), words  # not there or not whole, but allowed


def test_the_identities_are_enough(cluster):
    """Of all that this session has run, no component's log has a refusal: each may do its own work."""
    assert {file.stem for file in (cluster.plane.run / "certs").glob("*.kubeconfig")} == set(DENIED)
    begun = [json.loads(file.read_text())["name"] for file in (cluster.plane.run / "pids").iterdir()]
    if begun.count("kube-apiserver") > 1:
        pytest.skip("an API server that comes back refuses everybody, until it has read the roles")
    for daemon in cluster.plane.daemons:
        refused = [line for line in daemon.log.read_text(errors="replace").splitlines() if "is forbidden: User" in line]
        assert not refused, f"{daemon.name}: {refused[0]}"
