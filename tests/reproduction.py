"""``python -m tests.reproduction FOLDER``: whether findings of the audit, drawn at random, hold on the real control plane.

Each is shown on its own object, one after the other, on a binary cluster of the command's own. What can't
be shown there, as summer time or another version of KEDA, is not tried, and counts as not reproduced.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from lab.audit import findings
from lab.audit.objects import Fleet
from lab.audit.scaledobject import Facts, Scaled
from lab.commands.text import table
from lab.errors import BREACHED, HELD, InputError, one_line
from lab.flags import SEED, Flags, whole
from tests.defects import bench, demonstrations, object_demonstrations
from tests.defects.bench import Case, Rig

SUFFIXES = (".yaml", ".yml", ".json")
NEEDED = 95  # percent
WORDS = REPRODUCED, OTHERWISE, BROKE, UNTRIED = ("reproduced", "otherwise", "broke", "not tried")


@dataclass(frozen=True)
class Row:
    """What came of a finding: ``measured`` is held against what it ``said``; None where there was no answer."""

    rule: str
    file: str
    object: str
    field: str
    sentence: str
    word: str
    measured: float | None
    said: float | None
    seconds: float
    fault: str


def draw(texts: Mapping[str, str], partitions: int, seed: int, count: int) -> list[Case]:
    """So many findings of the audit of ``texts`` at random, each at most once; all where there are fewer.

    Each text is of a cluster of its own: of unlike sources two may have the same names.
    """
    facts, found = Facts(partitions={"": partitions}), []
    for name, text in texts.items():
        items = findings.read(name, text)[0]
        fleet, known = Fleet(items), {(str(item.where), item.title): item for item in reversed(items)}
        every = findings.audit({name: text}, facts).findings
        found += [Case(one, Scaled(known[one.file, one.object], fleet, facts), partitions) for one in every]
    return Random(seed).sample(found, min(count, len(found)))


def show(rig: Rig, case: Case) -> Row:
    """Try the finding of ``case``."""
    one, begun = case.finding, time.monotonic()
    measured: float | None = None
    said: float | None = None
    word, fault = UNTRIED, ""
    try:
        name = one.rule.replace("-", "_")
        demonstration = getattr(demonstrations, name, None) or getattr(object_demonstrations, name, None)
        if demonstration and (shown := demonstration(rig, case)):
            measured, said = shown
            word = REPRODUCED if math.isclose(measured, said) else OTHERWISE
    except Exception as error:  # what holds of the object is not known then, and the next one may be shown
        word, fault = BROKE, one_line(f"{type(error).__name__}: {error}")
    finally:
        rig.clear()
    seconds = time.monotonic() - begun
    return Row(one.rule, Path(one.file).name, one.object, one.field, one.sentence, word, measured, said, seconds, fault)


def tally(rows: Iterable[Row]) -> list[list[str]]:
    """The rows of the table: by rule, the commonest first, and in all."""
    every = list(rows)
    counts = Counter((row.rule, row.word) for row in every)
    rules = [rule for rule, _ in Counter(row.rule for row in every).most_common()]
    made = [["rule", "drawn", *WORDS]]
    for rule in rules:
        words = [counts[rule, word] for word in WORDS]
        made.append([rule, str(sum(words)), *map(str, words)])
    made.append(["all", str(len(every)), *(str(sum(row.word == word for row in every)) for word in WORDS)])
    return made


def main(arguments: list[str] | None = None) -> int:
    """Draw, show and print. Returns the exit code: 1 where fewer than NEEDED percent are reproduced."""
    parser = Flags("python -m tests.reproduction", "findings of the audit on the real control plane", environment=False)
    parser.add_argument("files", nargs="+", type=Path, help="files of ScaledObjects, or folders of them")
    parser.flag("partitions", whole(1, 1000), 12, "of each topic")
    parser.flag("count", whole(1, 100_000), 100, "findings to draw")
    parser.flag("seed", SEED, 48, "of the draw")
    parser.flag("rule", str, "", "show those of this rule alone, of those that are drawn")
    parser.flag("output", Path, None, "write every row into this file, as JSON", optional=True)
    options = parser.parse_args(arguments)
    texts = dict(_texts(options.files))
    drawn = draw(texts, options.partitions, options.seed, options.count)
    if not drawn:
        raise InputError("command line", "FILE", str(options.files[0]), "files in which the audit finds something")
    rows = []
    with bench.started() as rig:
        for number, case in enumerate((one for one in drawn if options.rule in ("", one.finding.rule)), 1):
            row = show(rig, case)
            rows.append(row)
            answer = row.fault or ("" if row.measured is None else f"{row.measured:g} of {row.said:g}")
            print(f"{number} {row.seconds:.0f} s {row.word}: {row.rule} {row.file}: {answer}", flush=True)
            if options.output:
                options.output.write_text(json.dumps([asdict(one) for one in rows], indent=1))
    reproduced = sum(row.word == REPRODUCED for row in rows)
    print(table(tally(rows), numbers=range(1, 6)))
    print(f"{reproduced} of {len(rows)} findings are reproduced; {NEEDED} % are needed (seed {options.seed})")
    return HELD if 100 * reproduced >= NEEDED * len(rows) else BREACHED


def _texts(given: Iterable[Path]) -> Iterable[tuple[str, str]]:
    """The files among ``given``, and in its folders, with their texts."""
    for path in given:
        files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES) if path.is_dir() else [path]
        yield from ((str(file), file.read_text(encoding="utf-8")) for file in files)


if __name__ == "__main__":
    sys.exit(main())
