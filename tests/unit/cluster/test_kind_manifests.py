"""What goes onto a kind cluster: pinned, confined, with no more rights than it needs, and the same as on processes."""

import ipaddress
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from lab import paths, yamlfile
from lab.cluster import broker, fit, kind, metrics
from lab.cluster.controlplane import CLIENT_RATE, FEATURE_GATES, hpa_flags
from lab.cluster.images import catalog, make
from lab.cluster.kind import state
from lab.components import build
from lab.errors import LabFault
from lab.inputs import inputs, manifests, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload

PINS = {
    "keda": build.KEDA,
    "keda-metrics-apiserver": build.KEDA,
    "kafka": broker.VERSION,
    "metrics-server": build.METRICS_SERVER,
    "kube-state-metrics": build.KUBE_STATE_METRICS,
    "prometheus": build.PROMETHEUS,
}
OBJECTS = state.infrastructure()
WORKLOADS = [item for item in OBJECTS if list(catalog.containers(item))]


def trial_objects(runtime, **work):
    """What a trial of a workload applies, as ``runtime`` takes it."""
    chosen = inputs.read("step-10x", "lag", Workload(**work), 1, scales.load("quick"), "kind")
    made = [*objects.applied(chosen, chosen.environment("kafka:9092", "x")), objects.producer(chosen)]
    return [runtime(item) for item in made if list(catalog.containers(item))]


def test_upstream_images_are_of_the_versions_built_here():
    """So that a cluster of pulled images and one of images made here run the same."""
    images = catalog.named(OBJECTS)
    assert {catalog.made_here(image).partition("/")[2].partition(":")[0]: catalog.version(image) for image in images} == PINS
    assert catalog.version(catalog.NODE) == build.KUBERNETES


@pytest.mark.parametrize(
    "item", [*WORKLOADS, *trial_objects(fit.containers("elastic-lab/pods:1", {}))], ids=lambda item: item["metadata"]["name"]
)
def test_a_container_is_confined_and_says_what_it_takes(item):
    """Numeric user, read-only root, no capability, requests and limits."""
    pod = item["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    for container in catalog.containers(item):
        held = container["securityContext"]
        assert held["readOnlyRootFilesystem"]
        assert not held["allowPrivilegeEscalation"]
        assert held["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys() == {"cpu", "memory"}
        assert container["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("file", sorted(paths.MANIFESTS.rglob("*.yaml")), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_image_of_pods_has_the_programs_of_every_manifest_but_the_refused(file):
    """What a trial on kind takes as ``beside`` or ``driver`` starts there; programs that are refused are not the lab's."""
    for item in yamlfile.documents(file):
        held = [one for one in catalog.containers(item) if catalog.is_lab(one["image"])]
        modules = [word.split(".") for one in held for word in one["command"][2:3]]
        if manifests.read(item, file).programs:
            assert {package for package, *_ in modules}.isdisjoint({"lab"})
        else:
            assert {part for _, part, *_ in modules} <= set(make.POD_PARTS)


def test_no_role_may_do_everything():
    """Each rule names its resources and verbs; external metrics have any name."""
    for item in OBJECTS:
        for rule in item.get("rules", ()):
            assert "*" not in rule["verbs"]
            assert "*" not in rule["apiGroups"]
            assert "*" not in rule["resources"] or rule["apiGroups"] == ["external.metrics.k8s.io"]


def test_the_fit_changes_images_and_nothing_that_is_measured():
    """The same manifests on both runtimes: the process node takes them as they are, kind gets its image and confinement."""
    plain, fitted = trial_objects(fit.BINARY), trial_objects(fit.containers("elastic-lab/pods:1", {}, shared=True))
    for before, after in zip(plain, fitted, strict=True):
        for container in catalog.containers(after):
            assert container.pop("image") == "elastic-lab/pods:1"
            del container["securityContext"]
            del after["spec"]["template"]["spec"]["securityContext"]
        assert after["spec"]["template"]["spec"].pop("shareProcessNamespace")
        for container in catalog.containers(before):
            assert container.pop("image").startswith("elastic-lab/")
        assert before == after


def test_the_consumer_on_another_client_runs_its_own_image():
    """It may write to /tmp under a root that is read-only: a JVM unpacks libraries there. All others run the pods' image."""
    runtime = replace(fit.containers("elastic-lab/pods:1", {}), clients={"elastic-lab/clients/java": "java:1"})
    for item in trial_objects(runtime, client="java"):
        pod, java = item["spec"]["template"]["spec"], item["metadata"]["name"] == "consumer"
        (container,) = pod["containers"]
        assert container["image"] == ("java:1" if java else "elastic-lab/pods:1")
        volumes = {one["name"]: one["emptyDir"] for one in pod.get("volumes", ())}
        mounted = [(volumes[one["name"]], one["mountPath"]) for one in container.get("volumeMounts", ())]
        assert mounted == ([({}, "/tmp")] if java else [])
        assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.fixture
def cluster_of_kind(monkeypatch):
    """Makes one that can reach a registry or not, and what was loaded into its nodes; the machine has the image "mine:1"."""
    loaded = []
    monkeypatch.setattr("lab.cluster.kind._load", lambda run, state, role, image: loaded.append((role, image)))
    monkeypatch.setattr("lab.cluster.docker.images", lambda names: dict.fromkeys({*names} & {"mine:1"}, 1))
    monkeypatch.setattr("lab.components.clients.ensure", lambda client: {client: "v1"})
    monkeypatch.setattr("lab.cluster.images.clients.make", lambda client, images: f"{client}:1")

    def make(*, closed):
        told = SimpleNamespace(bootstrap="", prometheus="", versions={}, pods="elastic-lab/pods:1", images={}, closed=closed)
        return kind.Kind(None, told, [], None), loaded

    return make


def test_a_clients_image_is_loaded_before_its_trial_once(cluster_of_kind):
    """Into the node of the consumers, whose manifest then names it; Python's has come with the cluster."""
    made, loaded = cluster_of_kind(closed=True)
    for client in ("python", "java", "franz-go", "java"):
        assert made.provide(Workload(client=client)) == ({} if client == "python" else {client: "v1"})
    assert loaded == [("worker", "java:1"), ("worker", "franz-go:1")]
    (image,) = catalog.named(trial_objects(made.fit, client="java")[1:2])
    assert image == "java:1"


@pytest.mark.parametrize("closed", [True, False])
def test_a_users_own_image_is_loaded_or_pulled(cluster_of_kind, closed):
    """One that the machine has not is for the nodes to pull; where they may not it is one line."""
    made, loaded = cluster_of_kind(closed=closed)
    assert made.provide(Workload(image="mine:1", rung="black-box")) == {}
    assert loaded == [("worker", "mine:1")]
    missing = pytest.raises(LabFault, match="image theirs:1 is not among this machine's") if closed else nullcontext()
    with missing:
        made.provide(Workload(image="theirs:1", rung="black-box"))
    assert len(loaded) == 1


def test_upstream_names_become_ours_only_where_images_are_made_here():
    """A local image can't be taken for the published one."""
    names = {image: catalog.made_here(image) for image in catalog.named(OBJECTS)}
    local = [fit.containers("elastic-lab/pods:1", names)(item) for item in OBJECTS]
    assert all(catalog.is_lab(image) for image in catalog.named(local))
    upstream = [fit.containers("elastic-lab/pods:1", {name: name for name in names})(item) for item in OBJECTS]
    assert catalog.named(upstream) == list(names)


@pytest.mark.parametrize("scale", ["quick", "standard", "real"])
@pytest.mark.parametrize("made_here", [True, False])
def test_the_cluster_is_told_the_scale_and_listens_on_loopback(scale, made_here):
    """The controller-manager's flags are those of the binary runtime; every port of the host's is on loopback."""
    chosen = scales.load(scale)
    told = state.cluster_settings(chosen, made_here, {30090: 20001, 30092: 20002})
    mapped = [port for node in told["nodes"] for port in node.get("extraPortMappings", ())]
    assert [port["hostPort"] for port in mapped] == [20001, 20002]
    assert all(ipaddress.ip_address(port["listenAddress"]).is_loopback for port in mapped)
    assert ipaddress.ip_address(told["networking"]["apiServerAddress"]).is_loopback
    patches = [yaml.safe_load(patch) for patch in told["kubeadmConfigPatches"]]
    (configuration,) = (patch for patch in patches if patch["kind"] == "ClusterConfiguration")
    flags = {item["name"]: item["value"] for item in configuration["controllerManager"]["extraArgs"]}
    assert {**CLIENT_RATE, **FEATURE_GATES, **hpa_flags(chosen)}.items() <= flags.items()
    assert configuration["apiServer"]["extraArgs"] == [{"name": name, "value": value} for name, value in FEATURE_GATES.items()]
    assert ("imageRepository" in configuration) == made_here


def test_prometheus_scrapes_the_same_on_both_runtimes():
    """Only where it finds the API, kube-state-metrics and KEDA differs."""
    targets = {"kube-state-metrics": "a:1", "keda": "b:2"}
    inside = yaml.safe_load(metrics.prometheus_settings(targets))
    outside = yaml.safe_load(metrics.prometheus_settings(targets, kubeconfig="config"))
    assert [job["job_name"] for job in inside["scrape_configs"]] == ["pods", "lag", "kube-state-metrics", "keda"]
    for job in outside["scrape_configs"]:
        for discovery in job.get("kubernetes_sd_configs", ()):
            assert discovery.pop("kubeconfig_file") == "config"
    assert inside == outside


def test_what_serves_the_cluster_stands_beside_its_control_plane():
    """Its pods go to that node and bear its taint; what has no pods is left as it is, and so is the manifest."""
    for item in OBJECTS:
        placed = state.beside_control_plane(item)
        if item not in WORKLOADS:
            assert placed == item
            continue
        pod = placed["spec"]["template"]["spec"]
        (toleration,) = pod.pop("tolerations")
        assert {toleration["key"]} == set(pod.pop("nodeSelector"))
        assert placed == item
