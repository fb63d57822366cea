"""``elastic-lab shadow``: whether the model decides as a live HPA does, and what another ScaledObject would ask for.

It gets, lists and watches three objects, and changes nothing (manifests/shadow/rbac.yaml), or it reads a Prometheus. Times are
epoch s, lag in messages.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from lab import clock
from lab.commands import backtest
from lab.commands.explain import INSTANT
from lab.commands.profile import length
from lab.commands.shadow_page import page
from lab.commands.shadow_text import lines
from lab.commands.situation import writable
from lab.commands.sync import MOST_PARTITIONS
from lab.commands.text import as_json
from lab.errors import BREACHED, HELD, InputError, LabFault, report, together
from lab.flags import NAME, URL, Flags, whole
from lab.flags import number as between
from lab.foresee import shadow
from lab.foresee.candidate import Comparison, Loop, Point
from lab.foresee.in_flight import CLIENTS_COMMIT_S, InFlight
from lab.foresee.shadow import Decided, Shadow
from lab.inputs import scaledobject, scaledobject_file
from lab.inputs.hpa_spec import DOWNSCALE_STABILIZATION_S
from lab.inputs.profile import MAX_SECONDS
from lab.inputs.scale import HPA_SYNC_S, SYNCS_S
from lab.inputs.scaledobject import ScaledObject
from lab.model.hpa import DEFAULTS, Controller
from lab.record import live
from lab.record.tables import Watched
from lab.trial.watch import HPA, SCALED, Transitions, connected, group

WATCH = "Watch"  # the kind of the last row of what is saved
FOR_S = 1800.0
MOST_S = 7 * 86_400.0
MOST_PAST_S = 90 * 86_400.0
OF_THE_PAST = ("to", "prometheus", "scaledobject", "query")  # flags of --backtest alone
MORE_S = 60.0  # than the watch lasts, until it is given up


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "the context of the kubeconfig that is used; no other is tried"
    parser.flag("context", str, None, text, optional=True)
    parser.flag("kubeconfig", str, None, "the file of --context [default: KUBECONFIG, else ~/.kube/config]", optional=True)
    parser.flag("namespace", str, "default", "the namespace of the group")
    parser.flag("name", str, "", "the live ScaledObject")
    parser.flag("for-s", between(1, MOST_S), FOR_S, "s to watch; Ctrl-C ends the watch early, and the answer still comes")
    parser.flag("save", writable, None, "keep what was seen in this file", "a file in a folder that is there", optional=True)
    parser.flag("watched", Path, None, "answer from a file of --save, and watch nothing", optional=True)
    text = "in place of a watch, so much of the past out of --prometheus, such as 30d"
    parser.flag("backtest", length(MOST_PAST_S), None, text, optional=True)
    parser.flag("to", INSTANT, None, "the end of --backtest [default: now]", optional=True)
    parser.flag(
        "prometheus", URL, None, "the URL of a Prometheus that scrapes kube-state-metrics, for --backtest", optional=True
    )
    parser.flag("scaledobject", Path, None, "the file of the live ScaledObject, for --backtest", optional=True)
    text = "a selector of an exporter's lag, for the closed loop of --backtest [default: the lag that the HPA saw]"
    parser.flag("query", str, None, text, optional=True)
    text = "the traffic of that time as profile wrote it, for the closed loop [default: what the lag tells]"
    parser.flag("profile", Path, None, text, "FILE of elastic-lab profile", optional=True)
    parser.flag("candidate", Path, None, "the file of the ScaledObject that might replace the live one", optional=True)
    text = "the partitions of the topic, for --pod-rate and for a candidate whose cap on the lag is another"
    parser.flag("partitions", whole(1, MOST_PARTITIONS), None, text, optional=True)
    text = "messages/s that a pod processes at most: the closed loop is simulated with it"
    parser.flag("pod-rate", between(0.001, 1e6), None, text, optional=True)
    parser.flag("start-s", between(0, 3600), None, "s from a decision until a new pod joins, for --pod-rate", optional=True)
    flying = InFlight(CLIENTS_COMMIT_S).mean_s
    text = "s of the traffic that a group has in flight when it keeps up: half a commit interval"
    parser.flag("in-flight-s", between(0.001, 3600), flying, text)
    parser.flag("hpa-sync-s", between(0.1, SYNCS_S[1]), HPA_SYNC_S, "the HPA's sync period, s")
    parser.flag("tolerance", between(0, 1), DEFAULTS.tolerance, "the controller's own tolerance")
    text = "the controller's own window for a scale-down, s"
    parser.flag("downscale-stabilization-s", whole(0, 3600), DOWNSCALE_STABILIZATION_S, text)
    text = "write the answer with its curves into this file, one page that opens offline"
    parser.flag("page", writable, None, text, "FILE.html in a folder that is there", optional=True)
    text = "write the traffic of the closed loop into this file, for simulate, tune and play"
    parser.flag("save-profile", writable, None, text, "FILE.yaml in a folder that is there", optional=True)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Watch, answer and print. Returns the exit code: 1 where there is no verdict."""
    _check(options)
    wanted = scaledobject_file.load(options.candidate).scaled if options.candidate else None
    controller = Controller(tolerance=options.tolerance, downscale_stabilization_s=options.downscale_stabilization_s)
    found = backtest.answer if options.backtest else _watched
    answer, loop = found(options, wanted, controller)
    if loop and options.save_profile:
        content = loop.situation.profile.to_dict()
        options.save_profile.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    if options.page:
        options.page.write_text(page(answer, loop), encoding="utf-8")
    print(as_json(asdict(answer)) if options.json else "\n".join(lines(answer)))
    return BREACHED if answer.trust.reasons else HELD


def _check(options: Namespace) -> None:
    """Raise :class:`InputError` for all flags that do not fit together."""
    past = [f"--{name}" for name in OF_THE_PAST if vars(options)[name]]
    with together():
        if past and not options.backtest:
            report(InputError("command line", "--backtest", None, f"a length such as 30d, which {', '.join(past)} would read"))
        if (options.pod_rate is None) != (options.start_s is None):
            report(InputError("command line", "--start-s, --pod-rate", None, "both, or neither"))
        if options.pod_rate is None and options.save_profile:
            report(InputError("command line", "--pod-rate", None, "what --save-profile needs: the lag and it tell the traffic"))
        if options.save_profile and (options.backtest or 0) > MAX_SECONDS:
            allowed = f"{MAX_SECONDS / 86_400:g}d at most with --save-profile: no profile is longer"
            report(InputError("command line", "--backtest", f"{options.backtest / 86_400:g}d", allowed))
        if options.pod_rate is not None and options.partitions is None:
            report(InputError("command line", "--partitions", None, f"1 to {MOST_PARTITIONS:,}, for --pod-rate"))


def _watched(options: Namespace, wanted: ScaledObject | None, controller: Controller) -> tuple[Shadow, Loop | None]:
    """The answer to a watch, or to the file of an earlier one."""
    if options.watched:
        rows = _read(options.watched)
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = options.save or Path(folder) / "watched.jsonl"
            _watch(options, file)
            rows = _read(file)
    return _answer(options, rows, wanted, controller)


def _answer(
    options: Namespace, rows: Sequence[dict[str, Any]], wanted: ScaledObject | None, controller: Controller
) -> tuple[Shadow, Loop | None]:
    """The answer to what was watched, and its closed loop.

    Raises :class:`InputError` for what can't be compared, or simulated.
    """
    seen, target, scaled = (_events(rows, kind) for kind in (HPA, None, SCALED))
    if not seen or not scaled:
        raise InputError(options.watched or "the watch", HPA if scaled else SCALED, None, "one at least, in what was seen")
    end = next((row for row in rows if row["kind"] == WATCH), {"t": rows[-1]["t"], "object": {"gaps": []}})
    until, gaps = float(end["t"]), [(one, other) for one, other in end["object"]["gaps"]]
    sync_s = live.period(seen, options.hpa_sync_s)
    decided = list(shadow.decide(live.syncs(seen, target, sync_s, until, gaps), controller, sync_s))
    trust = shadow.trust(decided, controller)
    missing = [f"{len(gaps)} times what happened was not seen one by one: is the right to watch given?"] if gaps else []
    asked = loop = None
    if not trust.reasons and (wanted or options.pod_rate):
        there = scaledobject.parse(scaled[-1].object, "the live ScaledObject")
        if wanted:
            asked = shadow.ask(decided, Comparison(there, wanted, options.partitions), controller, until)
            if asked is None:
                missing.append(
                    "what the candidate asks for: its windows were never full of what the live HPA saw: watch longer"
                )
        policies = [there, *([wanted] if wanted else [])]
        loop, lacks = backtest.play(options, policies, points(decided), until, sync_s, controller)
        missing += lacks
    found = Shadow(
        scaledobject=scaled[-1].name,
        hpa=seen[-1].name,
        since=float(rows[0]["t"]),
        until=until,
        sync_s=sync_s,
        scrape_s=None,
        trust=trust,
        disagreements=tuple(shadow.disagreements(decided)),
        candidate=asked,
        closed=loop.closed if loop else None,
        missing=tuple(missing),
    )
    return found, loop


def _events(rows: Sequence[dict[str, Any]], kind: str | None) -> list[Watched]:
    """The events of ``kind``, None for what is scaled."""
    others = (HPA, SCALED, WATCH)
    chosen = (row for row in rows if (row["kind"] == kind if kind else row["kind"] not in others))
    return [Watched(float(row["t"]), str(row["name"]), str(row["event"]), row["object"]) for row in chosen]


def points(decided: Sequence[Decided]) -> list[Point]:
    """The group at each sync; where a sync saw no lag, that of the one before."""
    found: list[Point] = []
    for one in decided:
        value = one.observed[0]
        lag = sum(value) / 1000 if isinstance(value, tuple) else found[-1].lag if found else 0.0
        found.append(Point(one.live.sync.at, lag, one.live.sync.desired, one.live.ready))
    return found


def _read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of --save. Raises :class:`InputError`."""
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        if rows and all({"t", "kind", "name", "event", "object"} <= row.keys() for row in rows):
            return rows
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(file, "content", str(error), "what --save wrote") from None
    raise InputError(file, "content", "no event", "what --save wrote")


def _watch(options: Namespace, file: Path) -> None:
    """Write each event of the HPA, of the ScaledObject and of what is scaled into ``file``, and a last row at the end.

    Raises :class:`InputError` for a context that is not there, :class:`LabFault` for a right that is not, and for no answer.
    """
    if not options.context or not options.name:
        lacks = "--name" if options.context else "--context"
        raise InputError("command line", lacks, None, "that of the live group, or --watched, or --backtest")
    with connected(options.kubeconfig, options.context) as api:
        kinds, names = group(api, options.namespace, options.name)
        file.unlink(missing_ok=True)
        transitions = Transitions(api, options.namespace, file, kinds, names)
        print(f"{NAME}: watching {options.namespace}/{options.name} for {options.for_s:,g} s", file=sys.stderr)
        begun = time.monotonic()
        try:
            with contextlib.suppress(KeyboardInterrupt):
                over = lambda: transitions.fault or time.monotonic() - begun >= options.for_s  # noqa: E731
                transitions.wait(over, options.for_s + MORE_S, "the end of the watch")
        finally:
            transitions.close()
    if transitions.fault:
        raise LabFault(transitions.fault)
    gaps = [(one.begin, one.until) for one in transitions.gaps]
    with file.open("a", encoding="utf-8") as lines:
        last = {"t": clock.now(), "kind": WATCH, "name": options.name, "event": "END", "object": {"gaps": gaps}}
        lines.write(json.dumps(last) + "\n")
