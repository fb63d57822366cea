"""``elastic-lab review``: what a change in git does to ScaledObjects, as a comment in Markdown for whoever reviews it.

Each ScaledObject that is not as at the base commit is audited, and simulated before and after. Only the comment is written.
"""

from __future__ import annotations

import difflib
import shlex
import subprocess
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from lab import project, yamltext
from lab.audit import findings
from lab.audit.findings import Finding
from lab.audit.objects import SCALED, Item
from lab.audit.scaledobject import Facts
from lab.commands import audit, ending, simulate, situation
from lab.commands.situation import Question, writable
from lab.commands.text import WIDTH, code, curve, escaped, fenced, number
from lab.errors import BAD_INPUT, BREACHED, HELD, InputError, shortened
from lab.flags import NAME, Flags, Kind
from lab.foresee.curve import Curve
from lab.judge.claim import NO_DATA, Verdict
from lab.judge.quantity import Quantity
from lab.number_format import beside, many
from lab.report.verdict_text import MARKS

MARKER = "<!-- elastic-lab review -->"  # by which the next review finds its comment
SUFFIXES = (".yaml", ".yml", ".json")
MOST = 60_000  # characters: GitHub takes 65,536
MOST_LINES = 200  # of a diff
SIDES = ("before", "after")
NEW, CHANGED, DELETED = "new", "changed", "deleted"
_GIT_S = 60.0


Place = tuple[str, str]  # the file and the title of an object
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Side:
    """The changed files on one side of the change, and what is in them: objects by file and title, findings by rule, file,
    object and field.

    ``unread`` has a line for what can't be read.
    """

    texts: Mapping[str, str]
    objects: Mapping[Place, Item]
    findings: Mapping[Key, Finding]
    unread: Sequence[str]


@dataclass(frozen=True)
class Answer:
    """A ScaledObject simulated."""

    question: Question
    curve: Curve
    figures: Mapping[str, Quantity]
    judged: Sequence[Verdict]


@dataclass(frozen=True)
class Refusal:
    """The ``line`` that says why one was not; ``own``: for the object itself, and not for a flag or for another file."""

    line: str
    own: bool


@dataclass(frozen=True)
class Change:
    """A ScaledObject that is not the same on both sides; what was ``simulated`` of each, None for nothing."""

    place: Place
    sides: Sequence[Side]
    simulated: Sequence[Answer | Refusal | None]

    @property
    def what(self) -> str:
        """What happened to it."""
        before, after = (self.place in side.objects for side in self.sides)
        return CHANGED if before and after else NEW if after else DELETED

    @property
    def file(self) -> str:
        """The file that has it, or had it."""
        return self.place[0]

    @property
    def title(self) -> str:
        """Its kind and name."""
        return self.place[1]

    @property
    def verdicts(self) -> list[str]:
        """The verdicts on it after the change; what is not simulated has no data."""
        now = self.simulated[1]
        return [one.verdict for one in now.judged] if isinstance(now, Answer) else [NO_DATA] if now else []

    @property
    def misread(self) -> bool:
        """Whether a flag or another file is why it was not simulated."""
        return any(isinstance(one, Refusal) and not one.own for one in self.simulated)

    def findings(self, side: Side) -> dict[Key, Finding]:
        """The findings on it on one ``side``."""
        return {key: one for key, one in side.findings.items() if (one.file, one.object) == self.place}


@dataclass(frozen=True)
class Repository:
    """The repository of this folder, in ``root``, and the commit that is compared with."""

    root: Path
    base: str

    def changed(self, files: Sequence[str]) -> list[str]:
        """The files, of those given or of all, that are not as at the base; a new one only once git knows of it."""
        names = _git("diff", "--name-only", "--no-renames", "-z", self.base, "--", *files).split("\0")
        return sorted(name for name in names if name.endswith(SUFFIXES))

    def beside(self, name: str) -> list[str]:
        """All files of the folder of ``name``."""
        folder = name.rpartition("/")[0]
        listed = _git("ls-files", "-z", "--full-name", "--", f":(top){folder}").split("\0")
        return [one for one in listed if one.endswith(SUFFIXES) and one.rpartition("/")[0] == folder]

    def text(self, name: str, side: str) -> str:
        """The text of the file called ``name``; "" where there is none."""
        if side == SIDES[0]:
            return _git("show", f"{self.base}:{name}", missing=True)
        file = self.root / name
        return yamltext.lenient(file.read_bytes()) if file.is_file() else ""


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "files to look at, of those that are not as at the base [default: all]"
    parser.add_argument("files", nargs="*", metavar="FILE", help=text)
    parser.flag("base", str, "HEAD", "the commit to compare with; of another branch where this one left it")
    words = Kind(shlex.split, "flags, quoted as in a shell")
    parser.flag("simulate", words, "", "flags of simulate, as '--profile evening.yaml --workload pods.yaml --start-s 60'")
    parser.flag("audit", words, "", "flags of audit, as '--partitions orders=24'")
    text = "write the comment into this file too"
    parser.flag("output", writable, None, text, "FILE in a folder that is there", optional=True)


def run(options: Namespace) -> int:
    """Review and print. Returns the exit code: 1 where audit or simulate would, 2 where something can't be read."""
    auditing = _parsed(audit, options.audit)
    traffic = "profile" in project.read(Path()).common or any(word.startswith("--profile") for word in options.simulate)
    fail_on = _parsed(simulate, _flags("x", "", options.simulate)).fail_on if traffic else "nothing"
    repository = Repository(Path(_git("rev-parse", "--show-toplevel").rstrip("\n")), _commit(options.base))
    names = repository.changed(options.files)
    before, after = sides = [_side(repository, names, side, audit.facts(auditing)) for side in SIDES]
    changes = []
    for place in sorted({*before.objects, *after.objects}):
        old, now = (side.objects.get(place) for side in sides)
        if old is None or now is None or old.content != now.content:
            answers = [_simulated(side, place, options.simulate) if traffic else None for side in sides]
            changes.append(Change(place, sides, answers))
    places = [one.place for one in changes]
    elsewhere = [
        one for key, one in after.findings.items() if (one.file, one.object) not in places and key not in before.findings
    ]
    counted = [*elsewhere, *(one for one in after.findings.values() if (one.file, one.object) in places)]
    breached = any(one.severity in audit.severe(auditing.fail_on) for one in counted)
    breached = breached or any(ending.code(one.verdicts, fail_on) for one in changes)
    misread = after.unread or any(one.misread for one in changes)
    end, mark = (BREACHED, "✘") if breached else (BAD_INPUT, "?") if misread else (HELD, "✔")
    head = f"{many(len(places), 'ScaledObject')} changed since {code(options.base)}"
    lines = [MARKER, f"### {mark} {NAME}: {head}", *(f"- ? {escaped(line)}" for line in after.unread)]
    for one in changes:
        lines += ["", *_lines(one)]
    if elsewhere:
        lines += ["", "#### Elsewhere", *(f"- new: {escaped(one.object)}: {_finding(one)}" for one in elsewhere)]
    if places and not traffic:
        lines += ["", "Not simulated: no `--profile` in `--simulate`, and none in `[tool.elastic-lab]`."]
    for file in sorted({change.file for change in changes}):
        lines += ["", *_difference(file, before.texts.get(file, ""), after.texts.get(file, ""))]
    comment = shortened("\n".join(lines), MOST)
    print(comment)
    if options.output:
        options.output.write_text(f"{comment}\n", encoding="utf-8")
    return end


def _git(*words: str, missing: bool = False) -> str:
    """What git says. Raises :class:`InputError` where it can't, or returns "" where that only means that something lacks."""
    try:
        ran = subprocess.run(["git", *words], capture_output=True, check=False, timeout=_GIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError("command line", "review", str(error), "a git that answers") from None
    if ran.returncode and not missing:
        said = (ran.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        raise InputError("command line", "review", f"git {words[0]}: {said}", "a repository of git")
    return yamltext.lenient(ran.stdout) if not ran.returncode else ""


def _commit(base: str) -> str:
    """The commit that this branch left ``base`` at, ``base`` where a shallow clone does not know, nothing before the first."""
    found = _git("merge-base", base, "HEAD", missing=True) or _git("rev-parse", "--verify", f"{base}^{{commit}}", missing=True)
    found = found or (_git("hash-object", "-t", "tree", "/dev/null") if base == "HEAD" else "")
    if found:
        return found.strip()
    raise InputError("command line", "--base", base, "a commit that is here: `git fetch` it, or check out with fetch-depth 2")


def _parsed(command: ModuleType, words: Sequence[str]) -> Namespace:
    parser = Flags(f"{NAME} {command.__name__.rpartition('.')[2]}", environment=False)
    parser.defaults = project.read(Path()).common
    command.add_flags(parser)
    return parser.parse_args([*words])


def _flags(file: object, name: str, given: Sequence[str]) -> list[str]:
    return ["--fail-on=breached", *given, f"--scaledobject={file}", f"--name={name}"]


def _side(repository: Repository, names: Sequence[str], side: str, facts: Facts) -> Side:
    texts = {name: text for name in names if SCALED.lower() in (text := repository.text(name, side)).lower()}
    read = {name: findings.read(name, text) for name, text in texts.items()}
    objects = {(name, item.title): item for name, (items, _) in read.items() for item in items if item.kind == SCALED}
    others = {one for name in texts for one in repository.beside(name)} - {*texts}
    all_texts = texts | {name: text for name in sorted(others) if (text := repository.text(name, side))}
    found = {(one.rule, one.file, one.object, one.field): one for one in findings.audit(all_texts, facts).findings}
    return Side(texts, objects, found, [line for _, lines in read.values() for line in lines])


def _simulated(side: Side, place: Place, given: Sequence[str]) -> Answer | Refusal | None:
    """The answer of simulate to the ScaledObject at ``place``, out of a file of its own; None where there is none."""
    item = side.objects.get(place)
    if item is None:
        return None
    with TemporaryDirectory() as folder:
        file = Path(folder, Path(item.where).name)
        file.write_text(side.texts[str(item.where)], encoding="utf-8")
        try:
            question = situation.read(_parsed(simulate, _flags(file, place[1].partition(" ")[2], given)))
            return Answer(question, *simulate.answer(question))
        except InputError as error:
            return Refusal(str(error).splitlines()[0].replace(f"{folder}/", ""), error.where == str(file))


def _lines(change: Change) -> Iterator[str]:
    """What is said of one ScaledObject."""
    yield f"#### {code(change.title)}, {change.what} in {code(change.file)}"
    old, now = map(change.findings, change.sides)
    yield from (f"- {'' if key in old else 'new: '}{_finding(one)}" for key, one in now.items())
    if change.what != DELETED:
        yield from (f"- gone: {_finding(one)}" for key, one in old.items() if key not in now)
        yield from () if now else ("- the audit finds nothing",)
    for side, found in zip(SIDES, change.simulated, strict=True):
        if isinstance(found, Refusal):
            yield f"- ? not simulated {side}: {escaped(found.line)}"
    yield from _figures([found if isinstance(found, Answer) else None for found in change.simulated])


def _finding(one: Finding) -> str:
    place = f"{one.file}:{one.line}" if one.line else one.file
    said = f"{escaped(one.sentence)}. Cure: {escaped(one.cure)} ({one.rule})"
    return f"**{one.severity}** {code(one.field)} in {escaped(place)}: {said}"


def _figures(answers: Sequence[Answer | None]) -> Iterator[str]:
    """The table and the curves of what was simulated on both sides, or on one."""
    if not (there := [one for one in answers if one]):
        return
    yield from ("", f"| simulated on {escaped(there[-1].question.profile_name)} | before | after |", "|---|--:|--:|")
    for name, field in simulate.ROWS.items():
        yield f"| {name} | {' | '.join(number(one.figures[field].value) if one else '' for one in answers)} |"
    for place, one in enumerate(there[-1].judged):
        cells = " | ".join(_verdict(found.judged[place]) if found else "" for found in answers)
        yield f"| {one.objective} {escaped(one.target)} | {cells} |"
    yield from ("", *fenced("text", [*_curves(answers, there)]))


def _verdict(one: Verdict) -> str:
    return f"{MARKS[one.verdict]} {'no data' if one.measured is None else beside(one.measured, one.bound)}"


def _curves(answers: Sequence[Answer | None], there: Sequence[Answer]) -> Iterator[str]:
    """Arrivals, and replicas and lag on both sides, each on one scale."""
    end = max(float(one.curve.t[-1]) for one in there)
    arrivals = there[-1].question.situation.arrivals
    most = float(arrivals.rates.max())
    yield f"{'messages/s':18}{curve(arrivals.edges[:-1], arrivals.rates, end, most)} to {number(most)}"
    for name in ("replicas", "lag"):
        values = [getattr(one.curve, name) if one else np.zeros(1) for one in answers]
        most = max(float(one.max()) for one in values)
        for side, one, own in zip(SIDES, answers, values, strict=True):
            if one:
                yield f"{name:10}{side:8}{curve(one.curve.t, own, end, most)} to {number(float(own.max()))}"
    yield f"{'':18}0 s{f'{end:,.0f} s':>{WIDTH - 3}}"


def _difference(file: str, before: str, after: str) -> Iterator[str]:
    lines = [*difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{file}", f"b/{file}", lineterm="")]
    more = [f"... and {many(len(lines) - MOST_LINES, 'line')} more"] if len(lines) > MOST_LINES else []
    yield from (f"<details><summary>diff of {escaped(file)}</summary>", "")
    yield from (*fenced("diff", lines[:MOST_LINES] + more), "", "</details>")
