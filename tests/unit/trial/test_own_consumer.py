"""A user's own consumer in a trial: what is applied for it, what is waited for, and the line where it does not come to work."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from kubernetes.client.exceptions import ApiException

from lab.errors import InputError, LabFault
from lab.inputs import objects
from lab.inputs.own_consumer import BLACK_BOX, RECEIPTS, REPORTS, login_variables
from lab.inputs.workload import Workload
from lab.kafka import login
from lab.trial import own_consumer, phases, traffic_start, user_files
from lab.trial.addresses import login_objects
from lab.trial.listen import Listener
from lab.wait import until
from tests.unit.inputs.written import trial
from tests.unit.measure.built import record

ENV = "KAFKA_TOPIC=$(TOPIC)"


def applied(runtime="binary", **work):
    """What a trial applies, by kind and name."""
    chosen = trial("plateau", "lag-4500", Workload(**work), runtime=runtime)
    made = objects.applied(chosen, chosen.environment("127.0.0.1:9092", "x"))
    return {(item["kind"], item["metadata"]["name"]): item for item in made}


@pytest.mark.parametrize(
    ("runtime", "command", "image"),
    [("binary", [sys.executable, "-m", "mine"], "elastic-lab/programs/consumer"), ("kind", None, "registry/mine:1")],
)
def test_the_deployment_runs_the_users_consumer(runtime, command, image):
    """Its command where pods are processes, else its image; without what was the lab's consumer's own."""
    made = applied(runtime, command=f"{sys.executable} -m mine", image="registry/mine:1", env=ENV, rung=RECEIPTS)
    template = made["Deployment", "consumer"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert (container.get("command"), container["image"], container.get("workingDir")) == (
        command,
        image,
        command and str(Path.cwd()),
    )
    assert env["KAFKA_TOPIC"] == "$(TOPIC)"
    assert container["envFrom"] == [{"configMapRef": {"name": "trial"}}]
    assert list(env).index("POD_NAME") < list(env).index("KAFKA_TOPIC")
    assert ("PATH" in env) == (runtime == "binary")
    assert not container.keys() & {"livenessProbe", "readinessProbe", "ports"}
    assert template["metadata"]["annotations"] == {}


@pytest.mark.parametrize(("rung", "members"), [(BLACK_BOX, None), (REPORTS, "off"), (RECEIPTS, "none")])
def test_who_tells_less_is_observed(rung, members):
    """A black box in all; of one that reports what it owns only the commits. Nothing is reported twice."""
    made = applied(command="true", rung=rung)
    observer = made.get(("Deployment", "observer"))
    (container,) = (
        observer["spec"]["template"]["spec"]["containers"] if observer else ({"env": [{"name": "MEMBERS", "value": "none"}]},)
    )
    assert {one["name"]: one.get("value") for one in container["env"]}.get("MEMBERS") == members
    (own,) = made["Deployment", "consumer"]["spec"]["template"]["spec"]["containers"]
    assert ({"name": "REPORTS_TOPIC", "value": ""} in own["env"]) == (rung == BLACK_BOX)
    assert ("Deployment", "observer") not in applied()


def test_a_login_is_found_in_a_trial_as_in_the_check():
    """Each variable is a key of the Secret that a trial makes, which there need not be; without a login there is none."""
    settings = login.new()
    secret = login_objects(settings, "127.0.0.1:9092")[0]["stringData"]
    (container,) = applied(command="true")["Deployment", "consumer"]["spec"]["template"]["spec"]["containers"]
    named = {one["name"]: one["valueFrom"].get("secretKeyRef") for one in container["env"] if "valueFrom" in one}
    found = {name: key for name, key in named.items() if key}
    assert {name: secret[key["key"]] for name, key in found.items()} == login_variables(settings)
    assert all(key["optional"] for key in found.values())
    assert login_variables({}) == {}


@pytest.mark.parametrize(
    ("work", "runtime", "line"),
    [
        ({"image": "mine"}, "binary", "trial: command: missing"),
        ({"command": "no-such-program"}, "binary", "'no-such-program' is not allowed; allowed: a program that is there"),
        ({"command": "true"}, "kind", "trial: image: missing; allowed: an image of your own consumer on kind"),
        ({"command": "true"}, "existing", "an image of your own consumer on an existing cluster, where pods are containers"),
        ({"client": "java"}, "existing", "client: 'java' is not allowed; allowed: python on an existing cluster"),
    ],
)
def test_a_consumer_that_the_runtime_cant_start_is_refused(work, runtime, line):
    """Before anything starts."""
    with pytest.raises(InputError) as refused:
        trial("plateau", "lag-4500", Workload(**work), runtime=runtime)
    assert line in str(refused.value)


def pod(restarts, code=1, **metadata):
    """A pod that was started anew so often."""
    status = {"restartCount": restarts, "lastState": {"terminated": {"exitCode": code}}}
    return {"metadata": {"name": "a", **metadata}, "status": {"containerStatuses": [status]}}


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        ([pod(1)], None),
        ([pod(2, 137)], ("a", 2, 137)),
        ([pod(2, deletionTimestamp="x")], None),
        ([{"metadata": {"name": "b"}}, pod(3)], ("a", 3, 1)),
    ],
)
def test_a_consumer_that_crashes_again_and_again_is_told(pods, found):
    """Once is an accident; a pod that is told to go may end as it likes."""
    assert own_consumer.crash(pods) == found


def leaving(state, **metadata):
    """A pod whose container is in this state, and whose grace is over at 100 s."""
    gone = {"deletionTimestamp": "1970-01-01T00:01:40Z"}
    return {"metadata": {"name": "a", **gone, **metadata}, "status": {"containerStatuses": [{"state": {state: {}}}]}}


@pytest.mark.parametrize(
    ("seen", "now", "found"),
    [
        (leaving("running"), 97, []),
        (leaving("running"), 99, ["a"]),
        (leaving("terminated"), 99, []),
        (leaving("running", deletionTimestamp=None), 99, []),
    ],
)
def test_a_consumer_that_ignores_sigterm_is_seen_before_it_is_killed(seen, now, found):
    """While its output can still be read."""
    assert own_consumer.overdue([seen], now) == found


@pytest.mark.parametrize(
    ("owned", "elsewhere", "rung", "asked", "line"),
    [
        ({}, {"topics": ["orders"]}, BLACK_BOX, False, "its members read orders: it is to take $TOPIC"),
        ({"a": 3, "b": 0}, None, BLACK_BOX, False, "1 members own 3 of 24 partitions"),
        ({}, None, BLACK_BOX, False, "g has no member that owns a partition: it is to take $GROUP and $TOPIC"),
        ({}, None, BLACK_BOX, True, "and to log in by $KAFKA_SETTINGS"),
        ({}, None, REPORTS, True, "no report of partitions that were assigned"),
    ],
)
def test_a_consumer_that_does_not_come_to_work_is_told_why(owned, elsewhere, rung, asked, line):
    """By what is seen of its group, or not told by it."""
    assert line in own_consumer.stranger(owned, elsewhere, rung, 24, "g", asked)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"waiting": {"reason": "ImagePullBackOff", "message": "gone"}}, "a does not start: ImagePullBackOff: gone"),
        ({"waiting": {"reason": "InvalidImageName"}}, "a does not start: InvalidImageName: no reason is given"),
        ({"waiting": {"reason": "ContainerCreating"}}, ""),
        ({"running": {}}, ""),
    ],
)
def test_an_image_that_can_t_be_had_is_told_before_what_its_group_lacks(state, line):
    """The first pod that waits says why; one without a container yet does not."""
    waits = {"metadata": {"name": "a"}, "status": {"containerStatuses": [{"state": state}]}}
    assert own_consumer.unstarted([{"metadata": {"name": "b"}}, waits]) == line


@pytest.mark.parametrize(
    ("raised", "said"), [("baseline of 1", "baseline of 1 consumers settled: not within 9 s: why"), ("died", "died")]
)
def test_the_line_says_why_only_where_it_was_waited_for_in_vain(monkeypatch, raised, said):
    """A component that died is no matter of the consumer."""

    def wait(condition, deadline_s, what, check):
        raise LabFault(f"{what}: not within 9 s" if raised != "died" else raised)

    monkeypatch.setattr(traffic_start, "settle_s", lambda stage: 9)
    chosen = SimpleNamespace(id="x", policy=SimpleNamespace(start=1))
    stage = SimpleNamespace(inputs=chosen, baseline=SimpleNamespace(replicas=1, why=""), check=None)
    stage.transitions, stage.why_not_at_work = SimpleNamespace(wait=wait), lambda: "why"
    with pytest.raises(LabFault) as fault:
        phases._settle(stage, [])
    assert str(fault.value) == said


@pytest.mark.parametrize(("owned", "settled"), [({"old": 0, "new": 24}, True), ({"a": 12, "b": 12}, False), ({"a": 23}, False)])
def test_a_member_from_before_a_restart_is_none(monkeypatch, owned, settled):
    """What it owned is its successor's, which may have another name."""
    monkeypatch.setattr(traffic_start, "settle_s", lambda stage: 9)
    found = []
    chosen = SimpleNamespace(id="x", partitions=24, policy=SimpleNamespace(start=1, hpa=None))
    stage = SimpleNamespace(inputs=chosen, baseline=SimpleNamespace(replicas=1, why=""), check=None, ready=lambda *_: True)
    stage.reports = SimpleNamespace(owned=lambda: owned)
    stage.transitions = SimpleNamespace(wait=lambda condition, *_: found.append(condition()))
    phases._settle(stage, [])
    assert found == [settled]


def test_a_record_without_receipts_says_why(tmp_path):
    """The rung, in the words of the file."""
    made = record(tmp_path, inputs={"workload": {"command": "true", "rung": BLACK_BOX}})
    assert str(made.absent("receipts")).endswith("has no receipts: the consumer writes no receipts (rung: black-box)")
    assert str(made.absent("samples")).endswith("has no samples")


@pytest.mark.parametrize(("rung", "lacks"), [(BLACK_BOX, True), (RECEIPTS, False)])
def test_the_session_says_what_runs_in_the_place_of_the_labs_consumer(rung, lacks):
    """And what can't be said of it."""
    given = trial("plateau", "lag-4500", Workload(command="true", rung=rung))
    note = user_files.consumer_note(given)
    told = "what your pods take of this machine is counted as the lab's consumer takes: check-consumer measures yours"
    assert [told, note] == user_files.header_lines(given)[-2:]
    assert "'true', in the place of the lab's; it tells: " in note
    assert ("Loss, copies" in note) == lacks
    assert user_files.consumer_note(trial()) == ""


def test_a_report_from_stdout_comes_among_the_others(bootstrap, tmp_path):
    """It is heard, and kept in the record."""
    heard = Listener(bootstrap, [], tmp_path / "events.jsonl", lambda: None)
    heard.give({"event": "assigned", "pod": "a", "partitions": [1], "owned": 1, "t": 5.0})
    until(lambda: bool(heard.owned()), 20, "the report heard")
    heard.close()
    assert heard.owned() == {"a": 1}
    assert '"owned": 1' in (tmp_path / "events.jsonl").read_text()


def said(*counts):
    """Lines of an output: a report for each count, and the beginning of one more."""
    return [*(b'{"event": "assigned", "owned": %d, "t": null}\n' % count for count in counts), b'{"event": "assi']


def test_an_output_that_ends_before_its_consumer_is_read_again(monkeypatch):
    """From where it ended, each report once. One that can't be read any more is a loss, but of a consumer that may be gone."""
    monkeypatch.setattr(own_consumer, "LATE_S", 0.0)
    outputs, taken, lost = [said(1), said(1, 2)], [], []

    def read(*_, **__):
        if not outputs:
            raise ApiException(reason="gone")
        return outputs.pop(0)

    monkeypatch.setattr("kubernetes.client.CoreV1Api", lambda _: SimpleNamespace(read_namespaced_pod_log=read))
    output = own_consumer.Stdout(None, "x", taken.append, lost.append)
    status = {"containerStatuses": [{"containerID": "1", "state": {"running": {}}}]}

    def look(**metadata):
        output.follow([{"metadata": {"name": "a"} | metadata, "status": status}])
        return bool(lost)

    until(look, 30, "the loss")
    assert [row["owned"] for row in taken if row["t"]] == [1, 2]
    assert lost == ["the output of a can't be read"]
    lost.clear()
    assert not look(deletionTimestamp="x")
