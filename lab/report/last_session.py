"""Where the last session from here leaves its results: ``elastic-lab report`` takes that folder where it is given none.

pytest's cache has it. In tox a file in the environment's temporary folder does, which tox empties at its start: a session that
is refused leaves none, so that the one before is not taken for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RESULTS = Path("results")
_CACHED = "elastic-lab/results"


def keep(folder: Path, cache: Any) -> None:
    """Name ``folder`` as that of the last session, in pytest's ``cache`` if there is one."""
    if (file := _in_tox()) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(folder))
    elif cache is not None:
        cache.set(_CACHED, str(folder))


def find() -> Path | None:
    """The folder of the last session in the current directory, ``results`` where none is known. In tox None stands for none."""
    if (file := _in_tox()) is not None:
        return Path(file.read_text()) if file.is_file() else None
    try:
        folder = Path(json.loads(Path(".pytest_cache", "v", _CACHED).read_text()))
    except (OSError, ValueError):
        return RESULTS
    return folder if folder.is_dir() else RESULTS


def _in_tox() -> Path | None:
    environment = os.environ.get("TOX_ENV_DIR")
    return Path(environment, "tmp", "elastic-lab-results") if environment else None
