"""Pods that take a minute to start: the handbook's table of cures is what the model says of profile ``transient``."""

import re

import pytest
import yaml

from lab import paths
from lab.foresee.curve import worst_age
from lab.foresee.group import Consumers
from lab.foresee.in_flight import InFlight
from lab.foresee.simulate import simulate
from lab.foresee.situation import START_S, Situation
from lab.inputs import policy, profile
from lab.inputs.keys import shares
from lab.inputs.variant import Variant
from lab.inputs.workload import PARTITIONS
from tests import handbook
from tests.experiments.workloads import slim

WORKLOAD, TRAFFIC = slim(start_s=60), profile.load(paths.PROFILES / "transient.yaml")
TAIL_S = 900  # until the pods of the last burst are given back
FLOOR = "a floor of {}"
CURES = {
    "lag at 4,500": ("lag-4500", {}, 15),
    "the same, synced every 5 s": ("lag-4500", {}, 5),
    "lag at 1,500": ("lag-4500", {"lag_threshold": 1500}, 15),
    "lag and arrivals": ("lag-4500-arrivals", {}, 15),
    FLOOR.format(6): ("lag-4500", {"min_replicas": 6}, 15),
    FLOOR.format(12): ("lag-4500", {"min_replicas": 12}, 15),
}


@pytest.mark.parametrize("name", CURES)
def test_a_cure_is_what_the_model_says(name):
    """The reaction to the first burst, the oldest event and the price, wherever the burst comes between two syncs."""
    base, changes, sync_s = CURES[name]
    file = paths.MANIFESTS / "scaledobjects" / f"{base}.yaml"
    scaled = policy.parse(Variant(base, tuple(changes.items())).applied(yaml.safe_load(file.read_text()), file), file)
    pods = Consumers(WORKLOAD.rate, START_S + WORKLOAD.start_s, in_flight_s=InFlight.of(WORKLOAD).mean_s)
    reactions, oldest, minutes = [], [], []
    for point in range(10):
        group = {"sync_s": sync_s, "phase_s": point * sync_s / 10, "tail_s": TAIL_S}
        situation = Situation(TRAFFIC, shares(TRAFFIC, 1, PARTITIONS), pods, **group)
        curve, start = simulate(situation, scaled), TRAFFIC.steps[1].at
        at = curve.working_from(scaled.min_replicas + 1, start)
        reactions += [] if at is None else [at - start]
        oldest.append(worst_age(curve, situation.arrivals))
        minutes.append(curve.pod_minutes)
    reacted = f"{min(reactions):.0f} to {max(reactions):.0f}" if reactions else "no pod is asked for"
    row = f"| {name} | {reacted} | {max(oldest):.0f} | {max(minutes):.0f} |"
    assert re.search(rf"^{re.escape(row)}$", handbook.PAGE.read_text(encoding="utf-8"), re.MULTILINE), row
