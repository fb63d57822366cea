"""The register of claims as data, read from docs/claims/*.yaml: each row is held against what it names.

``held``, ``refuted`` and ``partly`` need a number, and tests or a command that judge it. Anything else is ``not yet judged``.
``held`` needs a session, or a test that has its numbers from no record: what a command prints is not kept.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path

from lab import paths, yamlfile
from lab.errors import InputError

REFUTED, PARTLY, OPEN, HELD = VERDICTS = ("refuted", "partly", "not yet judged", "held")
TEST, MEASURED, NOT_BUILT, NON_GOAL = WAYS = ("test", "measured", "not built yet", "non-goal")
MOST_WORDS = 25  # of a quotation
TABLE = "docs/evidence/verdicts.csv"
_FIGURE = re.compile(r"\d[\d,.]*\d|\d")
_WORD = re.compile(r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)
_PATH = re.compile(r"\b(?:docs|manifests|profiles|tests)/[\w./-]+")
_SCALES = {"scenario": "medium", "backlog": "real", "real_time": "real"}  # of a session with that marker, where it is not quick
_FOLDERS = {"experiments": "spike", "scenarios": "scenario", "defects": "defects"}
_MARK = re.compile(r"\bpytest\.mark\.(spike|extended|stretch|scenario|defects|scale|acceptance|backlog|real_time|kind)\b")
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Claim:
    """A sentence of a text that says what happens, quoted, and what the project makes of it.

    ``number`` says what was found. ``sessions`` are those of docs/evidence that judged one of its tests. ``tests`` are the node
    ids that judge it; ``command`` is for a claim that another command measures. ``repeat`` is how many runs a claim takes.
    A session is to have held all verdicts of a held claim's tests, or those that ``objectives`` are a part of.
    ``missing`` says what a full answer lacks. ``non_goal`` says why the lab will not judge it.
    """

    id: str
    section: str
    quote: str
    verdict: str
    number: str = ""
    sessions: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    command: str = ""
    repeat: int = 0
    missing: str = ""
    non_goal: str = ""

    @property
    def way(self) -> str:
        """What the project does with the claim: one of ``WAYS``."""
        if self.non_goal:
            return NON_GOAL
        if self.tests:
            return TEST
        return MEASURED if self.command else NOT_BUILT

    @property
    def rerun(self) -> str:
        """The command that judges the claim again; "" where there is none. Tests of one marker are one run of pytest."""
        if self.command:
            return self.command
        runs: dict[str, list[str]] = {}
        for node in self.tests:
            runs.setdefault(_marker(node), []).append(node)
        repeated = f"--repeat {self.repeat} --results=evidence --resume" if self.repeat else ""
        return " && ".join(" ".join(filter(None, ("pytest", marker, *nodes, repeated))) for marker, nodes in runs.items())


@dataclass(frozen=True)
class Text:
    """A source of claims: its ``prefix`` begins each id, and ``file`` is where its rows stand."""

    file: Path
    name: str
    title: str
    prefix: str
    claims: tuple[Claim, ...]


def texts(folder: Path) -> list[Text]:
    """The texts in ``folder``, by file name. Raises :class:`InputError` for the first row that can't be used."""
    found = [_text(file) for file in sorted(folder.glob("*.yaml"))]
    ids: dict[str, Path] = {}
    for text in found:
        for claim in text.claims:
            if claim.id in ids:
                raise InputError(text.file, f"{claim.id}.id", claim.id, f"an id that {ids[claim.id].name} does not have")
            ids[claim.id] = text.file
    return found


def check(text: Text, project: Path) -> None:
    """Raise :class:`InputError` for the first test, file or session that ``project`` lacks, or that did not hold its claim."""
    judged = _judged(project / TABLE)
    for claim in text.claims:
        for node in claim.tests:
            module, _, function = node.partition("::")
            if function not in _tests(project / module):
                raise InputError(text.file, f"{claim.id}.tests", node, "FILE::FUNCTION of a test in the project")
        for named in _PATH.findall(claim.command):
            if not (project / named).exists():
                raise InputError(text.file, f"{claim.id}.command", named, "a file of the project")
        for session in claim.sessions:
            verdicts = [one for test in claim.tests for one in judged.get((session, test), ())]
            if not verdicts:
                allowed = f"a session of {TABLE} that judged one of its tests"
                raise InputError(text.file, f"{claim.id}.sessions", session, allowed)
            if claim.verdict == HELD:
                _held(text, claim, session, verdicts)
        shown = claim.sessions or claim.verdict == OPEN or (claim.verdict != HELD and (claim.command or claim.missing))
        if not shown and all(_judges_records(node, project) for node in claim.tests):
            why = "its tests judge records" if claim.tests else "what a command prints is not kept"
            allowed = f"a session, as {why}" + ("" if claim.verdict == HELD else "; or what is missing")
            raise InputError(text.file, f"{claim.id}.sessions", "none", allowed)


def _held(text: Text, claim: Claim, session: str, verdicts: Sequence[tuple[str, str]]) -> None:
    """Raise :class:`InputError` unless each of the verdicts that ``claim`` names is held; where it names none, all."""
    field, allowed = "sessions", f"a session of {TABLE} that held all that its tests judge; else objectives that it held"
    if claim.objectives:
        field, allowed = "objectives", f"a part of QUANTITY: CLAIM of verdicts that {session} held"
    for part in claim.objectives or ("",):
        if {verdict for said, verdict in verdicts if part in said} != {HELD}:
            raise InputError(text.file, f"{claim.id}.{field}", part or session, allowed)


def figures(words: str) -> list[str]:
    """The numbers in ``words`` as they are written there: figures, and where there are none, the words from one to ten."""
    return _FIGURE.findall(words) or [found.lower() for found in _WORD.findall(words)]


def by_verdict(claims: Sequence[Claim]) -> dict[str, int]:
    """How many of ``claims`` have each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def by_way(claims: Sequence[Claim]) -> dict[str, int]:
    """How many of ``claims`` that are not yet judged are treated in each way."""
    return {way: sum(claim.verdict == OPEN and claim.way == way for claim in claims) for way in WAYS}


def _text(file: Path) -> Text:
    given = yamlfile.Fields(yamlfile.read(file), file)
    given.known("name", "title", "prefix", "claims")
    name, title, prefix = (given.value(field, str) for field in ("name", "title", "prefix"))
    claims = tuple(_claim(row, number, prefix, file) for number, row in enumerate(given.value("claims", list), 1))
    return Text(file, name, title, prefix, claims)


def _claim(row: object, number: int, prefix: str, file: Path) -> Claim:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise InputError(file, f"claims, row {number}", row, "a mapping with an id")
    place = row["id"]
    given = yamlfile.Fields(row, file, f"{place}.")
    given.known(*(field.name for field in fields(Claim)))
    for field in fields(Claim):
        if field.default is MISSING or field.name in row:
            kind = {"tests": list, "sessions": list, "objectives": list, "repeat": int}.get(field.name, str)
            given.value(field.name, kind)
    lists = {name: tuple(map(str, row.get(name, ()))) for name in ("tests", "sessions", "objectives")}
    claim = Claim(**{**row, **lists})
    for name, allowed in _faults(claim, prefix):
        raise InputError(file, f"{place}.{name}", getattr(claim, name), allowed)
    return claim


def _faults(claim: Claim, prefix: str) -> Iterator[tuple[str, str]]:
    """(field, what is allowed) of each field that does not go with the others."""
    start, _, rest = claim.id.partition("-")
    if start != prefix or not _ID.fullmatch(rest):
        yield "id", f"{prefix}- and words in lower case with - between them"
    if not 1 <= len(claim.quote.split()) <= MOST_WORDS:
        yield "quote", f"1 to {MOST_WORDS} words"
    if claim.verdict not in VERDICTS:
        yield "verdict", f"one of {', '.join(VERDICTS)}"
    if claim.objectives and not (claim.verdict == HELD and claim.sessions):
        yield "objectives", "none, as no session is to have held them"
    if claim.verdict == OPEN:
        for name in ("number", "sessions"):
            if getattr(claim, name):
                yield name, f"none, as the claim is {OPEN}"
        if bool(claim.missing) == bool(claim.non_goal):
            yield "missing", f"what is missing, or a non_goal, and not both, as the claim is {OPEN}"
        return
    if not figures(claim.number):
        yield "number", f"a sentence with a number, as the claim is {claim.verdict}"
    if not claim.rerun:
        yield "command", f"a command, or tests, as the claim is {claim.verdict}"
    if claim.non_goal:
        yield "non_goal", f"none, as the claim is {claim.verdict}"


@cache
def _tests(file: Path) -> Mapping[str, frozenset[str]]:
    """The fixtures of each test function in a module, by its name; none where there is no such file."""
    if not file.is_file():
        return {}
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = [one for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    return {one.name: frozenset(given.arg for given in one.args.args) for one in found}


def _judges_records(node: str, project: Path) -> bool:
    """Whether a test has its numbers from records: then a session has them."""
    module, _, function = node.partition("::")
    return "evidence" in _tests(project / module)[function]


@cache
def scales(table: Path) -> Mapping[str, str]:
    """The scale of each session of the table of verdicts."""
    with table.open(encoding="utf-8", newline="") as rows:
        return {row["session"]: row["scale"] for row in csv.DictReader(rows)}


@cache
def _judged(table: Path) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
    """(``quantity: claim``, verdict) of each row of the table, by its session and its test without parameters."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    with table.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            said = f"{row['quantity']}: {row['claim']}"
            found.setdefault((row["session"], row["test"].partition("[")[0]), []).append((said, row["verdict"]))
    return found


@cache
def _marker(node: str) -> str:
    """The options that a test needs: its marker, else its module's or its folder's, and the scale at which that one is run."""
    file, _, test = node.partition("::")
    path = paths.PROJECT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    decorators = text.partition(f"\ndef {test.partition('[')[0]}(")[0].rpartition("\n\n")[2]
    own = _FOLDERS.get(file.split("/")[1], "")
    found = _MARK.findall(decorators) or _MARK.findall(text)
    marker = own if own == "scenario" else next(iter(found), own)  # a scenario's further trials have a second marker
    return " ".join(filter(None, (f"-m {marker}" if marker else "", f"--scale={_SCALES[marker]}" if marker in _SCALES else "")))
