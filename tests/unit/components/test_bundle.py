"""A bundle of the components: what is written is read back elsewhere, and nothing that was changed on the way is taken."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from lab.components import bundle
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


def changed_byte(name, data):
    """One byte of a program is another."""
    return name, data.replace(b"\x7fELF", b"\x7fELG")


def member_left_out(name, data):
    """A program is not there."""
    return None if name.endswith("program") else (name, data)


def path_that_climbs(name, data):
    """A program would be written beside the cache."""
    return (name.replace("components/", "components/../../", 1), data) if name.endswith("program") else (name, data)


def other_pins(name, data):
    """The bundle is of another checkout."""
    if name != bundle.INDEX:
        return name, data
    return name, json.dumps(json.loads(data) | {"folders": ["components/0123"]}).encode()


def other_platform(name, data):
    """The bundle is of another machine."""
    return name, (json.dumps(json.loads(data) | {"platform": "plan9-mips"}).encode() if name == bundle.INDEX else data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed_byte, r"program.*SHA-256 \w+.*allowed: SHA-256 \w+"),
        (member_left_out, "program.*missing.*allowed: every file that bundle.json names"),
        (path_that_climbs, r"\.\..*allowed: a regular file that bundle.json names"),
        (other_pins, "folders.*0123.*what this checkout's pins ask for"),
        (other_platform, "platform.*plan9-mips"),
    ],
)
def test_a_changed_bundle_is_refused_and_leaves_nothing(cache, tmp_path, change, words):
    """The line names the file, the member, what it is and what it must be."""
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
    with pytest.raises(InputError, match="python -m lab build --export") as error:
        bundle.read(file)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"No such file"):
        bundle.read(Path(tmp_path, "none"))


def test_nothing_is_exported_before_it_is_built(cache, tmp_path):
    """The fault names what lacks, and no file is left."""
    cache("second")
    with pytest.raises(LabFault, match="run python -m lab build first"):
        bundle.write(tmp_path / "lab.tar.gz")
    assert not list(tmp_path.glob("lab.tar.gz*"))
