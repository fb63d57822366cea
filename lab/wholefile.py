"""Text files that others read at any time, and that a crash or a full disk must not leave half written."""

from __future__ import annotations

from pathlib import Path


def write(file: Path, text: str) -> None:
    """Write ``text`` into ``file``, whole or not at all. Raises OSError, with ``file`` as it was and nothing beside it."""
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text)
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
