"""Bring your own: files in the place of the acceptance's, checked before anything starts, and then only it runs."""

import json
import os
import re
import subprocess
from dataclasses import replace

import pytest
import yaml

from lab import paths
from lab.errors import InputError
from lab.inputs import inputs, workload
from lab.inputs import scale as scales
from lab.inputs.own_consumer import OFF
from lab.inputs.workload import Workload
from lab.trial import user_files
from lab.trial.user_files import UserFiles
from tests.suite import experiments
from tests.unit.inputs.written import refused

EXAMPLES = paths.PROJECT / "docs" / "examples"
ORDERS, PEAK, ENRICHER = (EXAMPLES / f"{name}.yaml" for name in ("orders", "evening-peak", "enricher"))


def read(chosen):
    """The inputs of an acceptance of these files at the scale that fits them."""
    plan = chosen.plan()
    traffic, policy, work = (plan.pop(name) for name in ("profile", "policy", "workload"))
    return inputs.read(traffic, policy, work, 1, chosen.scale(), "binary", **plan)


def written(folder, name, content):
    """A file of the user's with ``content``."""
    file = folder / name
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def changed(file, **fields):
    """The content of a flat example with fields set."""
    return yaml.safe_load(file.read_text()) | fields


def pytest_says(*options, results):
    """What the suite prints and how it ends, on a machine with nothing on its PATH."""
    alone = os.environ | {"PATH": str(results)}
    command = experiments(f"--results={results}", *map(str, options))
    return subprocess.run(command, cwd=paths.PROJECT, env=alone, capture_output=True, text=True, timeout=300, check=False)


def test_the_examples_are_a_trial_of_their_own():
    """Names, partitions and workload are the files'; what was replaced is in the inputs, and so in the identity."""
    chosen = read(UserFiles(ORDERS, PEAK, ENRICHER))
    assert (chosen.profile_name, chosen.policy_name, chosen.partitions) == ("evening-peak", "orders", 12)
    assert chosen.workload == Workload(process_ms="5-15", concurrency=1, cpu_request_m=70)
    assert [one["field"] for one in chosen.to_dict()["replaced"]] == [one.field for one in chosen.replaced]
    assert len(chosen.replaced) == 8
    json.dumps(chosen.to_dict())


def test_what_is_not_brought_is_the_acceptances_own():
    """Without a file it is experiment 2's trial; with one the other two are its."""
    own = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    assert read(UserFiles()).id == own.id
    chosen = read(UserFiles(scaledobject=ORDERS))
    assert (chosen.profile_name, chosen.workload, chosen.partitions) == (own.profile_name, own.workload, own.partitions)


def test_a_file_of_any_name_makes_an_identity_kubernetes_takes(tmp_path):
    """A namespace takes small letters, digits and hyphens, 63 in all."""
    profile = written(tmp_path, "Our_Evening Peak (2026), second version.yaml", PEAK.read_text())
    chosen = read(UserFiles(written(tmp_path, "___.yaml", ORDERS.read_text()), profile))
    assert re.fullmatch(r"our-evening-peak-202-own-[0-9a-f]{8}", chosen.id)
    assert len(f"trial-{chosen.id}-0000") <= 63


def test_other_partitions_reach_the_topic_and_the_identity(tmp_path):
    """partitions are the workload's and not a setting of the consumer. A floor beyond them would never settle."""
    more, few = (written(tmp_path, f"{count}.yaml", changed(ENRICHER, partitions=count)) for count in (16, 2))
    one, other = read(UserFiles(ORDERS, PEAK, ENRICHER)), read(UserFiles(ORDERS, PEAK, more))
    assert (other.partitions, other.workload) == (16, one.workload)
    assert other.id != one.id
    with pytest.raises(InputError, match=r"spec.minReplicaCount: 3 is not allowed; allowed: at most the 2 partitions"):
        read(UserFiles(ORDERS, PEAK, few))


def test_an_unquoted_on_is_on(tmp_path):
    """To YAML it is true."""
    for text, drain in (("on", "on"), ("off", "off"), ('"off"', "off")):
        chosen, partitions = workload.load(written(tmp_path, "w.yaml", f"kind: Workload\ndrain: {text}\nprocess_ms: 6\n"))
        assert (chosen.drain, chosen.process_ms, partitions) == (drain, "6", 24)


def test_of_a_file_with_more_in_it_the_scaledobject_is_taken(tmp_path, caplog):
    """What about it deserves a line is logged before anything starts."""
    target = yaml.safe_load(ORDERS.read_text())["spec"]["scaleTargetRef"]
    rival = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "x", "namespace": "orders"}}
    text = "---\n".join(("# Source\n", yaml.safe_dump(rival | {"spec": {"scaleTargetRef": target}}), ORDERS.read_text()))
    chosen = read(UserFiles(written(tmp_path, "orders.yaml", text)))
    assert chosen == read(UserFiles(ORDERS))
    assert "HorizontalPodAutoscaler x beside it scales the same Deployment orders-enricher" in caplog.text


def test_what_will_run_is_told(tmp_path):
    """What the traffic asks, what the pods can take, and each replaced field."""
    told = user_files.header_lines(read(UserFiles(ORDERS, PEAK, ENRICHER)))
    assert told[1] == (
        "traffic 150 to 900 messages/s; a pod takes 100/s, the floor of 3 pods 300/s, 12 pods on 12 partitions 1,200/s"
    )
    given = "replaced spec.triggers[0].authenticationRef: {'name': 'orders-kafka'}"
    assert f"{given} -> 'a TriggerAuthentication of its own, where the brokers of the trial ask for a login'" in told
    assert "pods join as soon as they run: no start_s is in the workload" in told
    assert len(told) == 3 + 8
    late = written(tmp_path, "late.yaml", f"{ENRICHER.read_text()}\nstart_s: 20\n")
    assert not any("start_s" in one for one in user_files.header_lines(read(UserFiles(ORDERS, PEAK, late))))
    assert "spec.triggers[0].metadata.topic ('orders')" in user_files.replacement_note(read(UserFiles(ORDERS)))
    assert user_files.replacement_note(read(UserFiles())) == ""


def test_a_ceiling_below_the_traffic_is_told(tmp_path):
    """Half of the pods make a backlog that a pod for each partition would not; traffic of the user's own has no rates."""
    low = written(tmp_path, "low.yaml", ORDERS.read_text().replace("maxReplicaCount: 12", "maxReplicaCount: 6"))
    line = "the ceiling of 6 pods makes events 300 s older, wanted < 90 s"  # (900 - 600) x 600 s at 600 messages/s
    chosen = read(UserFiles(low, PEAK, ENRICHER))
    assert line in user_files.header_lines(chosen)
    assert line not in user_files.header_lines(replace(chosen, driver=OFF))


def test_how_many_pods_of_a_client_this_machine_carries_is_told(monkeypatch, tmp_path):
    """Of another client than Python's; the trial itself refuses more."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("lab.host.machine.total_bytes", lambda: 24 * 2**30)
    work = written(tmp_path, "java.yaml", "kind: Workload\npartitions: 12\nclient: java\n")
    told = user_files.header_lines(read(UserFiles(ORDERS, PEAK, work)))
    asked = "up to 12 pods with client java, up to 9 of which start together"
    assert f"{asked}: 2 cores and 24,576 MiB carry 16 such pods, and 7 that start together" in told


def test_what_a_profile_can_not_show_is_told_beforehand(tmp_path):
    """No data is not a pass, and no one should wait for it."""
    steps = "kind: steps\nduration: 600\nsteps: [{at: 0, rate: 1, phase: baseline}, {at: 60, rate: 9, phase: peak}]\n"
    profiles = {
        "kind: steady\nrate: 10\nduration: 600\n": "the profile never leaves its phase baseline: reaction and drain",
        steps: "the profile ends in phase peak, not in drain or lull: the drain will be no data",
    }
    for profile, line in profiles.items():
        told = user_files.header_lines(read(UserFiles(profile=written(tmp_path, "p.yaml", profile))))
        assert any(one.startswith(line) for one in told)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"kind": "Deployment"}, "kind: 'Deployment' | Workload"),
        ({"process_msec": 5}, "process_msec: 5 | did you mean process_ms?"),
        ({"process_ms": "10-2"}, "process_ms: '10-2' | 6 or 2-10, 0.001 to 600,000"),
        ({"concurrency": 20_000}, "concurrency: 20000 | 1 to 10,000"),
        ({"concurrency": True}, "concurrency: True | 1 to 10,000"),
        ({"poll_ms": None}, "poll_ms: missing | 1 to 600,000"),
        ({"drain": "perhaps"}, "drain: 'perhaps' | on or off"),
        ({"partitions": 0}, "partitions: 0 | a whole number from 1 to 200"),
        ({"partitions": 2.5}, "partitions: 2.5 | a whole number from 1 to 200"),
        ({"start_s": {"p50": 8}}, "start_s: {'p50': 8} | 0 to 3,600 s: all pods of a trial start alike; simulate, tune"),
        ({"command": "true", "concurrency": 1}, "process_ms: missing | ms that a message takes of yours: the drain is judged"),
        ({"command": "true", "process_ms": 9}, "concurrency: missing | how many messages a pod processes at a time of yours"),
        ({"nodes": {"arrives_s": 9, "pods": 4, "room": 8}}, "nodes: {'arrives_s': 9, 'pods': 4, 'room': 8} | none: a trial"),
    ],
)
def test_a_bad_workload_is_one_clear_line(tmp_path, content, line):
    """File, field, value and what is allowed."""
    file = written(tmp_path, "w.yaml", {"kind": "Workload"} | content)
    assert refused(workload.load, file).startswith(f"{file}: {line}")


@pytest.mark.services
def test_a_file_that_can_not_be_used_ends_the_session(tmp_path):
    """One line with file, field, value and what is allowed; exit code 2; nothing collected or started."""
    file = written(tmp_path, "my.yaml", ORDERS.read_text().replace("minReplicaCount: 3", "minReplicas: 3"))
    ran = pytest_says(f"--scaledobject={file}", results=tmp_path)
    assert ran.returncode == 2
    (said,) = ran.stderr.splitlines()
    assert said.startswith(f"Exit: {file}:14: spec.minReplicas: 3 is not allowed; did you mean minReplicaCount?")
    assert "collected" not in ran.stdout


@pytest.mark.services
def test_with_a_file_only_the_acceptance_is_selected(tmp_path):
    """The session says what it will run and what it replaced. Without a file the acceptance is deselected, not skipped."""
    ran = pytest_says(f"--scaledobject={ORDERS}", f"--workload={ENRICHER}", "--collect-only", results=tmp_path)
    assert re.findall(r"<Function (\w+)", ran.stdout) == ["test_the_policy_is_accepted"]
    assert "replaced metadata.namespace: 'orders' -> (nothing)" in ran.stdout
    assert "traffic 2,420 to 24,200 messages/s" in ran.stdout
    ran = pytest_says("--collect-only", results=tmp_path)
    assert "test_the_policy_is_accepted" not in ran.stdout
    assert "test_a_10x_spike_is_answered" in ran.stdout
    assert re.search(r"\d deselected", ran.stdout)
    assert "skipped" not in ran.stdout


def test_what_the_page_shows_can_be_brought(tmp_path):
    """The YAML of docs/bring-your-own.md."""
    page = (paths.PROJECT / "docs" / "bring-your-own.md").read_text()
    profile, work = (
        written(tmp_path, f"{n}.yaml", part) for n, part in enumerate(re.findall(r"```yaml\n(.*?)```", page, re.S))
    )
    chosen = read(UserFiles(ORDERS, profile, work))
    assert [phase for _, _, phase in chosen.profile.phases()] == ["baseline", "spike", "drain"]
    assert (chosen.partitions, chosen.workload.rate) == (12, 100)
