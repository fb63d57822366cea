"""How far a search goes: a quarter of the cases by default, all with ``--hypothesis-profile=thorough`` (every night)."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100  # Hypothesis' own number of examples
DEFAULT = 25


def examples(thorough: int) -> int:
    """The cases of a search that draws ``thorough`` of them under the profile of that name; at least one."""
    return max(1, thorough * settings().max_examples // THOROUGH)
