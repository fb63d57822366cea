"""A user's ScaledObject in a trial: what is replaced, what stays theirs, and what no trial can begin with."""

import json
from functools import partial

import pytest
import yaml

from lab import paths, yamlfile
from lab.inputs import topics
from lab.inputs.adopt import LOGIN, Replaced, adopt
from lab.inputs.scaledobject import parse
from lab.inputs.triggers.common import without_login
from lab.trial import user_files
from tests.unit.inputs.written import CPU, EXTERNAL, changed, refused, trial

ORDERS = paths.PROJECT / "docs" / "examples" / "orders.yaml"
PREFIX = "autoscaling.keda.sh/"
KAFKA = ("spec", "triggers", 0, "metadata")
OURS = {"bootstrapServersFromEnv": "BOOTSTRAP_SERVERS", "consumerGroupFromEnv": "GROUP", "topicFromEnv": "TOPIC"}


theirs = partial(changed, ORDERS)


def test_exactly_what_ties_it_to_their_cluster_is_replaced():
    """Target, servers, group, topic, login and namespace; every other byte is theirs."""
    given = parse(theirs(), "orders.yaml")
    adopted, replaced = adopt(given)
    assert given.content == theirs()  # what was read is left alone
    wanted = theirs()
    del wanted["metadata"]["namespace"], wanted["spec"]["triggers"][0]["authenticationRef"]
    wanted["spec"]["scaleTargetRef"] = {"name": "consumer"}
    kept = {field: wanted["spec"]["triggers"][0]["metadata"][field] for field in ("lagThreshold", "offsetResetPolicy")}
    wanted["spec"]["triggers"][0]["metadata"] = kept | {"allowIdleConsumers": "true"} | OURS
    assert adopted.content == wanted
    assert {one.field for one in replaced} == {
        "metadata.namespace",
        "spec.scaleTargetRef",
        "spec.triggers[0].authenticationRef",
        *(f"spec.triggers[0].metadata.{field}" for field in ("bootstrapServers", "consumerGroup", "topic", "sasl", "tls")),
    }
    assert Replaced("spec.triggers[0].metadata.topic", "orders", "topicFromEnv: TOPIC") in replaced
    assert str(Replaced("metadata.namespace", "orders", None)) == "metadata.namespace: 'orders' -> (nothing)"


ON_ARRIVALS = paths.MANIFESTS / "scaledobjects" / "arrivals-170.yaml"  # a user's file has a trigger on lag
OWN = sorted(set((paths.MANIFESTS / "scaledobjects").glob("*.yaml")) - {ON_ARRIVALS})


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.stem)
def test_nothing_is_replaced_in_the_labs_own(file):
    """Its policies already name what the lab has."""
    given = parse(yamlfile.load(file.read_text()), file)
    adopted, replaced = adopt(given, topics.MOST)  # as many as any of them names
    assert (adopted.content, replaced) == (given.content, ())


def test_names_out_of_their_environment_become_ours():
    """A variable beside a name is replaced with it. Without a topic it means all topics of the group, as it does to KEDA."""
    named = (((*KAFKA, "topicFromEnv"), "ORDERS_TOPIC"), ((*KAFKA, "consumerGroupFromEnv"), "G"))
    apache = (("spec", "triggers", 0, "type"), "apache-kafka")
    adopted, replaced = adopt(parse(theirs(((*KAFKA, "topic"), None), *named, apache), "orders.yaml"))
    assert adopted.content["spec"]["triggers"][0]["type"] == "apache-kafka"
    metadata = adopted.content["spec"]["triggers"][0]["metadata"]
    assert OURS.items() <= metadata.items()
    assert not {"topic", "consumerGroup", "bootstrapServers"} & metadata.keys()
    assert Replaced("spec.triggers[0].metadata.topicFromEnv", "ORDERS_TOPIC", "TOPIC") in replaced
    assert Replaced("spec.triggers[0].metadata.consumerGroupFromEnv", "G", "GROUP") in replaced
    without, _ = adopt(parse(theirs(((*KAFKA, "topic"), None)), "orders.yaml"))
    assert not {"topic", "topicFromEnv"} & without.content["spec"]["triggers"][0]["metadata"].keys()


def test_what_kubectl_get_prints_can_be_brought():
    """What only an API server writes is taken away, and said: with another cluster's owner it would be collected."""
    printed = theirs(
        (("metadata", "uid"), "1"),
        (("metadata", "resourceVersion"), "7"),
        (("metadata", "ownerReferences"), [{"kind": "App", "uid": "2"}]),
        (("status",), {"conditions": []}),
    )
    adopted, replaced = adopt(parse(printed, "orders.yaml"))
    assert adopted.content["metadata"] == {"name": "orders-enricher", "labels": {"team": "orders"}}
    assert "status" not in adopted.content
    assert Replaced("metadata.ownerReferences", "what an API server wrote", None) in replaced


def test_keda_s_and_kubectl_s_own_words_are_no_ones_policy():
    """Its empty block, its label, and the copy of the object that kubectl keeps: with and without them it is the same trial."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{...}"}
    printed = theirs(
        (("metadata", "labels"), {"scaledobject.keda.sh/name": "orders-enricher", "team": "orders"}),
        (("metadata", "annotations"), annotations),
        (("metadata", "creationTimestamp"), "2026-01-01T00:00:00Z"),
        (("spec", "advanced", "scalingModifiers"), {}),
        (("spec", "advanced", "restoreToOriginalReplicaCount"), None),
    )
    adopted, _ = adopt(parse(printed, "orders.yaml"))
    assert adopted.content == adopt(parse(theirs(), "orders.yaml"))[0].content


MSK = {"sasl": "oauthbearer", "saslTokenProvider": "aws_msk_iam", "awsRegion": "eu-west-1", "tls": "enable"}


def test_msk_s_login_is_replaced_and_said():
    """IAM means nothing to a broker on loopback; the region is one of theirs."""
    adopted, replaced = adopt(parse(theirs(*(((*KAFKA, field), value) for field, value in MSK.items())), "orders.yaml"))
    assert not MSK.keys() & adopted.content["spec"]["triggers"][0]["metadata"].keys()
    for field, value in MSK.items():
        assert Replaced(f"spec.triggers[0].metadata.{field}", value, LOGIN) in replaced


def beside(trigger):
    """The example with a second trigger."""
    content = theirs()
    content["spec"]["triggers"].append(trigger)
    return content


def test_a_prometheus_trigger_loses_its_login_too():
    """authModes would ask for secrets that a trial has not; what is secret is neither printed nor kept."""
    metadata = {"serverAddress": "https://p", "query": "sum(x)", "threshold": "1", "authModes": "bearer,apiKey", "apiKey": "s3"}
    given = beside({"type": "prometheus", "metadata": metadata, "authenticationRef": {"name": "prometheus"}})
    adopted, replaced = adopt(parse(given, "orders.yaml"))
    assert adopted.content["spec"]["triggers"][1]["metadata"].keys() == {"serverAddress", "query", "threshold"}
    assert Replaced("spec.triggers[1].metadata.apiKey", "(not shown)", None) in replaced


METADATA = {"serverAddress": "http://p", "threshold": "1"}
ASKED = 'sum(x{topic="orders", consumergroup = "billing"} - y{topic="payments",job="z"})'


@pytest.mark.parametrize(
    ("count", "second"),
    [(1, "$(TOPIC)"), (2, "payments")],  # the only topic stands for another; of two none does
)
def test_a_query_asks_for_the_group_and_the_topic_of_the_trial(count, second):
    """A series of the user's names is not there, and KEDA would take it for 0."""
    metadata = {"serverAddress": "http://p", "query": ASKED, "threshold": "1"}
    adopted, replaced = adopt(parse(beside({"type": "prometheus", "metadata": metadata}), "orders.yaml"), count)
    asked = f'sum(x{{topic="$(TOPIC)", consumergroup = "$(GROUP)"}} - y{{topic="{second}",job="z"}})'
    assert adopted.content["spec"]["triggers"][1]["metadata"]["query"] == asked
    assert Replaced("spec.triggers[1].metadata.query", ASKED, asked) in replaced


@pytest.mark.parametrize("quote", ["'", "`"])
def test_a_name_in_a_query_stands_in_any_quotes(quote):
    """PromQL has three; a name in none of them is no name."""
    query = f"sum(x{{consumergroup={quote}billing{quote}, topic={quote}orders{quote}, job='topic'}})"
    adopted, _ = adopt(parse(beside({"type": "prometheus", "metadata": METADATA | {"query": query}}), "orders.yaml"))
    asked = f"sum(x{{consumergroup={quote}$(GROUP){quote}, topic={quote}$(TOPIC){quote}, job='topic'}})"
    assert adopted.content["spec"]["triggers"][1]["metadata"]["query"] == asked


def test_a_formula_is_on_trial():
    """It decides; only KEDA's empty block is no one's."""
    formula = {"formula": "lag", "target": "10"}
    given = theirs((("spec", "advanced", "scalingModifiers"), formula), (("spec", "triggers", 0, "name"), "lag"))
    adopted, _ = adopt(parse(given, "orders.yaml"))
    assert adopted.content["spec"]["advanced"]["scalingModifiers"] == formula
    assert adopted.modifiers is not None


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ({"topic": "payments"}, "metadata.topic: 'payments' | orders, or topics: 2 in the workload (at most 8)"),
        ({"consumerGroup": "payers"}, "metadata.consumerGroup: 'payers' | the one of spec.triggers[0]"),
        ({"bootstrapServers": "b:9092"}, "metadata.bootstrapServers: 'b:9092' | the one of spec.trigger"),
        ({"topic": "", "topicFromEnv": "T"}, "metadata.topicFromEnv: 'T' | orders, or topics: 2 in"),
    ],
)
@pytest.mark.parametrize("kind", ["kafka", "apache-kafka"])
def test_a_second_topic_group_or_cluster_is_one_clear_line(kind, metadata, line):
    """Both would be the lab's one: each trigger would read the same lag, and nothing would say so."""
    same = {"bootstrapServers": "kafka-1.kafka.svc:9093", "consumerGroup": "orders-enricher", "topic": "orders"}
    adopt(parse(beside({"type": kind, "metadata": same}), "orders.yaml"))
    given = parse(beside({"type": kind, "metadata": same | metadata}), "orders.yaml")
    assert refused(adopt, given).startswith(f"orders.yaml: spec.triggers[1].{line}")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ((("spec", "idleReplicaCount"), 0), "spec.idleReplicaCount: 0 | none: a trial begins"),
        ((("metadata", "annotations"), {f"{PREFIX}paused": "true"}), f"metadata.annotations.{PREFIX}paused: 'true' | none"),
        (
            (("metadata", "annotations"), {f"{PREFIX}paused-replicas": "4"}),
            f"metadata.annotations.{PREFIX}paused-replicas: '4'",
        ),
        ((("spec", "triggers"), [CPU]), "spec.triggers: ['cpu'] | one at least on a group's lag"),
        ((("spec", "triggers"), [EXTERNAL]), """spec.triggers[0].metadata: "another service's" | the persistent-lag scaler"""),
    ],
)
def test_what_no_trial_can_begin_with_is_one_clear_line(change, line):
    """File, field, value and what is allowed."""
    assert refused(adopt, parse(theirs(change), "orders.yaml")).startswith(f"orders.yaml: {line}")


def test_a_container_of_their_pod_and_an_empty_value_are_one_clear_line():
    """The trial's pod has one container, of another name. A chart's empty value is not missing: it may go."""
    given = beside(CPU | {"metadata": CPU["metadata"] | {"containerName": "app"}})
    line = "orders.yaml: spec.triggers[1].metadata.containerName: 'app' | nothing"
    assert refused(adopt, parse(given, "orders.yaml")).startswith(line)
    given["spec"]["triggers"][0]["metadata"]["activationLagThreshold"] = None
    line = "orders.yaml: spec.triggers[0].metadata.activationLagThreshold: '' | a string, or no such line"
    assert refused(parse, given, "orders.yaml") == line


@pytest.mark.parametrize("login", ["reader:s3cr%40et@", ""])
def test_a_password_in_an_address_is_not_kept(login, tmp_path):
    """Neither in the inputs, which trial.json and the trial's id are made of, nor in what is told of the replacement."""
    content = theirs()
    address = f"https://{login}prometheus.shop:9090/api?token=s3cret#s3cret"
    prometheus = {"type": "prometheus", "metadata": {"serverAddress": address, "query": "sum(x)", "threshold": "5"}}
    content["spec"]["triggers"].append(prometheus)
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump(content))
    chosen = trial("step-10x", file, scale="medium")
    kept = json.dumps(chosen.to_dict()) + yaml.safe_dump(chosen.policy.content) + "\n".join(user_files.header_lines(chosen))
    assert "s3cr" not in kept
    assert "reader" not in kept
    assert "https://prometheus.shop:9090/api" in json.dumps(chosen.to_dict())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        ("http://u:p@[::1]:9090/x", "http://[::1]:9090/x"),
        ("http://u:p@w@h:1", "http://h:1"),
        ("http://u:p@h:port/?q=secret", "h:port/"),
    ],
)
def test_an_address_without_its_login(given, kept):
    """Nothing before the last @ is left, also of an address that is none."""
    assert without_login(given) == kept
