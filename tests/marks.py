"""The marks in the table of verdicts: ``python -m tests.marks`` says of each claim what it is worth at real time, by today.

A session marks its claims by what each was made of (:func:`lab.measure.outcome.remark`). The table has a quantity's name alone.
One that is no measure's own is not shown to be faithful. The session's word on it stays, as it may be of a comparison, unless
it names another scale than the row's.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from lab import paths
from lab.archive import table
from lab.archive.lock import FOLDER
from lab.archive.table import Row
from lab.inputs.scale import Scale, declared
from lab.judge.measure import Measure, Number
from lab.judge.origin import OF_UNIT, UNKNOWN, UNSCALED, Origin
from lab.measure.outcome import committed, remark


def mark(row: Row) -> str:
    """What the claim of ``row`` is worth at real time: by today's outcome of scales, and by what real time refuted."""
    if not row.value:
        return ""
    module, _, test = row.test.partition("::")
    origin, refuted = origins().get(row.quantity), _refuted(paths.PROJECT / module).get((test.partition("[")[0], row.claim), "")
    found = remark(row.kind, origin or UNKNOWN, _scales()[row.scale], committed(), refuted)
    own = row.real_time if row.real_time.startswith(row.scale) else ""
    return own if found and "validated" in own and not (origin or refuted) else found


@cache
def origins() -> Mapping[str, Origin]:
    """Of each quantity that scales are compared by, by its name. One of several measures is faithful where all of them are."""
    kinds = [one for kind in Measure.__subclasses__() for one in kind.declared().values()]
    own = {one.origin.measures: one.origin for one in kinds if isinstance(one, Number)}
    found: dict[str, Origin] = {}
    for row in committed().rows:
        one = own.get((row.measure,), Origin((row.measure,), OF_UNIT.get(row.unit, UNSCALED)))
        found[row.name] = found[row.name].sum(one) if row.name in found else one
    return found


@cache
def _scales() -> Mapping[str, Scale]:
    return {one.name: one for one in declared()}


@cache
def _refuted(module: Path) -> Mapping[tuple[str, str], str]:
    """What real time showed of claims in a module, by test and sentence: the argument ``refuted`` of a claim."""
    if not module.is_file():
        return {}
    body = ast.parse(module.read_text(encoding="utf-8")).body
    constants = {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
    found = {}
    for test in (node for node in body if isinstance(node, ast.FunctionDef)):
        for call in (node for node in ast.walk(test) if isinstance(node, ast.Call)):
            given = {one.arg: one.value for one in call.keywords}
            if "refuted" in given:
                sentence = ast.literal_eval(constants.get(ast.unparse(call.args[1]), call.args[1]))
                found[test.name, sentence] = ast.literal_eval(given["refuted"])
    return found


if __name__ == "__main__":
    folder = paths.PROJECT / FOLDER
    table.write([replace(row, real_time=mark(row)) for row in table.read(folder)], folder)
