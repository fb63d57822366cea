"""What a session is asked: options that contradict each other or lack a part are one line before anything starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lab import options
from lab.errors import InputError
from tests.unit.inputs.written import refused

EXISTING = ["--cluster=existing", "--scale=real", "--lab-context=stage", "--lab-bootstrap-servers=kafka:9092"]


def parse(*words: str, kubeconfig: str | None = "kube.yaml", **ini: str) -> argparse.Namespace:
    """The options as pytest would have them with ``ini`` in its file; ``--kubeconfig`` is pytest-kind's."""
    parser, values = argparse.ArgumentParser(), dict[str, str | None]()
    options.declare(parser.add_argument, lambda name, help, default: values.update({name: default}))
    given = parser.parse_args(words, argparse.Namespace(kubeconfig=kubeconfig))
    options.configure(given, (values | ini).__getitem__, Path("/ours"))
    return given


def test_what_is_given_beside_an_existing_cluster_is_enough() -> None:
    """Pods see the same Kafka unless they are told another; no Prometheus is no fault. Stored records need no cluster."""
    given = parse(*EXISTING, "--lab-prometheus=http://prometheus:9090/")
    options.check(given)
    access = options.access(given)
    assert access is not None
    assert (access.kubeconfig, access.context, access.pod_bootstrap) == (Path("kube.yaml"), "stage", "kafka:9092")
    assert (access.prometheus, access.image, access.kafka_settings) == ("http://prometheus:9090", None, {})
    assert options.access(parse()) is None
    options.check(parse("--cluster=existing", f"--from-records={Path(__file__).parents[2] / 'records' / 'judged'}"))


def test_a_project_says_once_where_its_cluster_is() -> None:
    """The command line goes before the configuration file; a file that this names is beside it."""
    site = {"lab_context": "test", "lab_bootstrap_servers": "kafka:1", "lab_kafka_settings": "login.json"}
    given = parse(*EXISTING[:3], **site)
    assert (given.lab_context, given.lab_bootstrap_servers, given.lab_spark_master) == ("stage", "kafka:1", "local[*]")
    assert given.lab_kafka_settings == "/ours/login.json"
    assert parse(lab_kafka_settings='{"a": "b"}').lab_kafka_settings == '{"a": "b"}'


def test_a_path_that_moves_the_root_is_refused(tmp_path: Path) -> None:
    """pytest takes one that stands alone for a test; below its own folder it moves nothing, nor joined."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs.yaml"
    (ours / "sub").mkdir(parents=True)
    theirs.touch()
    options.check_root(["-m", "spike", f"--scaledobject={theirs}", "--results", "sub", "--workload", "none.yaml"], ours, ours)
    for words, root in ((["--scaledobject", str(theirs)], tmp_path), (["--results", "sub"], ours / "sub")):
        with pytest.raises(InputError, match=f"allowed: {words[0]}={words[1]}, in one word"):
            options.check_root(words, ours, root)


@pytest.mark.parametrize(
    ("words", "kubeconfig", "line"),
    [
        (EXISTING, None, "--kubeconfig: None | given beside --cluster existing"),
        (EXISTING[:2] + EXISTING[3:], "k", "--lab-context: None |"),
        (EXISTING[:3], "k", "--lab-bootstrap-servers: None |"),
        ([EXISTING[0], *EXISTING[2:]], "k", "--scale: 'quick' | one whose times are real, as real"),
        ([*EXISTING, "--lab-kafka-settings=s3cret"], "k", "--lab-kafka-settings: '(not shown)' | a JSON object"),
        (["--repeat=0"], None, "--repeat: 0 | a whole number from 1"),
        (["--lab-hpa-sync-s=0.5"], None, "--lab-hpa-sync-s: 0.5 | 1 to 60 s"),
        (["--lab-order-seed=-1"], None, "--lab-order-seed: -1 | a whole number from 0 to 999,999"),
        (["--lab-recheck"], None, "--lab-recheck: True |"),
        (["--resume", "--from-records=x"], None, "--resume: True |"),
    ],
)
def test_what_can_not_work_is_one_line(words: list[str], kubeconfig: str | None, line: str) -> None:
    """Of a login no value is shown."""
    said = refused(options.check, parse(*words, kubeconfig=kubeconfig))
    assert f"command line: {line}" in said
    assert "s3cret" not in said
