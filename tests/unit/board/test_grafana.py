"""The Grafana dashboard and the objects that bring it up."""

import json

import yaml

from lab.board import grafana
from lab.board.panels import MARKS, PANELS
from lab.cluster.kind.install import CONFIG_MAP, grafana_objects


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
