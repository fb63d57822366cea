"""One file with all components of a cluster: a team builds once, its CI and its people start in a minute.

A gzipped tar. Its first member, ``bundle.json``, has format, platform, folders and the SHA-256 of every file. Only a checkout
with the same pins accepts it. Nothing of a bundle that fails a check stays in the cache. A bundle from elsewhere is taken
only where a SHA-256 is pinned for it.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import platform
import shutil
import tarfile
import tempfile
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

from lab import paths
from lab.components import build, jars
from lab.errors import InputError, LabFault
from lab.host import resources
from lab.wait import reporting

log = logging.getLogger("lab.build")

READY = Path(__file__).with_name("ready.sha256")  # a line for each platform; none while no bundle is published
FORMAT = 1
INDEX = "bundle.json"
_BLOCK = 2**20
_COMPRESSION = 1  # six seconds instead of forty, for a file that is a tenth larger
_LARGEST_INDEX = 2**20
_SILENT_S = 60  # without a byte: the other side is taken for gone


def folders() -> list[Path]:
    """The cache folders of a cluster at this checkout's pins, relative to the cache: the binaries, then the jars."""
    root = paths.cache_dir()
    made = (build.folder(), jars.folder("kafka", jars.KAFKA), jars.folder("spark-kafka", jars.SPARK_KAFKA, jars.SPARK_SHIPS))
    return [each.relative_to(root) for each in made]


def write(file: Path) -> int:
    """Write the bundle to ``file``; returns its size in bytes. Raises :class:`LabFault` when a part is not built yet."""
    root = paths.cache_dir()
    lacking = [str(folder) for folder in folders() if not (root / folder).is_dir()]
    if lacking:
        raise LabFault(f"a bundle needs {', '.join(lacking)} in {root}: run elastic-lab build first")
    files = [name for folder in folders() for name in sorted((root / folder).rglob("*")) if name.is_file()]
    index = {
        "format": FORMAT,
        "platform": _platform(),
        "folders": [str(folder) for folder in folders()],
        "files": {str(name.relative_to(root)): _sha256(name) for name in files},
    }
    partial = file.with_name(f"{file.name}.partial")
    try:
        with reporting(lambda: f"writing {file.name}"), tarfile.open(partial, "w:gz", compresslevel=_COMPRESSION) as tar:
            text = json.dumps(index, indent=1).encode()
            head = tarfile.TarInfo(INDEX)
            head.size = len(text)
            tar.addfile(head, io.BytesIO(text))
            for name in files:
                tar.add(name, arcname=str(name.relative_to(root)), recursive=False)
        partial.replace(file)
    except OSError as error:
        raise LabFault(f"{file} could not be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return file.stat().st_size


def fetch(origin: str | None = None) -> None:
    """Take what lacks in the cache from ``origin``, a file or a URL: by default the one that is pinned for this platform.

    Its SHA-256 is pinned too, or stands behind it as ``#sha256=``. What fails is one line in the log, and the parts lack as
    before. Raises :class:`InputError` for an ``origin`` without a SHA-256.
    """
    root = paths.cache_dir()
    if all((root / folder).is_dir() for folder in folders()):
        return
    lines = [line.split() for line in READY.read_text().splitlines() if line and line[0] != "#"]
    pinned, default = next(((digest, url) for digest, url in lines if _platform() in url), ("", ""))
    address, _, given = (origin or default).partition("#sha256=")
    if not address:
        return
    if not (wanted := given or pinned):
        raise InputError("command line", "--from", origin, f"#sha256=... behind it, or a line for {_platform()} in {READY}")
    with tempfile.TemporaryDirectory(prefix="bundle-", dir=root) as scratch:
        file = Path(scratch, "bundle.tar.gz")
        try:
            _download(address, file, wanted)
            log.info("%s: took %s", address, ", ".join(map(str, read(file))))
        except (OSError, HTTPException, InputError, LabFault) as error:
            log.warning("%s: %s; building instead", address, str(error).removeprefix(f"{file}: "))


def _download(address: str, file: Path, wanted: str) -> None:
    """Write what is at ``address`` to ``file``. Raises :class:`LabFault` where it is cut off or its SHA-256 is another."""
    url = address if "://" in address else Path(address).absolute().as_uri()
    with urlopen(url, timeout=_SILENT_S) as source, file.open("wb") as target, reporting(lambda: f"fetching {address}"):
        found = _copy(source, target)
        if left := getattr(source, "length", None):
            raise LabFault(f"cut off {left:,} bytes before its end")
    if found != wanted.lower():
        raise LabFault(f"its SHA-256 is {found}, not {wanted}; it was not kept")


def read(file: Path) -> list[Path]:
    """Put the content of ``file`` into the cache; returns the folders that were not there before, relative to the cache.

    Raises :class:`InputError` for no bundle, other pins, another platform, or a part that does not match its checksum.
    """
    root = paths.cache_dir()
    with tempfile.TemporaryDirectory(prefix="bundle-", dir=root) as scratch:
        try:
            with tarfile.open(file, "r:gz") as tar, reporting(lambda: f"reading {file.name}"):
                index = _index(file, tar)
                _unpack(file, tar, index["files"], Path(scratch))
        except (OSError, EOFError, tarfile.TarError) as error:
            reason = getattr(error, "strerror", None) or "damaged or no bundle"
            raise InputError(file, "(file)", reason, "a file written by elastic-lab build --export") from None
        return [folder for folder in folders() if _move(Path(scratch) / folder, root / folder)]


def _index(file: Path, tar: tarfile.TarFile) -> dict[str, Any]:
    """The bundle's index. It must be for this platform and for this checkout's pins."""
    head = tar.next()
    content = tar.extractfile(head) if head is not None and head.name == INDEX and head.size < _LARGEST_INDEX else None
    try:
        index = json.load(content) if content else None
    except ValueError:
        index = None
    if not isinstance(index, dict) or not isinstance(index.get("files"), dict):
        raise InputError(file, INDEX, "missing or unreadable", "a file written by elastic-lab build --export")
    wanted = {"format": FORMAT, "platform": _platform(), "folders": [str(folder) for folder in folders()]}
    for field, value in wanted.items():
        if index.get(field) != value:
            allowed = f"{value}: what this checkout's pins ask for" if field == "folders" else str(value)
            raise InputError(file, field, index.get(field), allowed)
    return index


def _unpack(file: Path, tar: tarfile.TarFile, wanted: dict[str, str], target: Path) -> None:
    """Write the files of ``wanted`` below ``target``, and check each against its SHA-256."""
    allowed = tuple(f"{folder}/" for folder in folders())
    missing = dict(wanted)
    for member in tar:
        if member.name == INDEX:
            continue
        content = tar.extractfile(member) if member.isreg() else None
        expected = missing.pop(member.name, None)
        if content is None or expected is None or not member.name.startswith(allowed) or ".." in Path(member.name).parts:
            raise InputError(file, member.name, "a member", "a regular file that bundle.json names")
        place = target / member.name
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, place.open("wb") as output:
            found = _copy(content, output)
        if found != expected:
            raise InputError(file, member.name, f"SHA-256 {found}", f"SHA-256 {expected}")
        place.chmod(0o755 if member.mode & 0o100 else 0o644)
    if missing:
        raise InputError(file, next(iter(missing)), "missing", "every file that bundle.json names")


def _move(source: Path, target: Path) -> bool:
    """Move a folder to its place in the cache; False when it is there already."""
    with resources.hold_lock(paths.cache_dir() / "components.lock", "it builds components"):
        if target.exists():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(source, target)
    return True


def _copy(source: IO[bytes], target: IO[bytes] | None) -> str:
    """Copy ``source`` to ``target`` if there is a target; returns the SHA-256 of the bytes read."""
    digest = hashlib.sha256()
    while block := source.read(_BLOCK):
        digest.update(block)
        if target is not None:
            target.write(block)
    return digest.hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return _copy(content, None)


def _platform() -> str:
    return f"{platform.system()}-{platform.machine()}".lower()
