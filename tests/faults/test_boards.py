"""The boards, over a real trial: a panel that shows nothing is a board that broke."""

import dataclasses
import json
import math
import subprocess
import sys
import urllib.request

import pytest
from kubernetes.dynamic.exceptions import DynamicApiError

from lab import paths
from lab.board.app import Board
from lab.board.figures import SLACK_S
from lab.board.panels import MARKS, PANELS
from lab.board.source import Source, Window
from lab.cluster import apply
from lab.cluster.kind import install
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED
from lab.inputs.profile import Step
from lab.inputs.workload import Workload

pytestmark = [pytest.mark.services, pytest.mark.nightly]

# The mark of a spike needs six seconds of traffic before it. On a busy machine the first scrape comes some seconds late.
SHORT = (Step(0, 900, "baseline"), Step(14, 9000, "spike"), Step(22, 900, "rest"))
SHORT_S = 33  # a first new pod is Ready 2 s after the spike on a quiet machine; the trial ends with its traffic
RATE_S = 3  # of the mark of a spike
ANSWERS_S = 60


@pytest.fixture(scope="module")
def source(cluster):
    """The live board's way to the cluster's Prometheus."""
    return Source(cluster.prometheus_url)


@pytest.fixture(scope="module")
def trial(run, source):
    """The window of a short trial that has a spike, a scale-up and its rebalances."""
    before = set(source.trials())
    read = inputs.read("short-step", "lag", Workload(), 4, scales.load("quick"), "binary", until=REPLAYED)
    profile = dataclasses.replace(read.profile, steps=SHORT, duration=SHORT_S)
    chosen = dataclasses.replace(read, profile=profile)
    (record,) = run(chosen)
    (namespace,) = set(source.trials()) - before
    return Window.until(namespace, record.end, record.end - record.time("settling"))


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_every_query_of_a_panel_has_data(source, trial, panel):
    """Each query by itself gives at least one sample that is a number."""
    series = source.panel(panel, trial)
    for query in panel.queries:
        values = [value for one in series if one.query == query for value in one.values]
        assert [value for value in values if value is not None], query.expr


def test_marks_are_in_the_order_of_a_reaction(source, trial):
    """First the spike, then the decision, then a pod; there is one spike, and it is not the start of the traffic."""
    spike, decided, ready = found = [source.moments(mark, trial) for mark in MARKS]
    assert all(found)
    assert all(trial.start <= at <= trial.end for moments in found for at in moments)
    assert spike[-1] - spike[0] <= RATE_S, "one spike; a scrape that failed may show it twice while its rate lasts"
    assert len(ready) == 1
    assert spike[0] - SLACK_S <= decided[0] <= ready[0] <= spike[0] + 60


def test_a_mark_is_the_same_however_wide_the_step(source, trial):
    """Grafana's steps widen with the time it shows; the moments stay to the second. Its windows are whole steps."""
    wide = dataclasses.replace(trial, step=9, end=trial.start + 9 * math.ceil((trial.end - trial.start) / 9))
    for mark in MARKS:
        assert source.moments(mark, wide)[0] == source.moments(mark, trial)[0]


def test_the_live_board_draws_every_panel(source, trial):
    """What the page is given, for the trial by name and as the newest one."""
    board = Board(source, minutes=5)
    for shown in (board.show(trial.namespace), board.show()):
        assert shown.window.namespace == trial.namespace
        assert all(figure["data"] for figure in shown.figures)
        assert "not yet" not in {text for _, text in shown.moments}


def test_kubernetes_takes_every_object_of_grafana(cluster):
    """The API server admits each as it is, in a dry run, and would not admit a misspelt one."""
    dynamic = apply.dynamic_client(cluster.api())

    def admit(item):
        resource = dynamic.resources.get(api_version=item["apiVersion"], kind=item["kind"])
        how = {"name": item["metadata"]["name"], "field_manager": "test", "dry_run": "All"}
        if resource.namespaced:  # a dry run leaves no namespace of Grafana's own
            item = item | {"metadata": item["metadata"] | {"namespace": "default"}}
            how["namespace"] = "default"
        return dynamic.server_side_apply(resource, body=item, **how)

    for item in install.grafana_objects():
        assert admit(item).kind == item["kind"]
    service = next(item for item in install.grafana_objects() if item["kind"] == "Service")
    with pytest.raises(DynamicApiError, match="nodeport"):
        admit(service | {"spec": service["spec"] | {"nodeport": 30030}})


def test_the_live_board_is_served_from_loopback_alone(cluster, trial):
    """The program answers on 127.0.0.1, and knows the trial. The cluster's run says where its Prometheus is."""
    noted = json.loads((cluster.run / "owner.json").read_text())["prometheus"]
    command = [sys.executable, "-m", "lab.board", "--prometheus", noted, "--port", "0"]
    with subprocess.Popen(command, cwd=paths.PROJECT, stdout=subprocess.PIPE, text=True) as program:
        try:
            address = program.stdout.readline().split()[1]
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}/_dash-layout", timeout=ANSWERS_S) as answer:
                assert trial.namespace in answer.read().decode()
        finally:
            program.terminate()
