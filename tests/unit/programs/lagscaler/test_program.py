"""The program: bad flags, TLS both ways, the health service, a login to Kafka."""

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import grpc
import pytest
from confluent_kafka import Consumer, TopicPartition
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lab.errors import InputError
from lab.host import processes
from lab.kafka import topics
from lab.programs.lagscaler import service
from lab.programs.lagscaler.service import NAME
from lab.wait import until
from tests.suite import refused
from tests.unit.programs.lagscaler.fakes import METADATA, Client, known

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


def health(channel):
    """What gRPC's health service says of the whole and of the scaler: one answer where both are alike."""
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return {stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=END_S).status for name in ("", NAME)}


def get(url):
    """The status and the text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=END_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_health_metrics_and_a_kafka_that_is_not_there():
    """A scaler without Kafka is healthy and says so: taken out of its Service it could answer no one. KEDA gets the reason."""
    with running() as (address, url), Client(address) as client:
        with grpc.insecure_channel(address) as channel:
            assert health(channel) == {health_pb2.HealthCheckResponse.SERVING}
        assert "no sample yet" in known(lambda: client.metrics(UNREACHABLE))[1]
        assert client.spec(UNREACHABLE).metricSpecs
        assert [get(f"{url}/{path}")[0] for path in ("healthz", "readyz", "other")] == [200, 200, 404]
        text = get(f"{url}/metrics")[1]
        assert 'lagscaler_request_seconds_count{code="UNAVAILABLE",method="GetMetrics"} 1.0' in text


def test_with_a_client_authority_only_its_clients_are_answered(authority):
    """tlsClientCert and tlsClientKey of a TriggerAuthentication; a flag takes a file, or PEM itself (a Secret's variable)."""
    made, pair = authority
    flags = [f"--tls-cert={pair.cert.read_text()}", f"--tls-key={pair.key}", f"--tls-client-ca={made.cert}"]
    with running(*flags) as (address, _):
        root = made.cert.read_bytes()
        own = grpc.ssl_channel_credentials(root, pair.key.read_bytes(), pair.cert.read_bytes())
        with Client(address, own) as client:
            assert client.spec(UNREACHABLE).metricSpecs
        for credentials in (grpc.ssl_channel_credentials(root), None):
            with Client(address, credentials) as stranger, pytest.raises(grpc.RpcError):
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


def test_kafka_settings_log_in_to_kafka(closed, monkeypatch):
    """As a pod is told them, from a Secret. A wrong password is UNAVAILABLE with Kafka's reason, and is not shown."""
    topics.create(closed.bootstrap, {"orders": 1}, closed.settings)
    consumer = Consumer({"bootstrap.servers": closed.bootstrap, "group.id": METADATA["consumerGroup"], **closed.settings})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()
    metadata = METADATA | {"bootstrapServers": closed.bootstrap}
    monkeypatch.setenv("CLUSTERS", closed.bootstrap)
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps(dict(closed.settings)))
    with running() as (address, _), Client(address) as client:
        until(lambda: known(lambda: client.metrics(metadata))[0], END_S, "the first reading")
        assert client.metrics(metadata).metricValues[0].metricValueFloat == 0
        with pytest.raises(grpc.RpcError) as elsewhere:
            client.metrics(UNREACHABLE)
        assert elsewhere.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    monkeypatch.setenv("KAFKA_SETTINGS", json.dumps({**closed.settings, "sasl.password": "wrong"}))
    with running() as (address, _), Client(address) as client:
        refusal = lambda: known(lambda: client.metrics(metadata))[1]  # noqa: E731
        until(lambda: "(Kafka at" in refusal(), END_S, "Kafka's reason")
        assert "wrong" not in refusal()


# The program as it is, with a sampler whose thread ends at once.
DYING = """
import sys
from lab.programs.lagscaler import __main__, sampler
sampler.Sampler.run = lambda self: None
sys.exit(__main__.main())
"""


def test_a_dead_sampling_thread_is_not_healthy_whoever_asks():
    """A liveness probe, of HTTP or of gRPC, starts the pod anew."""
    answer = health_pb2.HealthCheckResponse
    with running(program=("-c", DYING)) as (address, url), Client(address) as client, grpc.insecure_channel(address) as channel:
        assert (get(f"{url}/healthz")[0], health(channel)) == (200, {answer.SERVING})
        assert client.spec().metricSpecs
        until(lambda: health(channel) == {answer.NOT_SERVING}, END_S, "gRPC's health service to say so")
        assert get(f"{url}/healthz")[0] == 503
