"""Text files that others read at any time, and that a crash or a full disk must not leave half written."""

from __future__ import annotations

import os
from pathlib import Path


def write(file: Path, text: str, *, durable: bool = False) -> None:
    """Write ``text`` into ``file``, whole or not at all; a ``durable`` one outlives a crash of the machine from then on.

    Raises OSError, with ``file`` as it was and nothing beside it.
    """
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text)
        if durable:
            sync(partial)
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if durable:
        sync(file.parent)


def sync(path: Path) -> None:
    """Return when the file ``path``, or the names that are in the folder, are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
