"""``elastic-lab scale``: it compares runs of the same trials at several scales with real time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lab import paths
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.host.machine import median_speed, name_machines
from lab.inputs import scale as scales
from lab.judge.claim import INVALID
from lab.judge.gates import word
from lab.measure import outcome as outcomes
from lab.measure.outcome import Outcome, Runs
from lab.measure.similarity import TOLERANCE, Figure, Row, compare, figures
from lab.measure.validity import judge_validity
from lab.record import store
from lab.record.store import Record
from lab.report import drawing, scalepage

log = logging.getLogger("lab")

PAGE = "scale-measured.md"

Blocks = Sequence[Sequence[Record]]  # the sides of each block
Place = tuple[str, str]  # profile and scale


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Compare, write tables and figures, and print the tables. Returns the exit code."""
    parser = Flags(f"elastic-lab {command}", help_text, environment=False)
    parser.add_argument("folders", type=Path, nargs="+", metavar="RESULTS", help="results of pytest -m scale")
    parser.flag("reference", str, scales.REAL, "the scale that the others are held to", "a name in profiles/scales.yaml")
    text = "take invalid trials too, to look at them: such an outcome can't be published"
    parser.add_argument("--with-invalid", action="store_true", help=text)
    text = (
        "write where the project has its own, so that claims know it, in the place of what is there of the same profiles; "
        "without it into RESULTS/scale"
    )
    parser.add_argument("--publish", action="store_true", help=text)
    options = parser.parse_args(arguments)
    reference = scales.load(options.reference)
    if options.publish and (reference.time != 1 or options.with_invalid or paths.INSTALLED):
        allowed = "a reference at real time, valid trials alone, and a checkout of the lab"
        raise InputError("command line", "--publish", True, allowed)
    chosen, left_out = _sides(options.folders, with_invalid=options.with_invalid)
    outcome = analyse(chosen, left_out, reference.name)
    into = options.folders[0] / "scale"
    files = (outcomes.FILE, paths.PROJECT / "docs" / PAGE) if options.publish else (into / "similarity.yaml", into / PAGE)
    pictures = files[1].parent / "img"
    pictures.mkdir(parents=True, exist_ok=True)
    written = outcome.beside(outcomes.read(files[0])) if options.publish else outcome
    written.write(files[0])
    page = scalepage.page(outcomes.read(files[0]))  # of the numbers as they are written, which have six digits
    files[1].write_text(page)
    for profile in dict.fromkeys(one.profile for one in outcome.runs):
        _draw(profile, _of_profile(chosen, profile), pictures / scalepage.picture_name(profile))
    print(page)
    print(f"written: {files[0]}, {files[1]}, {pictures}")
    return 0


def _sides(folders: Sequence[Path], *, with_invalid: bool) -> tuple[dict[Place, list[list[Record]]], dict[Place, int]]:
    """(the sides of each block by profile and scale, how many records were left out of each as invalid).

    A block counts only with all its sides. Raises :class:`InputError` for a folder without records.
    """
    chosen: dict[Place, list[list[Record]]] = {}
    left_out: dict[Place, int] = {}
    for folder in folders:
        names = store.stored(folder)
        if not names:
            raise InputError(folder, "(folder)", "no trial.json", "the results of pytest -m scale")
        for identities in _duets(names):
            records = store.whole(folder, identities)
            if records is None:
                continue
            place = records[0].inputs.profile_name, records[0].scale.name
            invalid = sum(word(judge_validity(one)) == INVALID for one in records)
            if invalid and not with_invalid:
                left_out[place] = left_out.get(place, 0) + len(records)
                continue
            chosen.setdefault(place, []).append(sorted(records, key=_side))
    return chosen, left_out


def _side(record: Record) -> str:
    return record.inputs.side.name if record.inputs.side else ""


def _duets(names: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """The identities of trials that ran together, each once."""
    duets: dict[frozenset[str], tuple[str, ...]] = {}
    for path in names.values():
        trial = Record(path).trial
        others = [Record(path.parent / trial.duet.other).id] if trial.duet and (path.parent / trial.duet.other).exists() else []
        identities = tuple(sorted({trial.id, *others}))
        if trial.duet is None or others:
            duets[frozenset(identities)] = identities
    return list(duets.values())


def analyse(chosen: Mapping[Place, Blocks], left_out: Mapping[Place, int], reference: str) -> Outcome:
    """The outcome of these runs against the scale ``reference``, profile by profile.

    A profile without runs at the reference has no rows. Raises :class:`InputError` where no profile has any, and where the
    runs of one profile are of several policies, workloads or rates.
    """
    runs: list[Runs] = []
    rows: list[Row] = []
    for profile in dict.fromkeys(profile for profile, _ in chosen):
        own = _of_profile(chosen, profile)
        _check_alike(profile, own)
        if reference not in own:
            continue
        _warn_of_speeds(profile, own)
        runs += [_runs(profile, scale, blocks, left_out.get((profile, scale), 0)) for scale, blocks in own.items()]
        found: dict[str, list[list[list[Figure]]]] = {
            scale: [[figures(side) for side in sides] for sides in blocks] for scale, blocks in own.items()
        }
        rows += compare(profile, found, reference)
    if not runs:
        places = ", ".join(f"{profile} at {scale}" for profile, scale in sorted(chosen)) or "none that is whole and valid"
        raise InputError("command line", "--reference", reference, f"a scale with runs; there are: {places}")
    return Outcome(reference, tuple(runs), tuple(rows))


def _of_profile(chosen: Mapping[Place, Blocks], profile: str) -> dict[str, Blocks]:
    """The blocks of one profile by scale, the most compressed first."""
    order = [one.name for one in scales.declared()]
    own = {scale: chosen[name, scale] for name, scale in chosen if name == profile}
    return dict(sorted(own.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _check_alike(profile: str, found: Mapping[str, Blocks]) -> None:
    """Raise :class:`InputError` unless all runs are of one policy, workload and rate: another difference than the scale's."""
    records = [side for blocks in found.values() for sides in blocks for side in sides]
    alike: dict[str, set[str]] = {
        "policy": {record.inputs.policy_name for record in records},
        "workload": {str(record.inputs.workload) for record in records},
        "rate of the duet": {f"{_rate(record):g}" for record in records},
    }
    for name, values in alike.items():
        if len(values) > 1:
            raise InputError(profile, name, sorted(values), "one: the runs may differ in scale alone")


def _warn_of_speeds(profile: str, found: Mapping[str, Blocks]) -> None:
    """Say so where the machine's speed differs between scales: then an error is the machine's too (docs/decisions/70)."""
    measured = {
        scale: median_speed(side.trial.machine for sides in blocks for side in sides) for scale, blocks in found.items()
    }
    speeds = {scale: speed for scale, speed in measured.items() if speed is not None}
    if speeds and max(speeds.values()) > (1 + TOLERANCE) * min(speeds.values()):
        words = ", ".join(f"{scale} {speed / 1000:.0f}" for scale, speed in speeds.items())
        log.warning("%s: the machine's speed differed: %s thousand events/s; the errors contain that", profile, words)


def _rate(record: Record) -> float:
    return record.inputs.side.rate if record.inputs.side else 1.0


def _runs(profile: str, scale: str, blocks: Blocks, left_out: int) -> Runs:
    records = [side for sides in blocks for side in sides]
    days = sorted({datetime.fromtimestamp(record.trial.begun, UTC).date().isoformat() for record in records})
    commits = sorted({record.trial.versions.get("commit", "")[:12] for record in records})
    dates = " to ".join(dict.fromkeys((days[0], days[-1])))
    first = records[0]
    return Runs(
        profile,
        scale,
        len(blocks),
        left_out,
        dates,
        name_machines(record.trial.machine for record in records),
        ", ".join(commits),
        first.inputs.policy_name,
        _rate(first),
    )


def _draw(profile: str, found: Mapping[str, Blocks], file: Path) -> None:
    runs = {scale: [side for sides in blocks for side in sides] for scale, blocks in found.items()}
    try:
        file.write_text(drawing.svg(scalepage.overlay(profile, runs)))
    except NoData as missing:
        raise InputError(profile, "curves", str(missing), "records with lag, replicas and rates") from None
