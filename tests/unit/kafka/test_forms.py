"""A login in the forms of Spark and of KEDA: SASL by three mechanisms, TLS, both, and neither."""

import pytest

from lab.errors import InputError
from lab.kafka import forms, login

PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "lab", "sasl.password": 'a"b\\c'}
TLS = {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CHAIN", "ssl.key.pem": "KEY"}


def test_a_login_of_the_labs_own_broker():
    """Spark's connector takes Java's, KEDA parameters; without a login neither has any."""
    jaas = forms.spark(PLAIN)["kafka.sasl.jaas.config"]
    assert jaas.endswith(' required username="lab" password="a\\"b\\\\c";')
    assert forms.keda(PLAIN) == {"sasl": "plaintext", "username": "lab", "password": 'a"b\\c'}
    assert forms.spark({}) == login.server_properties({}, ["A"]) == forms.keda({}) == {}
    assert forms.keda(login.new()).keys() == {"sasl", "username", "password"}


@pytest.mark.parametrize(("mechanism", "named"), [("SCRAM-SHA-256", "scram_sha256"), ("SCRAM-SHA-512", "scram_sha512")])
@pytest.mark.parametrize("field", ["sasl.mechanism", "sasl.mechanisms"])
def test_scram_over_tls(mechanism, named, field):
    """With the broker's authority alone: no certificate of the client's own. librdkafka has two names for the mechanism."""
    given = {key: value for key, value in PLAIN.items() if key != "sasl.mechanism"}
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
        form({name: value for name, value in (PLAIN | change).items() if value})
    assert "s3cret" not in str(error.value)
