"""The payment processor's files: the printed one refused field by field, and its siblings apart in what they say."""

import pytest

from lab import paths, yamlfile
from lab.errors import InputError
from lab.inputs import policy
from lab.inputs import scale as scales
from lab.inputs.adopt import adopt
from lab.inputs.scaledobject import parse

PRINTED = paths.PROJECT / "tests" / "unit" / "inputs" / "data" / "payments-as-printed.yaml"
FOLDER = paths.MANIFESTS / "payments"


def test_the_printed_file_is_refused_a_line_a_field():
    """Two names that KEDA does not know; with both put right it is the file we deploy, but for the lag of real time."""
    content = yamlfile.read(PRINTED)
    mistaken = (("minReplicas", "minReplicaCount", 3), ("maxReplicas", "maxReplicaCount", 50))
    with pytest.raises(InputError) as error:
        parse(content, "printed.yaml")
    assert str(error.value).splitlines() == [
        f"printed.yaml: spec.{wrong}: {value} is not allowed; did you mean {right}?" for wrong, right, value in mistaken
    ]
    for wrong, right, _ in mistaken:
        content["spec"][right] = content["spec"].pop(wrong)
    parse(content, "printed.yaml")
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
