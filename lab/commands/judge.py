"""``elastic-lab judge``: it prints the measures of records, replays their syncs, and sets predictions beside them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.commands import situation
from lab.commands.text import as_json, number, table
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.flags import number as within
from lab.judge.bounds import TIME_BEHIND_S
from lab.measure.calibration import Calibration, calibration_from_others
from lab.measure.overview import all_measures, overview
from lab.measure.prediction import Agreement, Comparison, agreement, compare, predict, recorded
from lab.record import rescue
from lab.record.store import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMARY = ("record", "syncs", "agree (%)", "within one pod (% of time)", "peak lag (off by %)", "drain (off by %)")
FIGURES = {
    "peak lag (messages)": "peak_lag",
    "drain (s)": "drain_s",
    "pod-minutes": "pod_minutes",
    "flips": "flips",
    "most replicas (pods)": "most_replicas",
}


@dataclass(frozen=True)
class Judged:
    """A record with its findings. ``missing`` has the reason for each finding that it lacks, by name."""

    record: Record
    replay: Agreement
    comparison: Comparison
    missing: dict[str, str]


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.add_argument("records", type=Path, nargs="*", metavar="RECORD", help="a record, or a folder of them")
    parser.flag("results", Path, None, "the folder of a session, whose records are judged where none is named", optional=True)
    parser.flag("calibrate", Path, None, "records that tell what pods take [default: the others of a workload]", optional=True)
    oldest = f"{TIME_BEHIND_S:g}"
    parser.flag("objective-s", within(0.1, 86_400), oldest, "the chart's objective: oldest age of an event, s", "0.1 to 86,400")
    parser.add_argument("--recheck", action="store_true", help="settle each ledger again from its events and receipts")
    situation.add_output_flags(parser, "draw one record into this file")


def run(options: Namespace) -> int:
    """Judge and print. Returns the exit code, which is 0 whatever they show."""
    folders: list[Path] = options.records or [folder for folder in (options.results,) if folder]
    if not folders:
        raise InputError("command line", "RECORD", None, "a record, a folder of them, or --results DIR")
    for folder in folders:
        rescue.rescue_all(folder, _spark)
    records = {record.id: record for folder in folders for record in situation.records_in(folder)}
    if options.chart and (len(records) != 1 or not options.calibrate):
        allowed = "one record to draw, and --calibrate with others that tell what pods take"
        raise InputError("command line", "--chart", str(options.chart), allowed)
    telling = list(records.values())
    if options.calibrate:
        telling = situation.records_in(options.calibrate)
        situation.calibrated(telling, options.calibrate)
    known = {one.id: calibration_from_others(one, telling, alike=not options.calibrate) for one in records.values()}
    again = _recheck(list(records.values())) if options.recheck else {}
    judged = [judge(one, known[one.id], again.get(one.id, {})) for one in records.values()]
    print(as_json({"records": [_content(one) for one in judged]}) if options.json else _text(judged))
    if options.chart:
        only, measured = judged[0], known[judged[0].record.id]
        if measured is None or only.comparison.why:
            raise InputError(only.record.folder, "record", only.missing["prediction"], "a record that can be predicted")
        situation.save(lambda: _chart(only.record, measured, options.objective_s), options.chart)
    return 0


def _recheck(records: Sequence[Record]) -> dict[str, dict[str, str]]:
    """Settle each ledger again. Returns the missing ledgers by record. Raises :class:`InputError` where one differs."""
    from lab.record.ledger.settle import recheck

    missing: dict[str, dict[str, str]] = {}
    for record in records:
        try:
            recheck(_spark(), record)
        except NoData as nothing:
            missing[record.id] = {"recheck": str(nothing)}
    return missing


def _spark() -> SparkSession:
    from lab.record.ledger import session  # imports Spark, which few records need

    return session.spark()


def judge(record: Record, known: Calibration | None, lacking: Mapping[str, str]) -> Judged:
    """Replay the record's syncs, and predict it from ``known``. ``lacking`` has the findings that are already missing."""
    replay = agreement(record)
    try:
        nothing = Comparison.missing("no other record tells what its pods take: give --calibrate")
        comparison = compare(record, known) if known else nothing
    except InputError as refused:
        comparison = Comparison.missing(str(refused))
    missing: dict[str, str] = record.trial.missing | dict(lacking)
    missing |= {name: found.why for name, found in {"agreement": replay, "prediction": comparison}.items() if found.why}
    return Judged(record, replay, comparison, missing)


def _text(judged: Sequence[Judged]) -> str:
    rows: list[Sequence[str]] = [SUMMARY]
    for one in judged:
        figures = (one.replay.syncs.value, one.replay.agreement.value, *_errors(one.comparison).values())
        rows.append((one.record.id, *map(number, figures)))
    return "\n\n".join([*map(_block, judged), table(rows, numbers=range(1, len(SUMMARY)))])


def _block(one: Judged) -> str:
    """Return one record's lines: its measures, their predictions, and each sync that the model decides otherwise."""
    rows = [("figure", "recorded", "predicted"), *((name, number(value), "") for name, value in overview(one.record).items())]
    if not one.comparison.why:
        was, foreseen = one.comparison.recorded, one.comparison.predicted
        for name, field in FIGURES.items():
            rows.append((f"from the profile's start: {name}", number(getattr(was, field)), number(getattr(foreseen, field))))
    ended = "" if one.record.finished else f": only a part of a trial: {one.record.trial.ended}"
    lines = [f"{one.record.id}{ended}", table(rows, numbers=(1, 2))]
    if not one.replay.why:
        wrong = len(one.replay.disagreements)
        lines.append(
            f"{one.replay.syncs} syncs, {one.replay.rescaled} of them rescaled, {one.replay.computed} worked out from lag: "
            f"{'the model decides each alike' if not wrong else f'the model decides {wrong} otherwise'}"
        )
        lines += map(str, one.replay.disagreements)
    return "\n".join([*lines, *(f"no data: {what}: {why}" for what, why in one.missing.items())])


def _errors(found: Comparison) -> dict[str, float | None]:
    """Return the errors of the prediction, percent. None is no data."""
    return {name: getattr(found, name).value for name in ("within_one_pod", "peak_error", "drain_error")}


def _content(one: Judged) -> dict[str, Any]:
    agreed, predicted = None, None
    if not one.replay.why:
        agreed = {name: getattr(one.replay, name).value for name in ("syncs", "rescaled", "computed", "agreement")}
        agreed["disagreements"] = [str(wrong) for wrong in one.replay.disagreements]
    if not one.comparison.why:
        both = {"predicted": asdict(one.comparison.predicted), "recorded": asdict(one.comparison.recorded)}
        predicted = both | _errors(one.comparison)
    return {
        "record": one.record.id,
        "ended": one.record.trial.ended,
        "measures": all_measures(one.record),
        "overview": overview(one.record),
        "agreement": agreed,
        "prediction": predicted,
        "missing": one.missing,
    }


def _chart(record: Record, known: Calibration, objective_s: float) -> Any:
    from lab.charts import forecast as drawn

    curve, seen, traffic = predict(record, known), recorded(record), record.profile
    return drawn.forecast(
        drawn.Forecast(
            title=f"{record.id}, predicted and recorded",
            subtitle=f"scale {record.scale.name}; peak lag {curve.peak_lag:,.0f} predicted, "
            f"{seen.peak_lag:,.0f} recorded; most replicas {curve.replicas.max()} and {seen.replicas.max()}",
            profile=traffic,
            tail_s=max(0.0, float(curve.t[-1]) - traffic.duration),
            objective_s=objective_s,
            predicted=curve,
            recorded=seen,
        )
    )
