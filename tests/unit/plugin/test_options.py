"""What a session is asked: options that contradict each other or lack a part are one line before anything starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from lab import options, project
from lab.commands import report, simulate
from lab.errors import InputError
from lab.flags import Flags
from lab.project import Project
from tests.unit.inputs.written import refused

EXISTING = ["--cluster=existing", "--scale=real", "--lab-context=stage", "--lab-bootstrap-servers=kafka:9092"]
RECORDS = Path(__file__).parents[2] / "records" / "judged"


def parse(*words: str, kubeconfig: str | None = "kube.yaml", ours: Project | None = None, **ini: str) -> argparse.Namespace:
    """The options as pytest would have them with ``ini`` in its file; ``--kubeconfig`` is pytest-kind's."""
    parser, values = argparse.ArgumentParser(), dict[str, str | None]()
    options.declare(parser.add_argument, lambda name, help, default: values.update({name: default}))
    given = parser.parse_args(words, argparse.Namespace(kubeconfig=kubeconfig))
    options.configure(given, (values | ini).__getitem__, Path("/ours"), ours or Project())
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
    options.check(parse("--cluster=existing", f"--from-records={RECORDS}"))


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
        (EXISTING, None, "--kubeconfig: missing | given beside --cluster existing"),
        (EXISTING[:2] + EXISTING[3:], "k", "--lab-context: missing |"),
        (EXISTING[:3], "k", "--lab-bootstrap-servers: missing |"),
        ([EXISTING[0], *EXISTING[2:]], "k", "--scale: 'quick' | one whose times are real, as real"),
        ([*EXISTING, "--lab-kafka-settings=s3cret"], "k", "--lab-kafka-settings: '(not shown)' | a JSON object"),
        ([*EXISTING, "--lab-prometheus=prom.staging"], "k", "--lab-prometheus: 'prom.staging' | a URL such as http://"),
        (["--repeat=0"], None, "--lab-repeat: '0' | 1 to 10,000"),
        (["--lab-hpa-sync-s=0.5"], None, "--lab-hpa-sync-s: '0.5' | 1 to 60"),
        (["--lab-order-seed=-1"], None, "--lab-order-seed: '-1' | 0 to 999,999"),
        (["--faults=-1"], None, "--lab-faults: '-1' | 0 to 999,999"),
        (["--faults=1", "--replay-faults=trial.json"], None, "--replay-faults: 'trial.json' | none beside --faults"),
        (["--minimise=0"], None, "--lab-minimise: '0' | 1 to 1,000"),
        (["--minimise=9", f"--from-records={RECORDS}"], None, "--minimise: 9 | none beside --from-records"),
        (["--lab-recheck"], None, "--lab-recheck: True |"),
        (["--resume", f"--from-records={RECORDS}"], None, "--resume: True |"),
    ],
)
def test_what_can_not_work_is_one_line(words: list[str], kubeconfig: str | None, line: str) -> None:
    """Of a login no value is shown."""
    said = refused(lambda: options.check(parse(*words, kubeconfig=kubeconfig)))
    assert f"command line: {line}" in said
    assert "s3cret" not in said


def test_all_that_an_existing_cluster_lacks_is_said_at_once() -> None:
    """A line for each option."""
    with pytest.raises(InputError) as error:
        options.check(parse(EXISTING[0], "--scale=medium", "--lab-hpa-sync-s=15", kubeconfig=None))
    lacking = ["--kubeconfig", "--lab-context", "--lab-bootstrap-servers"]
    assert [one.field for one in error.value.each] == [*lacking, "--scale", "--lab-hpa-sync-s"]


def test_a_value_is_the_command_lines_then_pytests_then_the_projects(tmp_path: Path) -> None:
    """A project's file is seen from its own folder; commands take what isn't a session's own.

    A session takes the files of a user where the command line has one: it runs the acceptance then, and no other test.
    """
    values = 'scale = "medium"\nrepeat = 3\nresults = "out"\nworkload = "pods.yaml"\nprofile = "plateau"\nstart-s = 60\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.elastic-lab]\n{values}")
    ours = project.read(tmp_path / "below")
    given = parse("--repeat=2", ours=ours, lab_scale="close")
    assert (given.lab_repeat, given.lab_scale, given.lab_results) == (2, "close", tmp_path / "out")
    assert (given.lab_scaledobject, given.lab_workload, given.lab_profile) == (None, None, None)
    given = parse("--scaledobject=orders.yaml", ours=ours)
    assert (given.lab_workload, given.lab_profile) == (tmp_path / "pods.yaml", Path("plateau"))
    assert (parse().lab_repeat, parse().lab_scale, parse().lab_results) == (1, None, Path("results"))
    assert ours.common.keys() == {"results", "workload", "profile", "start-s"}


def test_what_alters_trials_can_be_given_again() -> None:
    """From wherever it is; how a cluster is reached, and what is done with the records, alters none."""
    more = ["--faults=0", "--lab-hpa-sync-s=5", "--lab-order-seed=7", "--resume", "--results=x"]
    given = parse(*EXISTING, *more, "--workload=pods.yaml", lab_name="orders")
    words = ["--lab-workload=pods.yaml", "--lab-name=orders", "--lab-hpa-sync-s=5.0", "--lab-faults=0"]
    assert options.altering(given) == words
    assert options.altering(parse()) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'sacle = "real"',
            "[tool.elastic-lab] sacle: 'real' | did you mean scale? allowed: one of balancer, bootstrap-servers, cluster,",
        ),
        ("scale = = 1", "[tool.elastic-lab]: 'Invalid value (at line 2, column 9)' | TOML"),
        ("repeat = 0", "--lab-repeat: '0' | 1 to 10,000"),
        ("repeat = [1]", "[tool.elastic-lab] repeat: [1] | text or a number"),
    ],
)
def test_a_project_that_can_not_be_used_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    """It is named by its file."""
    (tmp_path / "pyproject.toml").write_text(f"[tool.elastic-lab]\n{text}\n")
    assert f"pyproject.toml: {line}" in refused(lambda: parse(ours=project.read(tmp_path)))


def test_the_options_of_commands_are_options_of_commands() -> None:
    """A name that none knows would be ignored without a word."""
    every = Flags("simulate", environment=False)
    for module in (simulate, report):
        module.add_flags(every)
    assert set(project.COMMON) <= {word.removeprefix("--") for action in every._actions for word in action.option_strings}
