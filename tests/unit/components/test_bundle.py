"""A bundle of the components: what is written is read back elsewhere, and nothing that was changed on the way is taken."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import re
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from lab import paths
from lab.__main__ import main
from lab.cluster import binary
from lab.components import build, bundle, clients, jars
from lab.errors import InputError, LabFault


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with small files in the place of the components, and a function that changes to an empty one."""

    def use(name):
        monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / name))
        return tmp_path / name

    root = use("first")
    for folder in bundle.folders():
        (root / folder / "deeper").mkdir(parents=True)
        (root / folder / "program").write_bytes(b"\x7fELF" + str(folder).encode())
        (root / folder / "program").chmod(0o755)
        (root / folder / "deeper" / "data.json").write_text("{}")
    return use


def contents(root):
    """Every file of the bundle's folders with its bytes and whether it can be executed."""
    files = [file for folder in bundle.folders() for file in (root / folder).rglob("*") if file.is_file()]
    return {str(file.relative_to(root)): (file.read_bytes(), bool(file.stat().st_mode & 0o100)) for file in files}


def rewritten(file, change):
    """The same bundle with ``change`` applied to each member's name and bytes; None leaves the member out."""
    with tarfile.open(file) as tar:
        members = [(info, tar.extractfile(info).read()) for info in tar]
    with tarfile.open(file, "w:gz") as tar:
        for info, data in members:
            if (changed := change(info.name, data)) is not None:
                info.name, data = changed
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return file


def test_what_is_exported_is_imported_elsewhere(cache, tmp_path):
    """Bytes, modes and folders are the same in another cache, and a second import finds nothing to do."""
    file = tmp_path / "lab.tar.gz"
    assert bundle.write(file) == file.stat().st_size
    wanted = contents(tmp_path / "first")
    root = cache("second")
    assert bundle.read(file) == bundle.folders()
    assert contents(root) == wanted
    assert bundle.read(file) == []
    assert not list(root.glob("bundle-*"))


def indexed(name, data, **fields):
    """The member; with other ``fields`` if it is the bundle's index."""
    return name, json.dumps(json.loads(data) | fields).encode() if name == bundle.INDEX else data


def other_platform(name, data):
    """The bundle is of another machine."""
    return indexed(name, data, platform="plan9-mips")


# By what was done to a bundle: the change of each member's name and bytes, and the words of the refusal.
CHANGED = {
    "a byte of a program is another": (
        lambda name, data: (name, data.replace(b"\x7fELF", b"\x7fELG")),
        r"program.*SHA-256 \w+.*allowed: SHA-256 \w+",
    ),
    "a program is left out": (
        lambda name, data: None if name.endswith("program") else (name, data),
        "program.*missing.*allowed: every file that bundle.json names",
    ),
    "a program would be written beside the cache": (
        lambda name, data: (name.replace("components/", "components/../../", int(name.endswith("program"))), data),
        r"\.\..*allowed: a regular file that bundle.json names",
    ),
    "it is of another checkout": (
        lambda name, data: indexed(name, data, folders=["components/0123"]),
        "folders.*0123.*what this checkout's pins ask for",
    ),
    "it is of another machine": (other_platform, "platform.*plan9-mips"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_changed_bundle_is_refused_and_leaves_nothing(cache, tmp_path, case):
    """The line names the file, the member, what it is and what it must be."""
    change, words = CHANGED[case]
    file = tmp_path / "lab.tar.gz"
    bundle.write(file)
    rewritten(file, change)
    root = cache("second")
    with pytest.raises(InputError, match=words) as error:
        bundle.read(file)
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)
    assert not [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("data", [b"", b"no archive", gzip.compress(b"no tar", mtime=0), None])
def test_what_is_no_bundle_is_refused_in_one_line(cache, tmp_path, data):
    """An empty, foreign or missing file, and one that a copy cut short."""
    file = tmp_path / "lab.tar.gz"
    bundle.write(file)
    if data is None:
        file.write_bytes(file.read_bytes()[:-200])
    else:
        file.write_bytes(data)
    cache("second")
    with pytest.raises(InputError, match="elastic-lab build --export") as error:
        bundle.read(file)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"No such file"):
        bundle.read(Path(tmp_path, "none"))


def test_nothing_is_exported_before_it_is_built(cache, tmp_path):
    """The fault names what lacks, and no file is left."""
    cache("second")
    with pytest.raises(LabFault, match="run elastic-lab build first"):
        bundle.write(tmp_path / "lab.tar.gz")
    assert not list(tmp_path.glob("lab.tar.gz*"))


class Handler(BaseHTTPRequestHandler):
    """Serves one bundle, whole or cut off, and nothing else."""

    data = b""

    def do_GET(self):
        """The bundle at every path but /none; at /cut its second half is announced and does not come."""
        if self.path == "/none":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.data)))
        self.end_headers()
        self.wfile.write(self.data[: len(self.data) // 2] if self.path == "/cut" else self.data)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def served(cache, tmp_path, monkeypatch):
    """An empty cache, and beside it a file and a server on loopback with the bundle: its addresses and its SHA-256."""
    bundle.write(tmp_path / "lab.tar.gz")
    data = (tmp_path / "lab.tar.gz").read_bytes()
    cache("second")
    monkeypatch.setattr(Handler, "data", data)
    monkeypatch.setattr(build, "ensure", lambda: build.Built(paths.cache_dir() / "built", {}))
    monkeypatch.setattr(jars, "resolve", lambda *_: [])
    monkeypatch.setattr(jars, "spark_kafka", list)
    monkeypatch.setattr(clients, "ensure", lambda _: {})
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", hashlib.sha256(data).hexdigest()
        server.shutdown()
        thread.join()


def present():
    """Whether all that the bundle has is in the cache."""
    return all((paths.cache_dir() / folder).is_dir() for folder in bundle.folders())


@pytest.mark.parametrize("place", ["/lab.tar.gz", "file"])
def test_ready_parts_with_the_pinned_checksum_are_taken(served, tmp_path, capsys, place):
    """From a server or from a file: the command leaves them in the cache, and the next call asks nobody."""
    url, digest = served
    origin = str(tmp_path / "lab.tar.gz") if place == "file" else url + place
    assert main(["build", f"--from={origin}#sha256={digest}"]) == 0
    assert present()
    assert not list(paths.cache_dir().glob("bundle-*"))
    assert main(["build", f"--from={url}/none#sha256={digest}"]) == 0
    assert "building instead" not in capsys.readouterr().err


def test_the_project_s_own_pin_is_the_default(served, tmp_path, monkeypatch):
    """The line of this platform, and no other's; without one nothing is asked for."""
    url, digest = served
    monkeypatch.setattr(bundle, "READY", tmp_path / "ready.sha256")
    lines = ["# a remark", "", f"{'0' * 64} {url}/plan9-mips.tar.gz"]
    bundle.READY.write_text("\n".join(lines))
    binary.prepare()
    assert not present()
    bundle.READY.write_text("\n".join([*lines, f"{digest} {url}/{bundle._platform()}.tar.gz"]))
    binary.prepare()
    assert present()


@pytest.mark.parametrize(
    ("path", "digest", "reason"),
    [
        ("/lab.tar.gz", "0" * 64, r"its SHA-256 is \w{64}, not 0{64}; it was not kept"),
        ("/cut", None, r"cut off [\d,]+ bytes before its end"),
        ("/none", None, "HTTP Error 404: Not Found"),
        ("no-such-file", None, "No such file"),
        ("closed", None, "Connection refused"),
        ("others", None, "platform: 'plan9-mips' is not allowed"),
    ],
)
def test_what_can_not_be_taken_is_said_in_one_line_and_built(served, tmp_path, caplog, path, digest, reason):
    """Another checksum, a cut download, a missing file, nobody there, another's parts: the build goes on as without them."""
    url, right = served
    origin = f"{url}{path}" if path.startswith("/") else str(tmp_path / path)
    if path == "closed":
        origin = "http://127.0.0.1:9/lab.tar.gz"  # the port of no service
    if path == "others":
        right = hashlib.sha256(rewritten(tmp_path / "lab.tar.gz", other_platform).read_bytes()).hexdigest()
        origin = str(tmp_path / "lab.tar.gz")
    with caplog.at_level("WARNING", "lab.build"):
        assert binary.prepare(f"{origin}#sha256={digest or right}") == build.ensure()
    (line,) = caplog.messages
    assert re.fullmatch(f"{re.escape(origin)}: .*{reason}.*; building instead", line)
    assert not present()
    assert not list(paths.cache_dir().glob("bundle-*"))


def test_an_origin_without_a_checksum_is_bad_input(served, capsys):
    """It is not asked: the line says how to write one."""
    assert main(["build", f"--from={served[0]}/lab.tar.gz"]) == 2
    assert "#sha256=... behind it" in capsys.readouterr().err


def test_the_committed_pins_are_lines_of_a_checksum_and_an_address():
    """They can be read; each platform has one line at most."""
    lines = [line.split() for line in bundle.READY.read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) and "://" in url for digest, url in lines)


def test_the_workflow_names_its_bundles_as_the_pins_are_looked_up():
    """Both architectures are built by a command that exists; the job that can write runs no code of the checkout."""
    jobs = yaml.safe_load((paths.PROJECT / ".github" / "workflows" / "components.yml").read_text(encoding="utf-8"))["jobs"]
    (command,) = (step["run"] for step in jobs["build"]["steps"] if step.get("name") == "Build")
    system, machine = bundle._platform().split("-")
    assert command == f'elastic-lab build --export "elastic-lab-{system}-$(uname -m).tar.gz"'
    assert machine == platform.machine()
    assert [name for name, job in jobs.items() if "permissions" in job] == ["attach"]
    assert not any("uses" in step for step in jobs["attach"]["steps"])
    assert all(re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in jobs["build"]["steps"] if "uses" in step)
