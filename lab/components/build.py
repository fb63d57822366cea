"""Builds the real components from their pinned Go modules, once, into the user's cache.

There are four sets: the components of the binary runtime, the kind command, the further parts of a kind node that is made
here, and the consumer on franz-go. The key of a finished set is made of every go.mod, go.sum, flag and replaced module that
went into it, so a change of one builds anew and nothing else does. Each binary's module version is read back from the binary
itself before it is accepted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lab import paths
from lab.components.toolchain import go_command, run_go
from lab.errors import LabFault
from lab.host import resources, runs
from lab.wait import reporting

log = logging.getLogger("lab.build")

MODULES = Path(__file__).parent / "modules"
KUBERNETES = "1.36.4"
KEDA_MODULE = "github.com/kedacore/keda/v2"
PROMETHEUS = "3.14.0"  # its Go module is v0.314.0
KUBE_STATE_METRICS = "2.20.0"
ETCD = "3.7.1"
METRICS_SERVER = "0.9.0"
KIND = "0.33.0"
COREDNS = "1.14.2"  # what kubeadm of this Kubernetes installs
PAUSE = "3.10.2"  # the version of the pause program that ours replaces: kubeadm names the image after it


def _pinned(module: str, graph: str) -> str:
    """The version of ``module`` in ``graph``'s go.mod, as ``go get MODULE@VERSION`` pins it there."""
    found = re.search(rf"^\s+{re.escape(module)} v(\S+)", (MODULES / graph / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, f"{graph}/go.mod has no {module}"
    return found[1]


KEDA = _pinned(KEDA_MODULE, "kubernetes")


def _stamp(package: str, version: str) -> str:
    major, minor, _ = version.split(".")
    fields = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return " ".join(f"-X {package}.{key}={value}" for key, value in fields.items())


SMALL = "-s -w"
# The answer of a binary to the question for its version.
OF_KUBERNETES = " ".join(
    (SMALL, *(_stamp(f"k8s.io/{part}/version", KUBERNETES) for part in ("component-base", "client-go/pkg")))
)
OF_KEDA = f"{OF_KUBERNETES} -X {KEDA_MODULE}/version.Version={KEDA}"
OF_PROMETHEUS = f"{SMALL} -X github.com/prometheus/common/version.Version="


@dataclass(frozen=True)
class Component:
    """A binary: the folder of its go.mod, its package's path, the module version it must carry, and how it is built."""

    name: str
    folder: str
    package: str
    module: str
    version: str
    ldflags: str = SMALL
    tags: str = ""

    @property
    def program(self) -> str:
        """The name that Go gives it."""
        return re.sub(r"/v\d+$", "", self.package).rpartition("/")[2]


def _of_kubernetes(*names: str) -> tuple[Component, ...]:
    module, version = "k8s.io/kubernetes", f"v{KUBERNETES}"
    return tuple(Component(name, "kubernetes", f"{module}/cmd/{name}", module, version, OF_KUBERNETES) for name in names)


_STATE_METRICS = "k8s.io/kube-state-metrics/v2"
_PROMETHEUS = "github.com/prometheus/prometheus"
# What a cluster of the binary runtime starts. Neighbours with the same go.mod and tags are one build. KEDA comes last: most of
# the modules to download are its own.
COMPONENTS = (
    Component("etcd", "kubernetes", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", f"v{ETCD}"),
    *_of_kubernetes("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    Component(
        "prometheus",
        "prometheus",
        f"{_PROMETHEUS}/cmd/prometheus",
        _PROMETHEUS,
        f"v0.{PROMETHEUS.replace('.', '', 1)}",
        f"{OF_PROMETHEUS}{PROMETHEUS}",
        # Upstream's own tags: of all service discoveries only Kubernetes', the one that the lab uses.
        "remove_all_sd,enable_kubernetes_sd",
    ),
    Component(
        "metrics-server",
        "kubernetes",
        "sigs.k8s.io/metrics-server/cmd/metrics-server",
        "sigs.k8s.io/metrics-server",
        f"v{METRICS_SERVER}",
        OF_KUBERNETES,
    ),
    *(
        Component(f"keda-{part}", "kubernetes", f"{KEDA_MODULE}/cmd/{part}", KEDA_MODULE, f"v{KEDA}", OF_KEDA)
        for part in ("operator", "adapter", "webhooks")
    ),
    Component(
        "kube-state-metrics",
        "kubernetes",
        _STATE_METRICS,
        _STATE_METRICS,
        f"v{KUBE_STATE_METRICS}",
        f"{OF_PROMETHEUS}v{KUBE_STATE_METRICS}",
    ),
)
KIND_TOOL = (Component("kind", "kind", "sigs.k8s.io/kind", "sigs.k8s.io/kind", f"v{KIND}"),)
# Further binaries of a kind node and its own pods, where no registry has their images.
NODE_COMPONENTS = (
    *_of_kubernetes("kubelet", "kubeadm", "kube-proxy", "kubectl"),
    Component("coredns", "coredns", "elastic-lab/components/coredns", "github.com/coredns/coredns", f"v{COREDNS}"),
    Component("pause", "coredns", "elastic-lab/components/coredns/pause", "elastic-lab/components/coredns", "(devel)"),
)
# The consumer on franz-go (lab.components.clients).
FRANZ_GO = (
    Component("consumer-franz-go", "franz-go", "elastic-lab/components/franz-go", "github.com/twmb/franz-go", "v1.22.3"),
)
# The linker would drop the debugging information (-s -w): not to make it saves a sixth of the CPU.
BUILD = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false")
# Folders of a module's source that a binary needs too: the folder there, and its name beside the binary.
FILES = {"keda-operator": ("config/crd/bases", "keda-crds"), "keda-webhooks": ("config/webhooks", "keda-admission")}


@dataclass(frozen=True)
class Built:
    """Finished binaries: the folder they are in, and the version of each by name."""

    folder: Path
    versions: dict[str, str]

    def binary(self, name: str) -> Path:
        """Path of the binary called ``name``."""
        return self.folder / name

    @property
    def keda_crds(self) -> Path:
        """Folder of KEDA's CustomResourceDefinition files, taken from the pinned module."""
        return self.folder / "keda-crds"

    @property
    def keda_admission(self) -> Path:
        """File of KEDA's ValidatingWebhookConfiguration, taken from the pinned module."""
        return self.folder / "keda-admission" / "validation_webhooks.yaml"


def key(components: Sequence[Component] = COMPONENTS) -> str:
    """Hash of everything that decides the build but the release of Go: pins, checksums, sources that are no module, flags."""
    digest = hashlib.sha256(repr((components, BUILD, platform.machine())).encode())
    for graph in sorted({component.folder for component in components}):
        for file in _sources(MODULES / graph):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _sources(graph: Path) -> Iterator[Path]:
    """The files of a go.mod's folder that decide a build, and those of each folder that the go.mod puts in a module's place."""
    for kind in ("go.mod", "go.sum", "*.go"):
        yield from sorted(graph.rglob(kind))
    for place in re.findall(r"=>\s+(\.{0,2}/\S*)", (graph / "go.mod").read_text()):
        tree = (graph / place).resolve()
        yield from sorted(file for file in tree.rglob("*") if file.is_file() and ".git" not in file.relative_to(tree).parts)


def folder(components: Sequence[Component] = COMPONENTS) -> Path:
    """Where the finished build for the current pins is, or will be."""
    return paths.cache_dir() / "components" / key(components)


def built(components: Sequence[Component] = COMPONENTS) -> Built | None:
    """The finished build for the current pins, or None."""
    manifest = folder(components) / "versions.json"
    if not manifest.exists():
        return None
    return Built(manifest.parent, json.loads(manifest.read_text()))


def ensure(components: Sequence[Component] = COMPONENTS) -> Built:
    """The finished build, made first if it is missing.

    Raises :class:`LabFault` without Go, where a module can't be fetched, or for a version that is not the pinned one.
    """
    with resources.hold_lock(paths.cache_dir() / "components.lock", "it builds components"):
        done = built(components)
        if done is not None:
            return done
        for partial in (paths.cache_dir() / "components").glob("*.partial"):  # of a build that was cut short
            shutil.rmtree(partial)
        with runs.guarded() as run:
            return _build(components, run)


def _build(components: Sequence[Component], run: Path) -> Built:
    go = go_command()
    target = folder(components)
    partial = target.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    log.info("first run: building %d components with %s", len(components), go)
    versions: dict[str, str] = {}
    begun = time.monotonic()
    groups = [list(group) for _, group in groupby(components, lambda each: (each.folder, each.tags))]

    def progress() -> str:
        return f"building components: {sum(map(Path.is_file, partial.iterdir()))} of {len(components)} are done"

    with ThreadPoolExecutor(1) as pool, reporting(progress, every_s=15):
        for group in groups[1:]:  # their modules are downloaded meanwhile; what fails here fails again below, with a reason
            pool.submit(_go, go, "list", group, ["-deps"], run)
        for group in groups:
            versions |= _make(go, group, partial, run)
    (partial / "versions.json").write_text(json.dumps(versions, indent=1))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    log.info("built %d components in %.0f s", len(components), time.monotonic() - begun)
    return Built(target, versions)


def _make(go: str, group: Sequence[Component], target: Path, run: Path) -> dict[str, str]:
    """Build ``group`` into ``target``, with the files that it needs; returns the version of each."""
    begun = time.monotonic()
    flags = [f"-ldflags={component.package}={component.ldflags}" for component in group]
    _go(go, "build", group, [*BUILD, *flags, "-o", f"{target}/"], run)
    for component in group:
        (target / component.program).rename(target / component.name)
        if component.name in FILES:
            there, here = FILES[component.name]
            shutil.copytree(source(component.module, component.folder) / there, target / here, dirs_exist_ok=True)
    versions = {component.name: _verified(go, target / component.name, component) for component in group}
    log.info(
        "built %s in %.0f s", ", ".join(f"{name} {version}" for name, version in versions.items()), time.monotonic() - begun
    )
    return versions


def _go(go: str, verb: str, group: Sequence[Component], options: Sequence[str], run: Path) -> str:
    """Run a Go command on the packages of ``group``, which have one go.mod and the same tags."""
    command = [go, verb, *options, "-tags", group[0].tags, *(component.package for component in group)]
    return run_go(command, MODULES / group[0].folder, ", ".join(component.name for component in group), run)


def source(module: str, graph: str) -> Path:
    """The folder with the source of ``module``, at the version that ``graph``'s go.mod pins; downloaded if it is missing."""
    go = go_command()
    run_go([go, "mod", "download", module], MODULES / graph, module)  # it is silent of a folder in the module's place
    return Path(run_go([go, "list", "-m", "-f", "{{.Dir}}", module], MODULES / graph, module).strip())


def _verified(go: str, binary: Path, component: Component) -> str:
    """The module version compiled into ``binary``, and what the go.mod put in its place; it must be the pinned one."""
    info = run_go([go, "version", "-m", str(binary)], MODULES, component.name)
    module = rf"^\s+(?:mod|dep)\s+{re.escape(component.module)}\s+(\S+).*(?:\n\s+(=>\s+\S+\s+\S+))?"
    found = re.search(module, info, re.MULTILINE)
    if found is None or found[1] != component.version:
        raise LabFault(f"{component.name}: built {found[1] if found else 'an unknown version'}, wanted {component.version}")
    return " ".join([component.version, *(found[2] or "").split()])
