"""The program: bad flags, TLS both ways, the health service, a login to Kafka."""

import contextlib
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import grpc
import pytest
from confluent_kafka import Consumer, TopicPartition
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lab.cluster import broker as brokers
from lab.errors import InputError
from lab.host import processes, runs
from lab.kafka import topics
from lab.programs.lagscaler import service
from lab.programs.lagscaler.service import NAME
from lab.wait import until
from tests.suite import refused
from tests.unit.programs.lagscaler.client import Client
from tests.unit.programs.lagscaler.fakes import METADATA

END_S = 90  # a wrong password is known only when Kafka's client has tried for 10 s
UNREACHABLE = METADATA | {"bootstrapServers": "127.0.0.1:9"}


@contextlib.contextmanager
def running(*flags, program=("-m", "lab.programs.lagscaler")):
    """The program on free ports: its gRPC address and its metrics URL. It must end by itself on SIGTERM, with 0."""
    (metrics,) = processes.free_ports(1)
    command = [sys.executable, *program, "--grpc-port=0", f"--metrics-port={metrics}", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "serving on" in line:
                break
        address = line.split("serving on ")[1].split(",")[0]
        yield address, f"http://{address.rpartition(':')[0]}:{metrics}"
        process.terminate()
        assert process.wait(END_S) == 0
    finally:
        process.kill()
        process.stderr.close()


def test_health_metrics_and_a_kafka_that_is_not_there():
    """A scaler without Kafka is healthy and says so: taken out of its Service it could answer no one. KEDA gets the reason."""
    with running() as (address, url), Client(address) as client:
        with grpc.insecure_channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            for service in ("", NAME):
                answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=END_S)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as failed:
            client.metrics(UNREACHABLE)
        assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "no sample yet" in failed.value.details()
        assert client.spec(UNREACHABLE).metricSpecs
        for path in ("healthz", "readyz"):
            assert urllib.request.urlopen(f"{url}/{path}", timeout=END_S).status == 200
        text = urllib.request.urlopen(f"{url}/metrics", timeout=END_S).read().decode()
        assert 'lagscaler_request_seconds_count{code="UNAVAILABLE",method="GetMetrics"} 1.0' in text


def test_tls_from_keda_to_the_scaler(authority):
    """caCert is enough where the server alone has a certificate; PEM itself works as well as a file (a Secret's variable)."""
    made, pair = authority
    with running(f"--tls-cert={pair.cert.read_text()}", f"--tls-key={pair.key}") as (address, _):
        trusted = grpc.ssl_channel_credentials(made.cert.read_bytes())
        with Client(address, trusted) as client:
            assert client.spec(UNREACHABLE).metricSpecs
        with Client(address) as plain, pytest.raises(grpc.RpcError):
            plain.stream_spec(UNREACHABLE)


def test_with_a_client_authority_only_its_clients_are_answered(authority):
    """tlsClientCert and tlsClientKey of a TriggerAuthentication; without them the handshake fails."""
    made, pair = authority
    flags = [f"--tls-cert={pair.cert}", f"--tls-key={pair.key}", f"--tls-client-ca={made.cert}"]
    with running(*flags) as (address, _):
        root = made.cert.read_bytes()
        own = grpc.ssl_channel_credentials(root, pair.key.read_bytes(), pair.cert.read_bytes())
        with Client(address, own) as client:
            assert client.spec(UNREACHABLE).metricSpecs
        with Client(address, grpc.ssl_channel_credentials(root)) as stranger, pytest.raises(grpc.RpcError):
            stranger.stream_spec(UNREACHABLE)


def test_certificates_that_cant_be_used_are_refused_by_flag(authority, tmp_path):
    """Before anything is served; a private key is never shown."""
    made, pair = authority
    other = made.issue("other", "other")
    cases = [
        ((str(pair.cert), "", ""), "--tls-key: '' is not allowed"),
        (("", "", str(made.cert)), "--tls-cert: '' is not allowed"),
        ((str(tmp_path / "none"), str(pair.key), ""), "PEM or a readable file of it (No such file or directory)"),
        ((str(pair.key), str(pair.key), ""), "--tls-cert: "),
        ((str(pair.cert), str(pair.cert), ""), "--tls-key: '(not shown)' is not allowed; allowed: a private key"),
        ((str(pair.cert), str(other.key), ""), "allowed: the key of --tls-cert"),
        ((str(pair.cert), str(pair.key), str(pair.key)), "--tls-client-ca: "),
    ]
    for given, line in cases:
        with pytest.raises(InputError) as error:
            service.credentials(*given)
        assert line in str(error.value)
    assert service.credentials("", "", "") is None


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--grpc-port=70000"], "argument --grpc-port: '70000' is not allowed; allowed: 0 to 65,535"),
        (["--limit=0"], "argument --limit: '0' is not allowed; allowed: 1 to 100,000"),
        (["--forget-after=5"], "argument --forget-after: '5' is not allowed; allowed: 30 to 86,400"),
        (["--kafka-settings={}"], "--clusters: '' is not allowed; allowed: the clusters that --kafka-settings may be used"),
        (["--kafka-settings=secret", "--clusters=b:9"], "--kafka-settings: '(not shown)' is not allowed; allowed: a JSON obj"),
        (['--kafka-settings={"sasl.pass": "secret"}', "--clusters=b:9"], "settings of librdkafka (No such configuration prop"),
        (["--tls-cert=nowhere.pem", "--tls-key=x"], "command line: --tls-cert: 'nowhere.pem' is not allowed"),
    ],
)
def test_bad_flags_are_one_line_and_nothing_starts(flags, line):
    """The flag, its value, what is allowed; exit code 2."""
    said = refused("lab.programs.lagscaler", flags, {})
    assert line in said
    assert "secret" not in said


@pytest.fixture(scope="module")
def login():
    """A broker's address where a client must log in, with a topic "orders" of which all is committed."""
    run = runs.open_run()
    guard = processes.guard(run)
    try:
        open_, closed, controller = (f"127.0.0.1:{port}" for port in processes.free_ports(3))
        listeners = {"PLAINTEXT": open_, "LOGIN": closed}
        user = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_scaler="right";'
        more = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": user,
        }
        text = brokers.properties(brokers.data(run), listeners, listeners, controller)
        brokers.launch(run, open_, text + "".join(f"{name}={value}\n" for name, value in more.items()))
        topics.create(open_, {"orders": 1})
        consumer = Consumer({"bootstrap.servers": open_, "group.id": METADATA["consumerGroup"]})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        yield closed
    finally:
        processes.clear(run)
        guard.communicate()


@pytest.mark.services
def test_kafka_settings_log_in_to_kafka(login, monkeypatch):
    """As a pod is told them, from a Secret. A wrong password is UNAVAILABLE with Kafka's reason, and is not shown."""
    metadata = METADATA | {"bootstrapServers": login}
    name = f"persistent-lag-{METADATA['topic']}"
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "scaler"}
    monkeypatch.setenv("CLUSTERS", login)
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps(settings | {"sasl.password": "right"}))
    with running() as (address, _), Client(address) as client:
        until(lambda: _answered(client, metadata, name), END_S, "the first reading")
        assert client.metrics(metadata, name).metricValues[0].metricValueFloat == 0
        with pytest.raises(grpc.RpcError) as elsewhere:
            client.metrics(metadata | {"bootstrapServers": "127.0.0.1:9"}, name)
        assert elsewhere.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps(settings | {"sasl.password": "wrong"}))
    with running() as (address, _), Client(address) as client:
        until(lambda: "(Kafka at" in _refusal(client, metadata, name), END_S, "Kafka's reason")
        assert "wrong" not in _refusal(client, metadata, name)


def _answered(client, metadata, name):
    """Whether there is a metric: on a busy machine a question may come before the first reading."""
    try:
        return bool(client.metrics(metadata, name).metricValues)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return False


def _refusal(client, metadata, name):
    """Why there is no metric."""
    with pytest.raises(grpc.RpcError) as error:
        client.metrics(metadata, name)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    return error.value.details()


@pytest.mark.parametrize("flag", ["grpc-port", "metrics-port"])
def test_a_port_in_use_is_one_line(flag):
    """Also the gRPC one, which two processes could otherwise share unnoticed."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = {"grpc-port": 0, "metrics-port": 0} | {flag: port}
        command = [sys.executable, "-m", "lab.programs.lagscaler", *(f"--{name}={value}" for name, value in ports.items())]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert f"argument --{flag}: {port} is not allowed; allowed: a free port of --pod-ip" in ran.stderr.splitlines()[-1]


# The program as it is, with a sampler whose thread ends at once.
DYING = """
import sys
from lab.programs.lagscaler import __main__, sampler
sampler.Sampler.run = lambda self: None
sys.exit(__main__.main())
"""


def healthz(url):
    """The status of /healthz."""
    try:
        return urllib.request.urlopen(f"{url}/healthz", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_dead_sampling_thread_is_not_healthy_whoever_asks():
    """A liveness probe, of HTTP or of gRPC, starts the pod anew."""
    answer = health_pb2.HealthCheckResponse
    with running(program=("-c", DYING)) as (address, url), Client(address) as client, grpc.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)

        def served():
            return {stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10).status for name in ("", NAME)}

        assert (healthz(url), served()) == (200, {answer.SERVING})
        assert client.spec().metricSpecs
        until(lambda: served() == {answer.NOT_SERVING}, END_S, "gRPC's health service to say so")
        assert healthz(url) == 503
