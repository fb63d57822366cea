"""Makes the images of a kind cluster on a machine that reaches no registry, from pinned modules and Debian packages.

Each image has a label with the hash of its ingredients. An image that is current is not made again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from lab.cluster import docker
from lab.cluster.images import catalog
from lab.components import build, jars
from lab.errors import LabFault
from lab.host.command import run_command
from lab.wait import reporting

log = logging.getLogger("lab.images")

HERE = Path(__file__).parent
LAB = HERE.parents[1]
LABEL = "elastic-lab.made-of"
RELEASE = "bookworm"
_LEFT_OUT = ("man", "doc", "locale", "info")
LONGEST_S = 3600.0  # of one command: it fetches packages
NEEDED_GB = 8  # images 2 GB, layers while they are made, and the node's own copy of them
NODE_PACKAGES = (
    "systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "libseccomp2",
    "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps", "socat", "containerd", "runc",
    "containernetworking-plugins",
)  # fmt: skip
# The place of the program in upstream's images, by the image's name: a manifest's command must find it in both.
_PROGRAMS = {
    "keda": ("keda-operator", "/keda"),
    "keda-metrics-apiserver": ("keda-adapter", "/keda-adapter"),
    "metrics-server": ("metrics-server", "/metrics-server"),
    "kube-state-metrics": ("kube-state-metrics", "/kube-state-metrics"),
    "prometheus": ("prometheus", "/bin/prometheus"),
}
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROXY_PACKAGES = ("iptables", "nftables", "conntrack", "kmod")
JAVA_PACKAGES = ("openjdk-17-jre-headless", "dash")
PYTHON_PACKAGES = ("python3", "libstdc++6", "zlib1g", "dash")
POD_NEEDS = (  # with their own dependencies: they are installed without resolving more
    "cffi", "confluent-kafka", "cryptography", "grpcio", "grpcio-health-checking", "numpy", "prometheus-client",
    "protobuf", "pyyaml", "typing-extensions",
)  # fmt: skip
POD_PARTS = ("inputs", "kafka", "model", "programs")
WHEELS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


@dataclass(frozen=True)
class Recipe:
    """An image: its name, the hash of its ingredients, and the function that makes it, given name, scratch folder and hash."""

    image: str
    made_of: str
    make: Callable[[str, Path, str], None]


def ensure(wanted: Sequence[str]) -> dict[str, str]:
    """Make those of ``wanted`` (upstream's names), the node's and the pods' images that lack; returns name -> name here.

    Raises :class:`LabFault` when there is no root, no mmdebstrap, no daemon, no space, or no recipe for an image.
    """
    _check_machine()
    recipes = _recipes(wanted)
    missing = [recipe for recipe in recipes if docker.label(recipe.image, LABEL) != recipe.made_of]
    log.info("%d of %d images to make; some two minutes once their binaries are built", len(missing), len(recipes))
    begun = time.monotonic()
    for number, recipe in enumerate(missing, 1):
        _make(recipe, f"making {recipe.image} ({number} of {len(missing)})")
    if missing:
        log.info("made %d images in %.0f s", len(missing), time.monotonic() - begun)
    return {name: catalog.made_here(name) for name in (*wanted, catalog.NODE, catalog.PYTHON)}


def current(wanted: Sequence[str]) -> dict[str, str] | None:
    """Like :func:`ensure`, but None when any of the images is not made."""
    if build.built() is None or build.built(build.NODE_COMPONENTS) is None:
        return None
    if any(docker.label(recipe.image, LABEL) != recipe.made_of for recipe in _recipes(wanted)):
        return None
    return {name: catalog.made_here(name) for name in (*wanted, catalog.NODE, catalog.PYTHON)}


def pods_recipe(base: str) -> Recipe:
    """The image of the lab's own programs upon the Python image ``base``; its tag is the hash of its ingredients."""
    versions = {name: metadata.version(name) for name in POD_NEEDS}
    files = sorted([*LAB.glob("*.py"), *(f for part in POD_PARTS for f in (LAB / part).rglob("*.py"))])
    digest = fingerprint(base, str(versions), (HERE / "pods" / "Dockerfile").read_text(), *(file.read_text() for file in files))
    return Recipe(f"{catalog.PODS}:{digest[:12]}", digest, partial(_pods, base=base, versions=versions, files=files))


def wheels(versions: Mapping[str, str], machine: str) -> list[str]:
    """What pip is asked for: the pods' packages for the image's own Python, on this ``machine`` ("x86_64", "aarch64").

    A package is as new as that Python allows and no newer than this environment's: equal, unless its Python is newer.
    """
    platforms = [f"--platform={name}_{machine}" for name in WHEELS]
    wanted = [f"{name}<={version}" for name, version in versions.items()]
    return ["--no-deps", "--only-binary=:all:", f"--python-version={catalog.PODS_PYTHON}", "--implementation=cp",
            *platforms, *wanted]  # fmt: skip


def ensure_image(recipe: Recipe) -> str:
    """The name of the image of ``recipe``, which is made unless it is there."""
    if docker.label(recipe.image, LABEL) != recipe.made_of:
        _make(recipe, f"making {recipe.image}")
    return recipe.image


def make_pods(base: str) -> str:
    """Make the image of the lab's own programs unless it is there; returns its name."""
    return ensure_image(pods_recipe(base))


def node_recipe() -> Recipe:
    """The node image: kind's files, Debian's packages, the lab's binaries, and the control plane's images inside it."""
    texts = [file.read_text() for file in sorted((HERE / "node").rglob("*")) if file.is_file()]
    made_of = fingerprint(build.key(), build.key(build.NODE_COMPONENTS), build.key(build.KIND_TOOL), *NODE_PACKAGES, *texts)
    return Recipe(catalog.made_here(catalog.NODE), made_of, _node)


def python_recipe() -> Recipe:
    """A bare Python of Debian's, for the lab's programs."""
    hooks = ['ln -s python3 "$1/usr/bin/python"']
    make = partial(_debian, packages=PYTHON_PACKAGES, hooks=hooks, changes=["ENV PATH=/usr/bin:/bin"])
    return Recipe(catalog.made_here(catalog.PYTHON), fingerprint(*PYTHON_PACKAGES, *hooks), make)


def _recipes(wanted: Iterable[str]) -> list[Recipe]:
    return [*(_recipe(name) for name in wanted), node_recipe(), python_recipe()]


def _recipe(upstream: str) -> Recipe:
    """The recipe of the image that replaces upstream's; paths and users are those of upstream's image."""
    name = catalog.made_here(upstream)
    part = name.partition("/")[2].partition(":")[0]
    if part in _PROGRAMS:
        binary, path = _PROGRAMS[part]
        return Recipe(name, fingerprint(build.key(), binary, path), partial(binary_image, binary=binary, path=path))
    if part == "kafka":
        return Recipe(name, fingerprint(*jars.KAFKA, *JAVA_PACKAGES), _kafka)
    raise LabFault(f"elastic-lab images: there is no recipe for {upstream}; there is one for {', '.join(_PROGRAMS)}, kafka")


def _make(recipe: Recipe, label: str) -> None:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="elastic-lab-image-") as scratch, reporting(lambda: label):
        recipe.make(recipe.image, Path(scratch), recipe.made_of)
    size = docker.images([recipe.image])[recipe.image]
    log.info("%s: %.0f MB, %.0f s", label, size / 1e6, time.monotonic() - begun)


def binary_image(
    image: str, scratch: Path, made_of: str, *, binary: str, path: str, user: str = "65532:65532", changes: Sequence[str] = ()
) -> None:
    """One static binary and a /tmp; ``changes`` are further Dockerfile lines."""
    root = scratch / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    sets = (build.COMPONENTS, build.NODE_COMPONENTS, build.FRANZ_GO)
    wanted = next(one for one in sets if binary in {part.name for part in one})
    shutil.copy(build.ensure(wanted).binary(binary), target)
    archive = scratch / "root.tar"
    packed = run_command(["tar", "--owner=0", "--group=0", "-C", root, "-cf", archive, "."], LONGEST_S, "tar")
    if packed.returncode != 0:
        raise LabFault(f"tar: {docker.reason(packed.stderr)}")
    docker.add(archive, image, [f'ENTRYPOINT ["{path}"]', f"USER {user}", *changes, _labelled(made_of)])


def _debian(
    image: str, scratch: Path, made_of: str, *, packages: tuple[str, ...], hooks: list[str], changes: list[str]
) -> None:
    _root(scratch / "root.tar", packages, hooks)
    docker.add(scratch / "root.tar", image, [*changes, _labelled(made_of)])


def _kafka(image: str, scratch: Path, made_of: str) -> None:
    libraries = " ".join(shlex.quote(str(jar)) for jar in jars.resolve("kafka", jars.KAFKA))
    hooks = [
        'cd "$1/usr/bin" && ln -s ../lib/jvm/java-17-openjdk-*/bin/java java',  # its folder ends with the architecture
        f'mkdir -p "$1/opt/kafka/libs" && cp {libraries} "$1/opt/kafka/libs/"',
    ]
    _debian(image, scratch, made_of, packages=JAVA_PACKAGES, hooks=hooks, changes=["ENV PATH=/usr/bin:/bin", "USER 1000:1000"])


def _node(image: str, scratch: Path, made_of: str) -> None:
    own = build.ensure(build.NODE_COMPONENTS)
    pause = f"{catalog.OURS}/pause:{build.PAUSE}"
    inside = {
        **{name: f"{catalog.OURS}/{name}:v{build.KUBERNETES}" for name in CONTROL_PLANE},
        "etcd": f"{catalog.OURS}/etcd:{build.ETCD}",
        "coredns": f"{catalog.OURS}/coredns:v{build.COREDNS}",
        "pause": pause,
    }
    for name, part in inside.items():
        binary_image(part, scratch / name, made_of, binary=name, path=f"/usr/local/bin/{name}", user="0:0")
    proxy = f"{catalog.OURS}/kube-proxy:v{build.KUBERNETES}"
    names = [f"{kind}{verb}" for kind in ("iptables", "ip6tables") for verb in ("", "-save", "-restore")]
    links = " && ".join(f'ln -sf xtables-nft-multi "$1/usr/sbin/{name}"' for name in names)
    hooks = [links, f'mkdir -p "$1/usr/local/bin" && cp {shlex.quote(str(own.binary("kube-proxy")))} "$1/usr/local/bin/"']
    path = ["ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    _debian(proxy, scratch, made_of, packages=PROXY_PACKAGES, hooks=hooks, changes=path)
    base = f"{catalog.OURS}/node-base:{RELEASE}"
    _root(scratch / "base.tar", NODE_PACKAGES, whole=True)
    docker.add(scratch / "base.tar", base, [])

    context = scratch / "context"
    shutil.copytree(HERE / "node", context)
    shutil.copytree(build.source("sigs.k8s.io/kind", "kind") / "images" / "base" / "files", context / "kind")
    shutil.rmtree(context / "kind" / "LICENSES")
    for folder in (context, *context.rglob("*")):  # a module's files are read-only
        folder.chmod(folder.stat().st_mode | 0o200)
    (context / "files" / "kind" / "version").write_text(f"v{build.KUBERNETES}\n")
    (context / "bin").mkdir()
    for name in ("kubelet", "kubeadm"):
        shutil.copy(own.binary(name), context / "bin")
    shutil.copy(own.binary("kubectl"), context / "bin")
    (context / "images").mkdir()
    docker.run("save", "--output", str(context / "images" / "kubernetes.tar"), *inside.values(), proxy)
    docker.build(context, image, {"BASE": base, "PAUSE": pause}, {LABEL: made_of})
    docker.run("image", "rm", *inside.values(), proxy)


def _pods(image: str, scratch: Path, made_of: str, *, base: str, versions: Mapping[str, str], files: list[Path]) -> None:
    context = scratch / "context"
    options = wheels(versions, platform.machine())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", context / "packages", *options]
    result = run_command(install, LONGEST_S, "the pods' packages")
    if result.returncode != 0:
        raise LabFault(f"the pods' packages {', '.join(versions)}: {docker.reason(result.stderr)}")
    for file in files:
        target = context / "lab" / file.relative_to(LAB)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    shutil.copy(HERE / "pods" / "Dockerfile", context)
    docker.build(context, image, {"BASE": base}, {LABEL: made_of})


def _labelled(made_of: str) -> str:
    return f"LABEL {LABEL}={made_of}"


def fingerprint(*parts: str) -> str:
    """The hash of ``parts`` and of the recipes themselves."""
    parts += ((HERE / "make.py").read_text(),)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _check_machine() -> None:
    """Raise :class:`LabFault` in one line when no root file system can be made or kept here."""
    command = "elastic-lab images"
    if os.geteuid() != 0:
        raise LabFault(f"{command}: needs root, to make root file systems and firewall rules: run it with sudo")
    if shutil.which("mmdebstrap") is None:
        raise LabFault(f"{command}: no mmdebstrap command on PATH: apt install mmdebstrap")
    docker.check()
    folder = Path(docker.run("info", "--format", "{{.DockerRootDir}}").strip())
    if folder.exists() and (free := shutil.disk_usage(folder).free / 1e9) < NEEDED_GB:
        raise LabFault(f"{command}: {free:.1f} GB free in {folder}, where Docker keeps its images; needs {NEEDED_GB}")


def _root(archive: Path, packages: Sequence[str], hooks: Sequence[str] = (), whole: bool = False) -> None:
    """Write a root file system with ``packages`` and their dependencies to ``archive``, a tar; ``hooks`` run in it ("$1").

    ``whole`` adds Debian's base and runs the packages' scripts; without it their files are unpacked and nothing runs.
    """
    kept = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in _LEFT_OUT]
    variant, moment = ("minbase", "customize") if whole else ("extract", "extract")
    made = [f"--{moment}-hook={hook}" for hook in ('mkdir -p -m 1777 "$1/tmp"', *hooks)]
    options = [f"--variant={variant}", f"--include={','.join(packages)}", *kept, *made]
    result = run_command(["mmdebstrap", *options, RELEASE, archive], LONGEST_S, "mmdebstrap")
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.startswith(("E:", "W:"))] or ["it printed no reason"]
        raise LabFault(f"a Debian root of {', '.join(packages[:3])}...: {lines[0]} (are Debian's packages reachable?)")
