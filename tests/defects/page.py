"""``python -m tests.defects.page > docs/known-behaviours.md``: your question, the experiment, the thread.

The page is made from the metadata of the tests in this package, from :mod:`tests.defects.answers`, and from what the faults of
sessions did (``elastic-lab evidence faults``).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tests.defects
from lab import paths
from lab.archive import lock
from lab.components.build import KEDA, KUBERNETES
from lab.inputs.faults import BROKER, TERMINATE
from lab.measure.fault_tally import SCALING, TOTALS, WORST, together
from lab.report.tables import Cell, Table
from tests import pages
from tests.defects import behaviour
from tests.defects.answers import ANSWERS, Answer

COMMAND = "python -m tests.defects.page > docs/known-behaviours.md"
ENOUGH = 8  # words of an answer that is more than a yes or a no
PAGE = """# Known behaviours: your question, the experiment, the thread

{command} writes this page from the tests, and a test fails while the two differ.

Each behaviour is shown by a test on the real control plane, KEDA {keda}, Kubernetes {kubernetes} and Kafka: `tox -e defects`.
The pods do nothing, and lag is made by producing. A KEDA that mends a behaviour turns its test red with the
words "cured upstream". The test has the whole answer: what users report, what is shown, the cure and its price.

{found}
{faults}## Experiments answer these, with traffic and working consumers

{others}
"""
FAULTS = """## What do faults do to a group that scales?
{injections} [faults](write-an-experiment.md#faults) struck in {trials} trials at [quick or medium scale](scale.md), in which
bursts scale a group out and in. {out} faults struck while it scaled out, and {in} while it scaled in. Of all messages {lost}
were lost, {unseen} were left unread, and of {unknown} the producer never learned whether they were stored. {copies} were
processed a second time. In {unexplained} of these cases nothing explains it, and in {given_up} the group had given up a
member that nothing had struck. In all others the struck consumer had not committed the message yet.{untold}
`tox -e faults` runs [such trials](../tests/experiments/test_faults.py).

*Killed* is SIGKILL. *Stopped* is SIGSTOP: the process is there and does nothing until it goes on. A part of the cluster is
away for 1 to 5 s, a broker for up to 20. A consumer is stopped for longer than its session timeout. *Copies* are messages
that were processed a second time. A proxy, and not netem, does the network's faults: what is lost comes later, in its order.
A broker's disk is full by a limit on the size of its files (RLIMIT_FSIZE).

| struck | how | times | longest standstill, s | copies |
|---|---|---|---|---|
{struck}

For a consumer, the longest standstill is the longest time that a message waited in one of its partitions. For a part of the
control plane, it is the longest time between two decisions of the HPA, which are due each second or half second. For
anything else, it is the longest time that a message waited in any partition. Faults overlap, and a pod works off what it
fetched of one partition before it goes to the next, so another fault or a backlog may be the cause of a standstill.

The kubelet lets a container that ended wait before its next start, at first 10 s and then twice as long each time. A lag
scaler that ended five times in three minutes was away for 80 s, and the HPA decided again 62 s after the last fault.

## What do KEDA and the HPA do while a part of the control plane is away?
These are the faults above during which nothing else of the control plane was away. A sync is the HPA's turn to decide: one
is due each second or half second here, and every 15 s in a cluster with default settings. A sync *fails* when it gets an error
in place of a metric. Where syncs neither decide nor fail, the HPA waits for an answer, or its controller is away.
The group's trigger is kafka, or the lag scaler where that is struck: of a prometheus, cpu or memory trigger the rows of
Prometheus, the exporter, kube-state-metrics and metrics-server say nothing.

| away | how | times | decided, of the syncs due | failed | what the HPA does |
|---|---|---|---|---|---|
{away}

A copy counts for each kind of fault that explains it. A change of the replicas may have been decided just before the fault.

"""
HOW = {
    **{"sigkill": "killed", "sigstop": "stopped", "sigterm": "told to end, and killed", "evict": "evicted", "drain": "drained"},
    **{"rollout": "rolling update", "storm": "storm of rebalances", "full": "its disk is full"},
    **{"cut": "cut off from the broker, by a proxy", "delay": "slow to the broker, by a proxy"},
    "loss": "loses packets to the broker, by a proxy",
}
ROLLED = {(BROKER, TERMINATE): "told to end, and started anew"}
DECIDES = FAILS = 0.5  # of the syncs that were due
NOTE = (
    f"Each is a test of its own at KEDA {KEDA} (tox -e defects), which this session did not run. docs/known-behaviours.md has "
    "what is shown and the cure."
)


@dataclass(frozen=True)
class Entry:
    """A section of the page: the ``test`` in ``file`` (relative to the project) and what it shows."""

    file: str
    test: Callable[..., object]
    known: behaviour.Behaviour


def entries() -> list[Entry]:
    """The behaviours of every test module of the package, module by module, in the order of the code."""
    names = sorted(item.name for item in pkgutil.iter_modules(tests.defects.__path__) if item.name.startswith("test_"))
    modules = {f"tests/defects/{name}.py": importlib.import_module(f"tests.defects.{name}") for name in names}
    found = [(file, test, behaviour.of(test)) for file, module in modules.items() for test in vars(module).values()]
    return [Entry(file, test, known) for file, test, known in found if known is not None]


def threads(names: tuple[str, ...]) -> str:
    """All of ``names`` as Markdown."""
    return ", ".join(map(pages.thread, names))


def table() -> Table:
    """The behaviours with their threads and what is shown, for a session's page."""
    rows: list[list[str | Cell]] = [
        [
            known.question,
            Cell(links=tuple(filter(None, map(pages.link, known.threads)))),
            "shown" if known.seen else f"not seen at {KEDA}",
        ]
        for known in (each.known for each in entries())
    ]
    return Table(("question", "thread", "the test of it"), rows)


def page() -> str:
    """The whole page as GitHub's Markdown; its links lead from docs/."""
    parts = {"found": "\n".join(map(_section, entries())), "others": "\n".join(map(_other, ANSWERS))}
    parts["faults"] = faults(lock.read(paths.PROJECT / lock.FOLDER).faults.values())
    return PAGE.format(command=f"`{COMMAND}`", keda=KEDA, kubernetes=KUBERNETES, **parts)


def faults(tallies: Collection[dict[str, Any]]) -> str:
    """The sections on what the faults of sessions did, by their ``tallies`` together; nothing without one."""
    if not tallies:
        return ""
    totals = together(tallies)
    named = [(f"{row['component']} | {_how(row['component'], row['kind'])}", row) for row in totals["struck"]]
    struck = [f"| {name} | {row['injections']:,} | {_seconds(row[WORST])} | {row['copies']:,} |" for name, row in named]
    away = [f"| {name} | {_away(row)} |" for name, row in named if row["due"] >= 1]
    untold = f" {totals['untold']} of the trials left no record of it." if totals["untold"] else ""
    scaling = {way: f"{sum(row[way] for row in totals['struck']):,}" for way in SCALING}
    shown = {name: f"{totals[name]:,}" for name in TOTALS} | scaling | {"untold": untold}
    return FAULTS.format(**shown, struck="\n".join(struck), away="\n".join(away))


def _how(component: str, kind: str) -> str:
    return ROLLED.get((component, kind)) or HOW.get(kind, kind)


def _seconds(value: float | None) -> str:
    return "no data" if value is None else f"{value:.1f}"


def _away(row: Mapping[str, Any]) -> str:
    share, steps = row["decided"] / row["due"], row["steps"]
    changes = f"the replicas change {'once' if steps == 1 else f'{steps} times'}" if steps else "the replicas stay"
    if share >= DECIDES:
        does = "it goes on deciding"
    else:
        does = "it gets no metric" if row["failed"] / row["due"] >= FAILS else "it does not decide"
    return f"{row['alone']} | {row['decided']} of {row['due']:.0f} | {row['failed']} | {does}, and {changes}"


def _other(answer: Answer) -> str:
    name = Path(answer.where).stem.removeprefix("test_")
    return f"- **{answer.question}** {answer.answer} [{name}](../{answer.where}), {threads(answer.threads)}"


def _section(entry: Entry) -> str:
    known = entry.known
    seen = "" if known.seen else f"Not seen at {KEDA}. "
    test = f"[{Path(entry.file).stem.removeprefix('test_')}](../{entry.file})"
    return f"## {known.question}\n{seen}{start(known.shown)} **Cure.** {known.cure} {test}, {threads(known.threads)}\n"


def start(answer: str) -> str:
    """The first sentence of ``answer``, with those after it while it has fewer than ``ENOUGH`` words."""
    sentences = re.split(r"(?<=[.)]) (?=[A-Z\d])", answer)
    for number in range(1, len(sentences)):
        if len(" ".join(sentences[:number]).split()) >= ENOUGH:
            return " ".join(sentences[:number])
    return answer


if __name__ == "__main__":
    sys.stdout.write(page())
