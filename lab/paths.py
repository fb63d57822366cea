"""Where the lab keeps what it builds once, and where the files are that come with it: profiles and manifests."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
# A wheel has profiles/, manifests/ and acceptance/ inside the package; a checkout has them beside it.
INSTALLED = (_PACKAGE / "profiles").is_dir()
PROJECT = _PACKAGE.parent
FILES = _PACKAGE if INSTALLED else PROJECT
PROFILES = FILES / "profiles"
MANIFESTS = FILES / "manifests"
ACCEPTANCE = FILES / "acceptance"  # the test of a user's own files, and its pytest.ini


def cache_dir() -> Path:
    """The user's cache folder for built binaries and jars; ``ELASTIC_LAB_CACHE`` overrides it."""
    if not (chosen := os.environ.get("ELASTIC_LAB_CACHE")):
        import platformdirs  # of an extra: a question to the model keeps nothing

        chosen = platformdirs.user_cache_dir("elastic-lab")
    path = Path(chosen)
    path.mkdir(parents=True, exist_ok=True)
    return path


def state_dir() -> Path:
    """Where running clusters are registered, so that a later session can find and clear leftovers."""
    path = cache_dir() / "run"
    path.mkdir(parents=True, exist_ok=True)
    return path
