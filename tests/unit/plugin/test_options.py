"""What a session is asked: options that contradict each other or lack a part are one line before anything starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lab import options
from lab.errors import InputError

EXISTING = ["--cluster=existing", "--scale=real", "--context=stage", "--bootstrap-servers=kafka:9092"]


def parse(*words: str, kubeconfig: str | None = "kube.yaml") -> options.Options:
    """The options as pytest would have them; ``--kubeconfig`` is pytest-kind's."""
    parser = argparse.ArgumentParser()
    options.declare(parser.add_argument)
    given: options.Options = parser.parse_args(words, argparse.Namespace(kubeconfig=kubeconfig))
    return given


def test_what_is_given_beside_an_existing_cluster_is_enough() -> None:
    """Pods see the same Kafka unless they are told another; no Prometheus is no fault."""
    given = parse(*EXISTING, "--prometheus=http://prometheus:9090/")
    options.check(given)
    access = options.access(given)
    assert access is not None
    assert (access.kubeconfig, access.context, access.pod_bootstrap) == (Path("kube.yaml"), "stage", "kafka:9092")
    assert (access.prometheus, access.image, access.kafka_settings) == ("http://prometheus:9090", None, {})
    assert options.access(parse()) is None


@pytest.mark.parametrize(
    ("words", "kubeconfig", "said"),
    [
        (EXISTING, None, "--kubeconfig: None is not allowed; allowed: given beside --cluster existing"),
        (EXISTING[:2] + EXISTING[3:], "k", "--context: None is not allowed"),
        (EXISTING[:3], "k", "--bootstrap-servers: None is not allowed"),
        ([EXISTING[0], *EXISTING[2:]], "k", "--scale: 'quick' is not allowed; allowed: one whose times are real, as real"),
        ([*EXISTING, "--kafka-settings=s3cret"], "k", "--kafka-settings: '(not shown)' is not allowed; allowed: a JSON object"),
        (["--repeat=0"], None, "--repeat: 0 is not allowed"),
        (["--recheck"], None, "--recheck: True is not allowed"),
        (["--resume", "--from-records=x"], None, "--resume: True is not allowed"),
    ],
)
def test_what_can_not_work_is_one_line(words: list[str], kubeconfig: str | None, said: str) -> None:
    """Of a login no value is shown."""
    with pytest.raises(InputError) as error:
        options.check(parse(*words, kubeconfig=kubeconfig))
    assert f"command line: {said}" in str(error.value)
    assert "s3cret" not in str(error.value)


def test_judging_stored_records_needs_no_cluster() -> None:
    """Whatever they ran on."""
    options.check(parse("--cluster=existing", f"--from-records={Path(__file__).parents[2] / 'records' / 'judged'}"))
