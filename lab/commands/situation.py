"""The question to ``simulate``, ``tune`` and ``plane``: a ScaledObject, a profile and the pods, read from flags and files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import project, yamlfile
from lab.commands import pods
from lab.commands.pods import MOST_PARTITIONS, TIMES
from lab.errors import InputError, NoData, step, together
from lab.flags import Flags, choice, number, whole
from lab.foresee import queries
from lab.foresee.curve import Curve
from lab.foresee.notes import notes
from lab.foresee.scaler import lag_triggers
from lab.foresee.simulate import simulate
from lab.foresee.situation import POINTS, Situation, controller_of, points
from lab.foresee.starts import draws
from lab.foresee.variants import LONGEST_WINDOW
from lab.inputs import anchor, profile, scaledobject_file, topics
from lab.inputs import scale as scales
from lab.inputs.consumer import Balancer
from lab.inputs.manifests import COMMITTED
from lab.inputs.profile import Profile
from lab.inputs.scale import HPA_SYNC_S, METRIC_RESOLUTION_S, Scale
from lab.inputs.scaledobject import ScaledObject
from lab.judge.bounds import TIME_BEHIND_S

if TYPE_CHECKING:  # pandas and pyarrow are most of what a command imports, and only a record needs them
    from lab.measure.calibration import Calibration
    from lab.record.store import Record

PICTURES = (".png", ".svg", ".html")
DRAWABLE = f"FILE{', FILE'.join(PICTURES)} in a folder that is there"
WORDS = {  # the meaning of each time of Consumers, for --help
    "start_s": "from a decision until a new pod joins the group; else start_s of the workload, or calibrated",
    "start_each_s": "between pods that start together, where they share cores",
    "stop_s": "from a decision until a pod has left",
    "notice_s": "until every member knows of a rebalance and has rejoined",
    "round_s": "that each further round of a rebalance takes",
    "join_each_s": "that each further member of a round takes",
    "in_flight_s": "of the traffic that are in flight, not committed yet; else by the commit interval",
}
OBJECTIVE_S = float(TIME_BEHIND_S) * scales.load(scales.QUICK).time  # the bound is of a trial at quick, as it is seen


@dataclass(frozen=True)
class Question:
    """A ScaledObject in a situation, at real time. The group is behind when events are older than ``objective_s``, s.

    ``known`` names the source of the pods' times, which are as seen at ``scale``, and ``in_flight`` that of what is in flight.
    ``assumed`` has a line where something of the pods is. :meth:`compressed` is what is simulated.
    """

    scaled: ScaledObject
    situation: Situation
    profile_name: str
    scale: Scale
    objective_s: float
    known: str
    in_flight: str
    remarks: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def simulated(self) -> Curve:
        """Return the curve of the group at ``scale``, in times and messages of real time."""
        return simulate(*self.compressed()).at_real_time(self.scale)

    def drawn(self) -> list[Curve]:
        """Return :meth:`simulated`, and then the same for each other draw of the starts."""
        here, scaled = self.compressed()
        return [simulate(replace(here, draw=draw), scaled).at_real_time(self.scale) for draw in draws(here.consumers)]

    def elsewhere(self) -> Iterator[Curve]:
        """Yield :meth:`simulated` at each further point of the HPA's sync."""
        here, scaled = self.compressed()
        return (simulate(point, scaled).at_real_time(self.scale) for point in islice(points(here), 1, None))

    @property
    def points_s(self) -> list[float]:
        """The points of the HPA's sync, as the time of the first, s."""
        return [part * self.situation.sync_s for part in POINTS]

    def compressed(self) -> tuple[Situation, ScaledObject]:
        """Return situation and ScaledObject as a trial at ``scale`` has them."""
        if self.scale.name == scales.REAL:
            return self.situation, self.scaled
        here, scale = self.situation, self.scale
        scaled, traffic = anchor.as_trial(
            self.scaled.compressed(scale), here.profile.compressed(scale.time, scale.rate), scale.time
        )
        small = replace(
            here,
            profile=traffic,
            consumers=replace(here.consumers, rate=here.consumers.rate * scale.rate),
            sync_s=here.sync_s - scale.sync_s + scale.hpa_sync_s,
            controller=controller_of(scale),
            metrics_s=METRIC_RESOLUTION_S,
            tail_s=here.tail_s / scale.time,
            backlog=here.backlog * scale.lag,
        )
        return small, scaled

    def at_real_time(self) -> Situation:
        """Return the situation as its curve shows it: what is in flight is as much of a longer time as the scale is short."""
        pods = self.situation.consumers
        return replace(self.situation, consumers=replace(pods, in_flight_s=pods.in_flight_s * self.scale.time))

    def notes(self, curve: Curve) -> list[str]:
        """Return what is assumed, and the sentences that hold of ``curve``, which is the group's."""
        return [*self.assumed, *notes(self.at_real_time(), self.scaled, curve)]

    def lines(self) -> list[str]:
        """Return the question in lines, for the reader."""
        traffic, pods = self.situation.profile, self.situation.consumers
        rates = [step.rate for step in traffic.steps]
        sizes = f" ({', '.join(map(str, self.situation.sizes))})" if self.situation.sizes else ""
        several = f" of {self.situation.topics} topics{sizes}" if self.situation.topics > 1 else ""
        waiting = f"{self.situation.backlog:,.0f} messages wait at the start; " if self.situation.backlog else ""
        return [
            f"{self.scaled.name} on {self.profile_name}: {min(rates):,g} to {max(rates):,g} messages/s for "
            f"{traffic.duration:,g} s, and {self.situation.tail_s:,g} s more at the last rate; "
            + waiting
            + ("times are real" if self.scale.name == scales.REAL else f"simulated at {self.scale}, and shown at real time"),
            f"pods of {pods.rate:,g} messages/s on {len(self.situation.shares):,} partitions{several}, {pods.balancer}; "
            f"one joins {pods.starts or f'{pods.start_s:g} s'} after the decision ({self.known})",
            *([str(pods.nodes)] if pods.nodes else []),
            f"{pods.in_flight_s:.3g} s of the traffic are in flight, not committed yet ({self.in_flight})",
            *self.remarks,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data. Times are in s."""
        pods = self.situation.consumers
        return {
            "scaledobject": self.scaled.name,
            "scale": self.scale.name,
            "profile": self.profile_name,
            "duration_s": self.situation.profile.duration,
            "tail_s": self.situation.tail_s,
            "backlog": self.situation.backlog,
            "partitions": len(self.situation.shares),
            "topics": self.situation.topics,
            "objective_s": self.objective_s,
            "sync_s": self.situation.sync_s,
            "known": self.known,
            "in_flight": self.in_flight,
            "remarks": list(self.remarks),
            "consumers": {field: getattr(pods, field) for field in ("rate", "balancer", *TIMES)},
            "starts": str(pods.starts or ""),
            "nodes": str(pods.nodes or ""),
        }


def add_flags(parser: Flags) -> None:
    """Add the flags that ``simulate``, ``tune`` and ``plane`` share."""
    parser.flag("scaledobject", Path, None, "the file of the ScaledObject, YAML or JSON; - for standard input")
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    parser.flag("profile", str, None, "the traffic: a YAML file, or the name of one in profiles/")
    parser.flag("workload", Path, None, "what pods do (kind: Workload): rate, balancer, partitions", optional=True)
    parser.flag("pod-rate", number(0.001, 1e6), None, "messages/s a pod processes at most", "0.001 to 1,000,000", optional=True)
    text = "of all topics together, or of each"
    parser.flag("partitions", pods.by_topic(whole(1, MOST_PARTITIONS)), None, text, optional=True)
    parser.flag("topics", whole(1, topics.MOST), None, "that the partitions are spread over, as many on each", optional=True)
    text = "each topic's part of the traffic, as 8,1,1; by its partitions without it"
    parser.flag("topic-traffic", pods.by_topic(number(0, 1e9)), None, text, optional=True)
    parser.flag("balancer", choice(*Balancer), None, "how the group shares partitions", ", ".join(Balancer), optional=True)
    for field in TIMES:
        parser.flag(field.replace("_", "-"), number(0, 3600), None, f"s {WORDS[field]}", "0 to 3600", optional=True)
    parser.flag("calibrate", Path, None, "a record, or a folder of records, that tells the times above", optional=True)
    text = "simulate the trial of this scale, with what it compresses, in place of real time"
    parser.flag("scale", str, scales.REAL, text, "a name in profiles/scales.yaml")
    text = "messages that wait at the start, spread as the traffic is"
    parser.flag("backlog", whole(0, 10**12), 0, text, "a whole number from 0 to 10^12")
    text = "the HPA's sync period at real time, s, which a scale divides"
    parser.flag("hpa-sync-s", number(*scales.SYNCS_S), f"{HPA_SYNC_S:g}", text, "{:g} to {:g}".format(*scales.SYNCS_S))
    parser.flag("seed", whole(0, 2**63 - 1), 1, "decides the keys, and so each partition's share", "a whole number from 0")
    text = "oldest age an event may reach, s at real time"
    parser.flag("objective-s", number(0.1, 86_400), f"{OBJECTIVE_S:g}", text, "0.1 to 86,400")
    parser.flag("tail-s", number(0, 86_400), LONGEST_WINDOW, "s to go on at the profile's last rate", "0 to 86,400")
    add_output_flags(parser, "draw it into this file")


def add_output_flags(parser: Flags, chart: str) -> None:
    """Add --chart, which ``chart`` describes, and --json."""
    parser.flag("chart", picture, None, chart, DRAWABLE, optional=True)
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")


def picture(text: str) -> Path:
    """Return the file of a chart. Raises ``ValueError`` when no such chart can be written."""
    file = writable(text)
    if file.suffix not in PICTURES:
        raise ValueError(text)
    return file


def writable(text: str) -> Path:
    """Return a file in an existing folder. Raises ``ValueError`` when the folder does not exist."""
    file = Path(text)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise ValueError(text)
    return file


def read(options: argparse.Namespace, real: str = "") -> Question:
    """Return the question, with all inputs checked together. Raises :class:`InputError` for the first that can't be used.

    ``real`` says why a command takes no scale but real time, if it does not.
    """
    with together():
        with step():
            found = scaledobject_file.load(options.scaledobject, options.name, queries.check, hpa=not real)
        with step():
            traffic = read_profile(options.profile)
    scaled = found.scaled
    scale = replace(scales.load(options.scale), sync_s=options.hpa_sync_s)
    if real and scale.name != scales.REAL:
        raise InputError("command line", "--scale", scale.name, f"{scales.REAL}: {real}")
    known = records_in(options.calibrate) if options.calibrate else []
    measured = calibrated(known, options.calibrate) if known else None
    with together():
        with step():
            anchor.require_begin(scaled, traffic, options.profile)
        count = topics.MOST
        with step():
            group = pods.read(options, scaled, scale, known, measured)
            count = group.topics
        with step():
            lag_triggers(scaled, count)
    if scale.name != scales.REAL:
        anchor.check(scaled, traffic, scale, options.scaledobject, options.profile, scales.declared())
    situation = Situation(
        traffic,
        group.shares(traffic, options.seed),
        group.consumers,
        tail_s=options.tail_s,
        backlog=options.backlog,
        topics=group.topics,
        sizes=group.sizes,
        swing=group.swing,
        sync_s=scale.sync_s + (measured.sync_more_s if measured else 0),
        sync_each_s=measured.sync_more_each_s if measured else 0,
    )
    source = f"times as measured in {', '.join(record.id for record in known)}" if known else "times as given or assumed"
    file = Path(options.profile).stem
    return Question(scaled, situation, file, scale, options.objective_s, source, group.in_flight, found.remarks, group.assumed)


def calibrated(records: Sequence[Record], where: object) -> Calibration:
    """Return the measured times of pods. Raises :class:`InputError`, naming ``where``, when ``records`` show too little."""
    from lab.measure.calibration import calibration

    try:
        return calibration(records)
    except NoData as missing:
        allowed = "trials that show a baseline, a step up, a step down, a rebalance and syncs"
        raise InputError(where, "records", str(missing), allowed) from None


def records_in(folder: Path) -> list[Record]:
    """Return the record, or all records, in ``folder``. Raises :class:`InputError` where there is none, or one was changed."""
    from lab.record.store import opened, stored

    found = [folder] if (folder / "trial.json").exists() else list(stored(folder).values())
    if not found:
        raise InputError(folder, "(folder)", "no trial.json", "a record, results/records/NAME, or a folder of records")
    return [opened(one) for one in found]


def read_profile(text: str) -> Profile:
    """Return the traffic in the file that ``text`` names, or in one of profiles/. Raises :class:`InputError`."""
    file = Path(text)
    if file != yamlfile.STDIN and file.suffix not in project.FILES and len(file.parts) == 1:
        try:
            file = COMMITTED.profile(text)
        except InputError as unknown:
            raise InputError("command line", "--profile", text, f"a YAML file, or {unknown.allowed}", unknown.meant) from None
    return profile.load(file)


def save(draw: Callable[[], Any], file: Path) -> None:
    """Write the chart that ``draw`` makes, in the format of the file's suffix."""
    from lab.charts import drawing

    ways: dict[str, Callable[[Any], str | bytes]] = {".png": drawing.png, ".svg": drawing.svg, ".html": drawing.html}
    drawn = ways[file.suffix](draw())
    file.write_bytes(drawn.encode() if isinstance(drawn, str) else drawn)
