"""What the live board and the Grafana dashboard draw, and the objects that bring Grafana up."""

import json
import time

import pytest
import yaml

from lab.board import figures, grafana
from lab.board.panels import MARKS, PANELS, Panel, Query, filled
from lab.board.source import MARGIN_S, SHORTEST_S, Series, Window, window
from lab.cluster.kind.install import CONFIG_MAP, grafana_objects

SPIKE, DECIDED, READY = MARKS
SHOWN = Window("trial-a", 1000, 1060, 1)
QUERY = Query("up", "x")


def drawn(values, t=None, moments=None, names=("x",), **how):
    """A figure of a series by each of ``names``."""
    panel = Panel("Title", "messages", "About.", (QUERY,), **how)
    series = [Series(name, QUERY, t or [1000.0 + at for at in range(len(values))], values) for name in names]
    return figures.figure(panel, series, moments or {}, SHOWN)


def test_a_series_is_drawn_at_its_times():
    """Times in milliseconds of local time, values untouched; where Prometheus had nothing is a gap, and a lone point a dot.

    Stacked series keep their own times, so that a pod that is gone counts nothing.
    """
    (trace,) = drawn([1.0, None, 3.0])["data"]
    assert (trace["y"], trace["x"]) == ([1.0, None, 3.0], [figures.clock(1000 + at) for at in range(3)])
    (trace,) = drawn([1.0, 2.0, 3.0], t=[1000.0, 1010.0, 1011.0])["data"]
    assert trace["y"] == [1.0, None, 2.0, 3.0]
    assert "markers" in trace["mode"]
    (trace,) = drawn([1.0, 2.0], t=[1000.0, 1010.0], stacked=True)["data"]
    assert trace["stackgroup"]
    assert trace["y"] == [1.0, 2.0]


def test_many_series_are_in_their_natural_order():
    """Partition 2 comes before partition 10, and none is in a legend. A panel without any says so."""
    found = drawn([1.0], names=[f"partition {number}" for number in (10, 2, 1)], many=True)["data"]
    assert [trace["name"] for trace in found] == ["partition 1", "partition 2", "partition 10"]
    assert not any(trace["showlegend"] for trace in found)
    (note,) = drawn([], names=())["layout"]["annotations"]
    assert note["text"] == "no data"


def test_every_moment_is_a_line_of_its_colour():
    """Each at its own time, over the whole height."""
    lines = drawn([1.0], moments={SPIKE: [1005.0], DECIDED: [1006.0, 1007.0]})["layout"]["shapes"]
    expected = [(figures.clock(at), mark.colour) for at, mark in ((1005, SPIKE), (1006, DECIDED), (1007, DECIDED))]
    assert [(line["x0"], line["line"]["color"]) for line in lines] == expected


@pytest.mark.parametrize(
    ("spikes", "decided", "ready", "said"),
    [
        ([900.0, 1005.0], [901.0, 1006.0, 1007.0], [], ("+1 s", "not yet")),
        ([1005.0], [1004.0, 1020.0], [], ("+0 s", "not yet")),  # scraped up to a second apart: seen as much before its spike
        ([900.0, 1005.0], [901.0], [912.0], ("+1 s", "+12 s")),  # pods that are there take the second burst
        ([900.0, 1005.0], [], [], ("not yet", "not yet")),
    ],
)
def test_a_reaction_is_counted_from_the_last_spike_that_has_one(spikes, decided, ready, said):
    """The spike by the clock, the others by how long after it; what came before it is not an answer to it."""
    told = dict(figures.reaction({SPIKE: spikes, DECIDED: decided, READY: ready}))
    assert (told[DECIDED], told[READY]) == said
    chosen = spikes[0] if 912.0 in ready else spikes[-1]
    assert told[SPIKE] == time.strftime("%H:%M:%S", time.localtime(chosen))


def test_without_a_spike_nothing_is_counted():
    """Each mark is not yet there."""
    assert {text for _, text in figures.reaction({mark: [] for mark in MARKS})} == {"not yet"}


def test_triggers_can_be_told_apart():
    """KEDA's series have a colour each, and a scaler that is active is a line below the panel's edge."""
    (active,) = (panel for panel in PANELS if panel.title == "KEDA's scaler active")
    (metric,) = (panel for panel in PANELS if panel.title == "KEDA's metric")
    for panel in (active, metric):
        series = [Series(f"trigger {number}", panel.queries[0], [1000.0], [1.0]) for number in range(3)]
        found = figures.figure(panel, series, {}, SHOWN)
        assert len({trace["line"]["color"] for trace in found["data"]}) == 3
    assert figures.figure(active, [], {}, SHOWN)["layout"]["yaxis"]["range"][1] > 1


@pytest.mark.parametrize(
    ("known", "now", "name", "start", "end"),
    [
        ({"trial-old": (0, 500), "trial-new": (400, 1000)}, 1001, "trial-new", 1001 - 300, 1001),  # the newest is followed
        ({"trial-a": (1000, 1100)}, 9000, "trial-a", 1000 - 2 * MARGIN_S, 1100 + MARGIN_S),  # one that is over stays in view
        ({"trial-a": (1000, 1002)}, 1002, "trial-a", 1002 - SHORTEST_S, 1002),  # one that just began has room
    ],
)
def test_a_window_is_of_the_newest_trial(known, now, name, start, end):
    """Five minutes of it at most, up to now while it runs. Without a trial only a named one has one."""
    shown = window(known, 5, None, now)
    assert (shown.namespace, shown.step, shown.start, shown.end) == (name, 1, start, end)
    assert window({}, 5, None, now) is None
    assert window({}, 5, name, now).namespace == name


@pytest.mark.parametrize("seconds", [60, 3600, 43200])
def test_a_long_window_has_wider_steps(seconds):
    """Never more points than the graph has pixels for, on whole steps."""
    shown = Window.until("trial-a", 100_000, seconds)
    assert (shown.end - shown.start) / shown.step <= 600
    assert shown.start % shown.step == shown.end % shown.step == 0


@pytest.mark.parametrize("expr", [item.expr for panel in PANELS for item in panel.queries] + [mark.expr for mark in MARKS])
def test_a_query_is_of_one_namespace_and_filled_whole(expr):
    """Every query names the namespace, and no variable of Grafana's is left once it is filled."""
    assert "$namespace" in expr
    done = filled(expr, "trial-x", 1)
    assert "$" not in done
    assert "trial-x" in done
    assert done.count("(") == done.count(")")


@pytest.mark.parametrize(("step", "expected"), [(1, "4s"), (3, "4s"), (10, "11s")])
def test_a_rate_spans_four_scrapes_and_a_step(step, expected):
    """As Grafana does: the larger of four scrapes, and a step with one scrape more."""
    assert filled("rate(x[$__rate_interval])", "n", step) == f"rate(x[{expected}])"


def test_the_committed_dashboard_is_current():
    """What is committed is what the panels give; python -m lab.board --write makes it so."""
    assert grafana.FILE.read_text() == grafana.dashboard()


def test_the_dashboard_holds_every_panel_and_mark():
    """Titles, queries and legends reach Grafana unchanged, each panel in a place of its own."""
    board = json.loads(grafana.dashboard())
    drawn = [(item["title"], [(one["expr"], one["legendFormat"]) for one in item["targets"]]) for item in board["panels"]]
    assert drawn == [(panel.title, [(query.expr, query.legend) for query in panel.queries]) for panel in PANELS]
    marks = [(item["name"], item["expr"]) for item in board["annotations"]["list"]]
    assert marks == [(mark.title, mark.expr) for mark in MARKS]
    assert [item["name"] for item in board["templating"]["list"]] == ["namespace"]
    for places in (
        {(item["gridPos"]["x"], item["gridPos"]["y"]) for item in board["panels"]},
        {item["id"] for item in board["panels"]},
    ):
        assert len(places) == len(PANELS)
    assert all(item["fieldConfig"]["defaults"]["unit"] for item in board["panels"])


def by_kind(kind):
    """The objects of ``kind`` by name."""
    return {item["metadata"]["name"]: item for item in grafana_objects() if item["kind"] == kind}


def test_the_objects_fit_together():
    """Every ConfigMap that is mounted is applied, and before the Deployment; the datasource is the one panels ask."""
    kinds = [item["kind"] for item in grafana_objects()]
    assert kinds[0] == "Namespace"
    assert kinds.index("Deployment") > max(place for place, kind in enumerate(kinds) if kind == "ConfigMap")
    maps = by_kind("ConfigMap")
    (deployment,) = by_kind("Deployment").values()
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert {volume["configMap"]["name"] for volume in volumes if "configMap" in volume} == set(maps)
    (source,) = yaml.safe_load(maps["grafana-datasources"]["data"]["prometheus.yaml"])["datasources"]
    assert source["uid"] == grafana.DATASOURCE.uid
    assert source["url"] == "http://prometheus.monitoring.svc:9090"
    assert maps[CONFIG_MAP]["data"] == {grafana.FILE.name: grafana.FILE.read_text()}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(deployment)["volumeMounts"]}
    (provider,) = yaml.safe_load(maps["grafana-dashboard-providers"]["data"]["elastic-lab.yaml"])["providers"]
    assert provider["options"]["path"] == mounts["dashboards"]


def container(deployment):
    """The one container of a Deployment."""
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return only


def test_grafana_may_do_little():
    """No root, no writable image, no token, no account to guess, bounded resources, a pinned image, and no call home."""
    (deployment,) = by_kind("Deployment").values()
    pod, only = deployment["spec"]["template"]["spec"], container(deployment)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsUser"] == 472
    assert only["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(only["resources"]) == {"requests", "limits"}
    assert only["image"].count(":") == 1
    assert not only["image"].endswith("latest")
    said = {item["name"]: item["value"] for item in only["env"]}
    assert said["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert said["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert said["GF_ANALYTICS_REPORTING_ENABLED"] == said["GF_ANALYTICS_CHECK_FOR_UPDATES"] == "false"
    (service,) = by_kind("Service").values()
    assert service["spec"]["ports"][0]["nodePort"] == 30030
