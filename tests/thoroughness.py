"""How far a search goes: by default it draws a quarter of the cases, the same ones every time.

With ``--hypothesis-profile=thorough`` (every night) it draws all of them, and others every time.
"""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100  # Hypothesis' own number of examples
DEFAULT = 25


def examples(thorough: int) -> int:
    """The cases of a search that draws ``thorough`` of them under the profile of that name; at least one."""
    return max(1, thorough * settings().max_examples // THOROUGH)


def fuzz_cases() -> int:
    """The texts that a fuzz test draws for one parser: 500, or 20,000 under that profile."""
    return 500 if settings().max_examples <= DEFAULT else 20_000
