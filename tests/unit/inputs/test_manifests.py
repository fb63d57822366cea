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


def test_an_object_without_annotations_declares_nothing(tmp_path):
    """It is taken as it is."""
    item = {"kind": "Job", "metadata": {"name": "x"}}
    assert manifests.read(item, tmp_path / "x.yaml") == manifests.Declarations()
    assert manifests.with_programs(item, tmp_path / "x.yaml") == item


def test_the_folder_of_the_programs_is_taken_from_the_manifests(tmp_path):
    """Every container imports from it; the manifest itself names no place of this machine, and is left as it was."""
    (tmp_path / "manifests").mkdir()
    file, item = tmp_path / "manifests" / "x.yaml", deployment(pythonpath="..")
    one, two = manifests.with_programs(item, file)["spec"]["template"]["spec"]["containers"]
    assert one["env"] == [{"name": "A", "value": "1"}, {"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert two["env"] == [{"name": "PYTHONPATH", "value": str(tmp_path)}]
    assert item == deployment(pythonpath="..")


def test_further_metrics_are_a_list(tmp_path):
    """Separated by commas."""
    assert manifests.read(deployment(metrics="a_total, b:c"), tmp_path / "x.yaml").metrics == ("a_total", "b:c")


def test_an_object_may_serve_two_sides(tmp_path):
    """Only where it says so."""
    assert manifests.read(deployment(duet="yes"), tmp_path / "x.yaml").duet
    assert not manifests.read(deployment(duet="no"), tmp_path / "x.yaml").duet


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ({"pythonpath": "nowhere"}, "elastic-lab/pythonpath: 'nowhere' | a folder, seen from that of the file"),
        ({"metrics": "a_total,b-c"}, "elastic-lab/metrics: 'b-c' | names of metrics, separated by commas"),
        ({"duet": True}, "elastic-lab/duet: True | yes or no, in quotes"),
        ({"metrics": ""}, "elastic-lab/metrics: '' | names of metrics, separated by commas"),
        ({"metric": "a"}, "elastic-lab/metric: 'a' | one of the fields elastic-lab/duet, elastic-lab/metrics, "),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path, declared, line):
    """It names the file, the annotation and what is allowed."""
    assert f"x.yaml: metadata.annotations.{line}" in refused(manifests.read, deployment(**declared), tmp_path / "x.yaml")
