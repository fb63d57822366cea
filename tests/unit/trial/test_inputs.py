"""A trial's identity, and what its pods are told."""

import dataclasses

import pytest
import yaml

from lab import paths, profile
from lab import scale as scales
from lab.errors import InputError
from lab.trial import inputs
from lab.trial.inputs import Workload
from lab.trial.record import find


def read(**changes):
    """Inputs of experiment 2 with something changed."""
    given = {"profile_name": "step-10x", "policy_name": "lag", "workload": Workload(), "seed": 1}
    return inputs.read(**(given | changes), scale=scales.load("quick"), runtime="binary")


def test_equal_inputs_have_equal_ids_and_others_do_not():
    """The id is a function of the inputs and nothing else."""
    assert read().id == read().id
    others = {read(seed=2).id, read(workload=Workload(balancer="range")).id, read(profile_name="short-step").id, read().id}
    assert len(others) == 4


def test_the_producer_is_given_the_profile_it_was_hashed_with():
    """What stands in the ConfigMap is the compressed profile, readable by the producer."""
    chosen = read()
    environment = chosen.environment("127.0.0.1:1", "run")
    assert profile.build(yaml.safe_load(environment["PROFILE_YAML"]), "test") == chosen.profile
    assert all(isinstance(value, str) for value in environment.values())


def test_every_committed_trial_is_beyond_what_the_pods_can_take():
    """10R is more than P pods give, or the experiment would show nothing."""
    chosen = read()
    most = max(step.rate for step in chosen.profile.steps)
    assert most > chosen.partitions * chosen.workload.rate


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"profile_name": "nope"}, "profile: 'nope' is not allowed; allowed: one of short-step, step-10x"),
        ({"policy_name": "nope"}, "policy: 'nope' is not allowed; allowed: one of lag"),
        ({"workload": Workload(balancer="fair")}, "workload: balancer: 'fair' is not allowed; allowed: one of "),
        ({"workload": Workload(process_ms="0")}, "workload: process_ms: '0' is not allowed"),
        ({"workload": Workload(concurrency=0)}, "workload: concurrency: 0 is not allowed"),
    ],
)
def test_bad_inputs_are_one_clear_line(changes, line):
    """Before anything starts."""
    with pytest.raises(InputError) as error:
        read(**changes)
    assert line in str(error.value)


def test_a_scale_that_is_not_declared_is_refused():
    """The scales are those of scales.yaml."""
    with pytest.raises(InputError, match="scale: 'huge' is not allowed; allowed: one of quick, standard, full"):
        scales.load("huge")


def test_a_record_that_is_not_stored_names_those_that_are(tmp_path):
    """--from-records says what there is."""
    (tmp_path / "records" / "other").mkdir(parents=True)
    (tmp_path / "records" / "other" / "trial.json").write_text("{}")
    with pytest.raises(InputError, match="a stored trial; there are: other"):
        find(tmp_path, "mine")


def test_manifests_pass_a_real_parser_and_name_the_trial():
    """Every object has what kubectl needs, and the consumer starts at the policy's floor."""
    chosen = read()
    objects = chosen.manifests(chosen.environment("127.0.0.1:1", "run"))
    assert [item["kind"] for item in objects] == ["ConfigMap", "Deployment", "Deployment", "ScaledObject"]
    consumer = next(item for item in objects if item["metadata"]["name"] == "consumer" and item["kind"] == "Deployment")
    assert consumer["spec"]["replicas"] == chosen.policy.min_replicas
    pod = consumer["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > dataclasses.asdict(chosen.workload)["drain_timeout"]
    assert (paths.MANIFESTS / "consumer" / "deployment.yaml").exists()
