"""Where the lab keeps what it builds once, and where its committed files are."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

PROJECT = Path(__file__).resolve().parent.parent
PROFILES = PROJECT / "profiles"
MANIFESTS = PROJECT / "manifests"


def cache_dir() -> Path:
    """The user's cache folder for built binaries and jars; ``ELASTIC_LAB_CACHE`` overrides it."""
    chosen = os.environ.get("ELASTIC_LAB_CACHE")
    path = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("elastic-lab"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def state_dir() -> Path:
    """Where running clusters are registered, so that a later session can find and clear leftovers."""
    path = cache_dir() / "run"
    path.mkdir(parents=True, exist_ok=True)
    return path
