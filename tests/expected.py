"""``python -m tests.expected > tests/expected.yaml``: what is known of the claims that the archive's sessions saw breached."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml

from lab import paths
from lab.archive import table
from lab.archive.lock import FOLDER
from lab.archive.table import Row
from lab.judge.claim import BREACHED, HELD
from tests.suite import cases

FILE = Path(__file__).with_suffix(".yaml")
HEAD = "# Claims that were breached in a session of the archive (docs/nightly.md); python -m tests.expected writes this file.\n"
SUITES = {  # what they run on, their scale, and where their tests are
    "extended": ("binary", "quick", "tests/experiments/"),
    "kind": ("kind", "quick", "tests/"),
    "scenarios": ("binary", "medium", "tests/scenarios/"),
}


def text(rows: Sequence[Row], tests: Sequence[str]) -> str:
    """The file as the ``rows`` of the archive's table have it, of claims that the code of ``tests`` makes."""
    suites: dict[str, dict[str, dict[str, object]]] = {suite: {} for suite in SUITES}
    for suite, (runtime, scale, folder) in SUITES.items():
        judged: dict[tuple[str, str], list[Row]] = defaultdict(list)
        sessions = {row.session for row in rows if row.scale == scale}  # where a test with a scale of its own ran too
        for row in rows:
            is_claim = row.kind == "claim" and row.verdict in (HELD, BREACHED) and row.value
            if is_claim and row.runtime == runtime and row.session in sessions and row.test.startswith(folder):
                judged[row.test, row.claim].append(row)
        for (test, claim), found in sorted(judged.items()):
            if test in tests and claims(test, claim) and any(row.verdict == BREACHED for row in found):
                suites[suite].setdefault(test, {})[claim] = known(found)
    return HEAD + yaml.safe_dump(suites, sort_keys=False, width=120, default_flow_style=None)


def known(rows: Sequence[Row]) -> dict[str, object]:
    """The entry of a claim that ``rows`` are about: their runs together, and the number of the session with most of them."""
    runs = [(int(row.held), int(row.n)) if row.held else (int(row.verdict == HELD), 1) for row in rows]
    _, row = max(zip(runs, rows, strict=True), key=lambda found: (found[0][1], found[1].session))
    counted = {"held": sum(held for held, _ in runs), "of": sum(of for _, of in runs)}
    seen = f"{float(row.value):.4g} {row.unit}".strip()
    return counted | {"seen": seen, "sessions": sorted({row.session for row in rows})}


def claims(test: str, sentence: str) -> bool:
    """Whether the module of ``test`` has the ``sentence``, or one with a placeholder for some words of it."""
    return any(re.fullmatch(pattern, sentence) for pattern in _texts(paths.PROJECT / test.partition("::")[0]))


@cache
def _texts(module: Path) -> frozenset[str]:
    """Every text in a module, as a pattern."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
        if any(isinstance(one, str) for one in texts):
            found.add("".join(".+" if one is None else re.escape(str(one)) for one in texts))
    return frozenset(found)


def main() -> None:
    """Print the file."""
    sys.stdout.write(text(table.read(paths.PROJECT / FOLDER), collected()))


def collected() -> list[str]:
    """The tests of all suites, by pytest's ids."""
    folders = ("tests/experiments", "tests/scenarios", "tests/kind")
    return cases("-m", "spike or extended or scenario or kind", *folders)


if __name__ == "__main__":
    main()
