"""A login in the forms that each client takes, also Spark and KEDA; and a real broker that takes no one without it."""

import json
import subprocess
import sys

import psutil
import pytest

from lab.cluster import broker
from lab.errors import InputError
from lab.kafka import forms, login, topics
from lab.kafka.lag import LagReader
from tests.suite import refused
from tests.wire import CREATE_TOPIC, DESCRIBE_BROKER, REFUSED, Wire, asks_for_login

SETTINGS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "lab", "sasl.password": 'a"b\\c'}


def read(text):
    """The settings of a properties file."""
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_password_is_new_each_time():
    """And long enough that nobody tries them all."""
    one, other = login.new(), login.new()
    assert one["sasl.password"] != other["sasl.password"]
    assert len(one["sasl.password"]) >= 40


def test_no_listener_of_a_broker_with_a_login_is_open():
    """The controller's neither; without one all are, as on kind, and no word of a login is there."""
    given = {"INTERNAL": "h:1", "EXTERNAL": "h:2"}
    closed = read(broker.properties("data", given, given, "h:3", SETTINGS))
    names = ("internal", "external", "controller")
    assert closed["listener.security.protocol.map"] == ",".join(f"{name.upper()}:SASL_PLAINTEXT" for name in names)
    for name in names:
        assert closed[f"listener.name.{name}.sasl.enabled.mechanisms"] == "PLAIN"
        assert 'user_lab="a\\"b\\\\c";' in closed[f"listener.name.{name}.plain.sasl.jaas.config"]
    open_ = broker.properties("data", given, given, "h:3")
    assert read(open_)["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert "sasl" not in open_


def test_settings_are_read_as_text_or_from_a_file(tmp_path):
    """Nothing is no login."""
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(SETTINGS))
    assert login.read(str(file)) == login.read(json.dumps(SETTINGS)) == SETTINGS
    assert login.read("") == {}


PROGRAMS = [f"lab.programs.{name}" for name in ("consumer", "producer", "exporter", "controller")]
ALLOWED = "a JSON object of strings, or a file of it"


@pytest.mark.parametrize(
    ("module", "text", "allowed"),
    [
        *((module, "s3cret", ALLOWED) for module in (*PROGRAMS, "tests.scenarios.ride_hailing.programs.ingestion")),
        *((PROGRAMS[0], text, ALLOWED) for text in ('{"sasl.password": 7, "s3cret": 1}', '["s3cret"]', "{s3cret")),
        (PROGRAMS[0], '{"sasl.pass": "s3cret"}', "settings of librdkafka (No such configuration"),
    ],
)
def test_settings_that_are_none_are_one_line_that_does_not_show_them(module, text, allowed):
    """In the environment, where a pod has them. All programs have the one flag of lab.kafka.login: each is asked once."""
    line = refused(module, ["--bootstrap-servers=127.0.0.1:9"], {"KAFKA_SETTINGS": text})
    assert f"--kafka-settings: '(not shown)' is not allowed; allowed: {allowed}" in line
    assert "s3cret" not in line


def test_a_broker_with_a_login_takes_no_one_without(closed):
    """On each listener; the right one works, a wrong one is an error of the login's, and not a silence."""
    user, password = closed.settings["sasl.username"], closed.settings["sasl.password"]
    connections = psutil.Process(closed.daemon.process.pid).net_connections("tcp")
    ports = {entry.laddr.port for entry in connections if entry.status == psutil.CONN_LISTEN}
    assert len(ports) == 3
    for port in ports:
        assert asks_for_login(port)
        for request in (CREATE_TOPIC, DESCRIBE_BROKER):
            with Wire(port) as stranger:
                assert stranger.log_in(user, "wrong") == REFUSED
                assert stranger.ask(*request) is None
            with Wire(port) as client:
                assert client.log_in(user, password) == 0
                assert client.ask(*request) is not None


def test_the_programs_log_in(closed, monkeypatch):
    """The producer as a pod is told it; without the login it delivers nothing."""
    topics.create(closed.bootstrap, {"events": 2}, closed.settings)
    command = [sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={closed.bootstrap}", "--profile=steady"]
    command += ["--rate=100", "--duration=1"]
    monkeypatch.setenv("KAFKA_SETTINGS", str(broker.settings_file(closed.run)))
    assert subprocess.run(command, timeout=180, check=False).returncode == 0
    lags = LagReader(closed.bootstrap, "none", "events", settings=closed.settings).read()
    assert sum(lag.end for lag in lags.values()) == 100


TLS = {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CHAIN", "ssl.key.pem": "KEY"}


def test_a_login_of_the_labs_own_broker():
    """Spark's connector takes Java's, KEDA parameters; without a login neither has any."""
    jaas = forms.spark(SETTINGS)["kafka.sasl.jaas.config"]
    assert jaas.endswith(' required username="lab" password="a\\"b\\\\c";')
    assert forms.keda(SETTINGS) == {"sasl": "plaintext", "username": "lab", "password": 'a"b\\c'}
    assert forms.spark({}) == login.server_properties({}, ["A"]) == forms.keda({}) == {}
    assert forms.keda(login.new()).keys() == {"sasl", "username", "password"}


@pytest.mark.parametrize(("mechanism", "named"), [("SCRAM-SHA-256", "scram_sha256"), ("SCRAM-SHA-512", "scram_sha512")])
@pytest.mark.parametrize("field", ["sasl.mechanism", "sasl.mechanisms"])
def test_scram_over_tls(mechanism, named, field):
    """With the broker's authority alone: no certificate of the client's own. librdkafka has two names for the mechanism."""
    given = {key: value for key, value in SETTINGS.items() if key != "sasl.mechanism"}
    given |= {"security.protocol": "SASL_SSL", field: mechanism, "ssl.ca.pem": "CA"}
    assert forms.keda(given) == {"sasl": named, "username": "lab", "password": 'a"b\\c', "tls": "enable", "ca": "CA"}
    spark = forms.spark(given)
    assert spark.pop("kafka.sasl.jaas.config").startswith("org.apache.kafka.common.security.scram.ScramLoginModule required ")
    assert spark == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "CA",
    }


def test_mutual_tls():
    """A certificate in the place of a password."""
    given = {"security.protocol": "SSL", **TLS}
    assert forms.keda(given) == {"tls": "enable", "ca": "CA", "cert": "CHAIN", "key": "KEY"}
    assert forms.spark(given) == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "CA",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CHAIN",
        "kafka.ssl.keystore.key": "KEY",
    }


def test_files_are_read_because_a_pod_does_not_see_them(tmp_path):
    """A file that is not there is one line without its name, which may say something."""
    (tmp_path / "ca.pem").write_text("CA")
    assert forms.inline({"ssl.ca.location": str(tmp_path / "ca.pem"), "a": "b"}) == {"ssl.ca.pem": "CA", "a": "b"}
    line = r"'\(not shown\)' is not allowed; allowed: a file that can be read in ssl.key"
    with pytest.raises(InputError, match=line) as error:
        forms.inline({"ssl.key.location": str(tmp_path / "s3cret.pem")})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"security.protocol": "s3cret"}, "security.protocol PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL"),
        ({"sasl.mechanism": "s3cret"}, "sasl.mechanism PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512"),
        ({"security.protocol": "PLAINTEXT"}, "neither KEDA nor Spark is told of sasl.mechanism, sasl.password, sasl.username"),
        ({"ssl.ca.pem": "s3cret"}, "neither KEDA nor Spark is told of ssl.ca.pem"),
        ({"client.id": "s3cret"}, "neither KEDA nor Spark is told of client.id"),
        ({"sasl.username": None}, "sasl.username and sasl.password beside PLAIN"),
    ],
)
@pytest.mark.parametrize("form", [forms.spark, forms.keda])
def test_what_has_no_form_is_one_line_that_shows_no_value(form, change, allowed):
    """What one client would be told and another not would fail in the middle of a trial."""
    with pytest.raises(InputError, match=allowed) as error:
        form({name: value for name, value in (SETTINGS | change).items() if value})
    assert "s3cret" not in str(error.value)
