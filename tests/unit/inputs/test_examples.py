"""Files of others: what the lab says to each of KEDA's own examples, in a table, and to those of the payment processor."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from lab import paths, yamlfile
from lab.errors import InputError
from lab.foresee.group import Consumers
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.foresee.usage import Footprint
from lab.inputs import policy, scaledobject
from lab.inputs import scale as scales
from lab.inputs.adopt import adopt
from lab.inputs.profile import Profile, Step
from lab.inputs.scale import Scale
from lab.inputs.topics import MOST
from lab.inputs.triggers import parsing

EXAMPLES = yamlfile.load((Path(__file__).parent / "data" / "keda-examples.yaml").read_text())
TAKEN = "taken"
TRAFFIC = Profile((Step(0, 1, "baseline"),), 60, begins_at=datetime(2026, 1, 15, tzinfo=UTC))
PODS = Consumers(100.0, 3.0, footprint=Footprint(100, 1.0))
KNOWN = Situation(TRAFFIC, np.full(MOST, 1 / MOST), PODS, topics=MOST)  # all that a user may say


def answer(use, *given):
    """What ``use`` says against what it is given, without the file's name."""
    try:
        use(*given)
    except InputError as error:
        return str(error).replace("example.yaml: ", "")
    return TAKEN


def answers(content):
    """The answers of the reader and, where it takes the object, of a trial and of the model."""
    found = {"read": answer(scaledobject.parse, content, "example.yaml")}
    if found["read"] == TAKEN:
        read = scaledobject.parse(content, "example.yaml")
        found["trial"] = answer(lambda: adopt(read)[0].compressed(Scale("quick", 30, 1)))
        found["simulate"] = answer(Scaler, read, KNOWN)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["source"].partition(" ")[2])
def test_each_example_has_its_answer(example):
    """Taken, or refused for the reason in the table."""
    expected = {name: example[name] for name in ("read", "trial", "simulate") if name in example}
    assert answers(example["scaledobject"]) == expected


def test_every_type_that_is_read_has_examples_that_are_taken():
    """Whatever a trigger is, something that KEDA shows of it can be used."""
    taken = {one["type"] for row in EXAMPLES if row["read"] == TAKEN for one in row["scaledobject"]["spec"]["triggers"]}
    assert taken == parsing.TYPES.keys()


PRINTED = Path(__file__).parent / "data" / "payments-as-printed.yaml"
FOLDER = paths.MANIFESTS / "payments"


def test_the_printed_file_is_refused_a_line_a_field():
    """Two names that KEDA does not know; with both put right it is the file we deploy, but for the lag of real time."""
    content = yamlfile.read(PRINTED)
    mistaken = (("minReplicas", "minReplicaCount", 3), ("maxReplicas", "maxReplicaCount", 50))
    with pytest.raises(InputError) as error:
        scaledobject.parse(content, "printed.yaml")
    assert str(error.value).splitlines() == [
        f"printed.yaml: spec.{wrong}: {value} is not allowed; did you mean {right}?" for wrong, right, value in mistaken
    ]
    for wrong, right, _ in mistaken:
        content["spec"][right] = content["spec"].pop(wrong)
    scaledobject.parse(content, "printed.yaml")
    ours = yamlfile.read(FOLDER / "scaledobject.yaml")
    assert ours["spec"]["triggers"][0]["metadata"].pop("lagThreshold") == "3750"
    assert content["spec"]["triggers"][0]["metadata"].pop("lagThreshold") == "250"
    assert content == ours


def test_a_trial_replaces_only_what_ties_it_to_the_authors_cluster():
    """Namespace, target, servers, group and topic; bounds and behavior are his, and at medium his lagThreshold."""
    ours, replaced = adopt(policy.load(FOLDER / "scaledobject.yaml"))
    tied = {"namespace", "scaleTargetRef", "bootstrapServers", "consumerGroup", "topic"}
    assert {one.field.rsplit(".", 1)[-1] for one in replaced} == tied
    assert (ours.min_replicas, ours.max_replicas, ours.polling_s, ours.cooldown_s) == (3, 50, 15, 180)
    assert ours.compressed(scales.load("medium")).lag_threshold == 250


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        *(("no-inertia", ["advanced"]), ("defaults", ["advanced"])),
        *(("lag-and-cpu", ["triggers"]), ("persistent-lag", ["advanced", "triggers"])),
    ],
)
def test_a_sibling_differs_in_what_its_first_line_says(name, changed):
    """And in nothing else: or a comparison would compare two things."""
    author, sibling = (yamlfile.read(FOLDER / f"{one}.yaml") for one in ("scaledobject", name))
    ours, theirs = author.pop("spec"), sibling.pop("spec")
    assert [field for field in sorted(ours.keys() | theirs.keys()) if ours.get(field) != theirs.get(field)] == changed
    assert author == sibling
