"""``python -m tests.mutation [MODULE…]``: which mutants of the checker no test kills.

Cosmic Ray changes one operator, number, condition or decorator of a module at a time, in a copy of the checkout, and the
module's own tests are to fail. Printed are each module's score, which is the share of mutants that are killed, and every
survivor: its line before and after. The exit code is 1 where a score is below LEAST. ``--part=2/7`` tries a seventh of the
mutants, so that seven runs try all.

Left out is what no test can tell: annotations, ``strict=`` and ``frozen=``, which only assert, operators that do the SAME, and
the lines in EXPLAINED.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab import paths
from lab.errors import BREACHED, HELD, LabFault
from lab.flags import Flags, Kind, whole

LEAST = 0.95
LONGEST_S = 600.0  # of a module's tests without a mutant
MORE_S, TIMES = 10.0, 5  # a mutant's tests may take so many times as long, and so much more; it may make a loop endless
JUDGE = {  # by module, the tests in tests/unit/judge
    "aggregate": ("statistics", "runs", "quantity"),
    "bounds": ("gates",),
    "claim": ("quantity", "runs", "pairs"),
    "expectation": ("expectation",),
    "gates": ("gates",),
    "measure": ("quantity", "runs", "origin"),
    "origin": ("origin",),
    "pairs": ("pairs",),
    "quantity": ("quantity", "runs", "origin"),
    "samples": ("statistics",),
}
MEASURES = ("autoscaler", "kills", "validity", "fault_tally")
RECONCILE = ("tests/unit/record/test_reconcile.py", "tests/unit/record/test_fold.py")
ZERO_LOSS = ("tests/unit/scenarios/zero_loss/test_measures.py",)
TESTS: Mapping[str, Sequence[str]] = {  # by module, whose tests start no service
    **{f"lab/judge/{name}.py": [f"tests/unit/judge/test_{one}.py" for one in tests] for name, tests in JUDGE.items()},
    **{f"lab/measure/{name}.py": [f"tests/unit/measure/test_{name}.py"] for name in MEASURES},
    "lab/measure/commits.py": [f"tests/unit/measure/test_{name}.py" for name in ("kills", "faults")],
    "lab/measure/faults.py": [f"tests/unit/measure/test_{name}.py" for name in ("faults", "fenced")],
    "lab/measure/delivery.py": [f"tests/unit/measure/test_{name}.py" for name in ("delivery", "progress")],
    **{f"tests/scenarios/zero_loss/measure/{name}.py": ZERO_LOSS for name in ("deadletters", "failover")},
    **{f"lab/record/ledger/{name}.py": RECONCILE for name in ("fold", "reconcile")},
}
# By module, the beginning of a line whose mutants change no answer, and why.
EXPLAINED: Mapping[str, Mapping[str, str]] = {
    "lab/judge/measure.py": {"@overload": "it is for type checkers", "@functools.wraps": "it keeps a name for people"},
    "lab/record/ledger/fold.py": {"BATCH =": "how many events are read at a time", "SEQS =": "how large a bitmap is"},
    "lab/record/ledger/reconcile.py": {
        **dict.fromkeys(("MOST_TASKS =", "few = names.repartition("), "how many tasks share the work"),
        "NAMED =": "how many ranges are named",
    },
}
SAID, KILLERS = "pytest.txt", "killers.txt"  # what the last run of the tests printed; those that failed so far, in order
ASSERTS = ("frozen", "strict")
# On truth values * does what & does, and + what | does. Equal constants are mostly one object.
SAME = ("BinaryOperator_BitAnd_Mul", "BinaryOperator_BitOr_Add", "ComparisonOperator_Eq_Is", "ComparisonOperator_NotEq_IsNot")
PYTEST = ("-x", "-q", "-o", "required_plugins=", "-p", "no:cacheprovider", "-m", "not services")
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take longer to import than most modules take to test
_BRIEF = ("--assert=plain", "--tb=line")  # the mutant says why a test fails
_FORKED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what was imported before the fork
# Each mutant's tests run in a fork of a process that has these, none of which imports a module of TESTS.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["hypothesis", "pandas", "pyarrow.parquet", "pydantic", "pyspark.sql", "pytest", "lab.record.store"]
)


@dataclass(frozen=True)
class Score:
    """Of the mutants of ``module``, how many were ``killed``, and each survivor as a line before and after."""

    module: str
    killed: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float:
        """The part of the mutants that was killed; 1 without any."""
        tried = self.killed + len(self.survivors)
        return self.killed / tried if tried else 1.0

    def __str__(self) -> str:
        told = f"{self.share:6.1%}  {self.module}: {self.killed} killed, {len(self.survivors)} survived"
        return "\n".join([told, *self.survivors])


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, or 1 where the score of a module is below LEAST."""
    parser = Flags("python -m tests.mutation", "which mutants of the checker no test kills", environment=False)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(TESTS)}; none: all of them")
    parser.flag("jobs", whole(1, 64), 1, "modules at a time")
    parser.flag("part", Kind(part, "K/N with K from 1 to N"), (1, 1), "which of N equal parts of the mutants, as 2/7 (all)")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.modules) - TESTS.keys()):
        parser.error(f"argument MODULE: {unknown[0]} is not allowed; allowed: {', '.join(TESTS)}")
    worst = 1.0
    with ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        for score in pool.map(partial(mutate, which=options.part), options.modules or list(TESTS)):
            print(score, flush=True)
            worst = min(worst, score.share)
    return HELD if worst >= LEAST else BREACHED


def part(text: str) -> tuple[int, int]:
    """The numbers K and N of "K/N". Raises :class:`ValueError` for what is none."""
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number, of


def mutate(module: str, which: tuple[int, int] = (1, 1)) -> Score:
    """The score of ``module`` by the K-th of N parts of its mutants, ``which`` is (K, N).

    Raises :class:`LabFault` where its tests fail without a mutant.
    """
    survivors, killed = list[str](), 0
    with tempfile.TemporaryDirectory(prefix="elastic-lab-mutants-") as scratch:
        copy = Path(scratch, "checkout")
        shutil.copytree(paths.PROJECT, copy, ignore=shutil.ignore_patterns(".*", "results*", "__pycache__", "judged"))
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        source = Path(module).read_text()
        begun = time.monotonic()
        if not passes(TESTS[module], LONGEST_S, bytecode=True):
            raise LabFault(f"{module}: its tests fail without a mutant: {Path(SAID).read_text()[-2000:]}")
        most_s = MORE_S + TIMES * (time.monotonic() - begun)
        for compiled in Path(module).parent.glob(f"__pycache__/{Path(module).stem}.*"):
            compiled.unlink()  # a mutant as long as the source, in the same second, would be taken for it
        for row, mutant in itertools.islice(mutants(module, source), which[0] - 1, None, which[1]):
            Path(module).write_text(mutant)
            if passes(TESTS[module], most_s):
                survivors.append(f"    {module}:{row}: {changed(source, mutant)}")
            else:
                killed += 1
    return Score(module, killed, tuple(survivors))


def passes(tests: Sequence[str], most_s: float, *, bytecode: bool = False) -> bool:
    """Whether ``tests`` pass within ``most_s`` in this process's folder, where the ``bytecode`` of imports is kept or not."""
    run = _FORKS.Process(target=_test, args=(tests, bytecode))
    run.start()
    run.join(most_s)
    if run.is_alive():
        run.kill()
        run.join()
    return run.exitcode == 0


def _test(tests: Sequence[str], bytecode: bool) -> None:
    """Run ``tests`` and exit with pytest's code."""
    import pytest

    sys.dont_write_bytecode = not bytecode
    os.environ.update(ALONE)
    said = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    early = {module.removesuffix(".py").replace("/", ".") for module in TESTS} & sys.modules.keys()
    assert not early, early
    os._exit(int(pytest.main([*PYTEST, *_BRIEF, *_FORKED, *tests], plugins=[KillersFirst()])))


class KillersFirst:
    """A plugin of pytest. A test that failed for the last mutant mostly fails for the next one too, so it runs first."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort the tests."""
        with suppress(FileNotFoundError):
            rank = {test: -place for place, test in enumerate(Path(KILLERS).read_text().splitlines(), 1)}
            items.sort(key=lambda item: rank.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember a test that fails."""
        if report.failed:
            with Path(KILLERS).open("a") as file:
                print(report.nodeid, file=file)


def mutants(module: str, source: str) -> Iterator[tuple[int, str]]:
    """The mutants of the ``source`` of ``module`` in order, each with the line that is changed."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    spared, nodes, found = list(left_out(module, source)), list(ast_nodes(get_ast(source))), []
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments() or name.endswith(SAME):  # the first needs to be told what to change
            continue
        places = [start for node in nodes for start, _ in kind().mutation_positions(node)]
        found += [(start, name, nth) for nth, start in enumerate(places)]
    for start, name, nth in sorted(found):
        if not any(begin <= start < end for begin, end in spared):
            mutant = mutate_code(source, get_operator(name)(), nth)
            with suppress(SyntaxError):  # what is no Python is no mutant
                compile(mutant, module, "exec", dont_inherit=True)
                yield start[0], mutant


Place = tuple[int, int]  # line from 1, column from 0


def left_out(module: str, source: str) -> Iterator[tuple[Place, Place]]:
    """Where ``source`` has nothing that a test can tell: from each place to the next, exclusive."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in ASSERTS:
            parts.append(node.value)
        for part in filter(None, parts):
            assert isinstance(part, ast.expr)
            yield (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or 0)
    for row, line in enumerate(source.splitlines(), 1):
        if any(line.strip().startswith(beginning) for beginning in EXPLAINED.get(module, {})):
            yield (row, 0), (row, len(line) + 1)


def changed(before: str, after: str) -> str:
    """The lines of ``before`` that are others in ``after``, and those, in one line."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[3:]
    return "  ->  ".join(line[1:].strip() for line in lines)


if __name__ == "__main__":
    sys.exit(main())
