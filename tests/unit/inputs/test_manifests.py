"""What a manifest declares for the lab: where its programs are, and what else is recorded of a trial with it."""

from __future__ import annotations

import pytest

from lab.inputs import manifests
from tests.unit.inputs.written import refused


def deployment(**declared):
    """A Deployment of two containers with annotations ``elastic-lab/...``."""
    containers = [{"name": "one", "env": [{"name": "A", "value": "1"}]}, {"name": "two"}]
    noted = {f"elastic-lab/{name}": value for name, value in declared.items()}
    return {
        "kind": "Deployment",
        "metadata": {"name": "x", "annotations": {"example.org/other": "kept", **noted}},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


def test_an_object_declares_metrics_and_sides(tmp_path):
    """Metrics with commas between them, two sides by "yes"; one without annotations declares nothing and is taken as it is."""
    file, item = tmp_path / "x.yaml", {"kind": "Job", "metadata": {"name": "x"}}
    assert manifests.read(deployment(metrics="a_total, b:c", duet="yes"), file).metrics == ("a_total", "b:c")
    assert [manifests.read(deployment(duet=word), file).duet for word in ("yes", "no")] == [True, False]
    assert manifests.read(item, file) == manifests.Declarations()
    assert manifests.with_programs(item, file) == item


def test_the_folder_of_the_programs_is_taken_from_the_manifests(tmp_path):
    """Every container imports from it; the manifest itself names no place of this machine, and is left as it was."""
    (tmp_path / "manifests").mkdir()
    file, item = tmp_path / "manifests" / "x.yaml", deployment(pythonpath="..")
    one, two = manifests.with_programs(item, file)["spec"]["template"]["spec"]["containers"]
    assert one["env"] == [{"name": "A", "value": "1"}, {"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert two["env"] == [{"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert item == deployment(pythonpath="..")


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ({"pythonpath": "nowhere"}, "elastic-lab/pythonpath: 'nowhere' | a folder, seen from that of the file"),
        ({"metrics": "a_total,b-c"}, "elastic-lab/metrics: 'a_total,b-c' | names of metrics, separated by commas"),
        ({"duet": True}, "elastic-lab/duet: True | yes or no, in quotes"),
        ({"metrics": ""}, "elastic-lab/metrics: '' | names of metrics, separated by commas"),
        ({"metric": "a"}, "elastic-lab/metric: 'a' | did you mean elastic-lab/metrics?"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path, declared, line):
    """It names the file, the annotation and what is allowed."""
    assert f"x.yaml: metadata.annotations.{line}" in refused(manifests.read, deployment(**declared), tmp_path / "x.yaml")
