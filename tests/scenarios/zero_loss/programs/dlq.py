"""The letters of a dead-letter topic, and their replay: ``python -m tests.scenarios.zero_loss.programs.dlq``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime

from lab.commands.text import as_json, table
from lab.errors import BAD_INPUT, FAULT, InputError, LabFault
from lab.flags import Flags
from lab.kafka.login import kafka_flags
from tests.scenarios.zero_loss.programs.deadletters import (
    COPY,
    DONE,
    FOREIGN,
    GONE,
    NAMED,
    OTHER,
    WAITING,
    DeadLetters,
    Entry,
    Foreign,
    Replay,
    states,
)

ACTIONS = ("list", "replay")
HEAD = ("letter", "message", "attempts", "replays", "failed (UTC)", "state", "error")


def main(arguments: Sequence[str] | None = None) -> int:
    """List or replay. Returns the exit code: 1 when a letter still waits or could not be sent, 2 on bad input, 3 on a fault."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else BAD_INPUT


def _run(arguments: Sequence[str]) -> int:
    text = "the letters of a dead-letter topic, and their replay"
    parser = Flags("python -m tests.scenarios.zero_loss.programs.dlq", text, environment=False)
    parser.add_argument("action", choices=ACTIONS, help="list the letters, or send those that wait back to their topics")
    kafka_flags(parser)
    parser.flag("topic", str, None, "the dead-letter topic")
    text = "the topics that a replay may send to, with a comma between two: what a letter names is whoever wrote it's word"
    parser.flag("to", _names, None, text, "names of topics", optional=True)
    text = "whose offsets say what was replayed, until Kafka forgets them: 7 days after the last replay, unless the broker's "
    text += "offsets.retention.minutes says otherwise [default: the topic's name and -replay]"
    parser.flag("group", str, None, text, optional=True)
    text = (
        "replay from the beginning of each partition in which the group has no offset: its first replay, or, after Kafka has "
    )
    text += "forgotten the group, all letters once more; without it, such a replay is refused"
    parser.add_argument("--from-beginning", action="store_true", help=text)
    parser.add_argument("--pass-over-others", action="store_true", help="pass over letters that name a topic not in --to")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    options = parser.parse_args(arguments)
    if options.action == "replay" and not options.to:
        parser.error("the following arguments are required: --to")
    group = options.group or f"{options.topic}-replay"
    with closing(DeadLetters(options.bootstrap_servers, options.topic, group, options.kafka_settings)) as dead:
        if options.action == "list":
            entries, committed = dead.entries(), dead.committed()
            known = states(entries, committed, dead.there(entries), options.to)
            print(_list_text(entries, known, options.json))
            unmarked = sorted({entry.partition for entry in entries} - set(committed))
            if unmarked and not options.json:
                where = ", ".join(map(str, unmarked))
                print(f"\n{group} has no offset in partition {where}: a first replay takes --from-beginning")
            return 0
        replay = dead.replay(options.to, options.from_beginning, options.pass_over_others)
    print(_replay_text(replay, options.json))
    return 1 if replay.left or replay.passed_over else 0


def _names(text: str) -> frozenset[str]:
    names = frozenset(part.strip() for part in text.split(","))
    if "" in names:
        raise ValueError(text)
    return names


def _replay_text(replay: Replay, plain: bool) -> str:
    tally, found = replay.tally, replay.states
    counts = {"sent": tally.sent, "acknowledged": tally.acked, "failed": tally.failed, "unknown": tally.unknown}
    named = [*replay.named[:NAMED], *([f"and {more:,} more"] if (more := len(replay.named) - NAMED) > 0 else [])]
    if plain:
        return as_json(counts | {"left": replay.left, "passed_over": replay.passed_over, "letters": found, "named": named})
    kinds = f"{found[WAITING]:,} waited, {found[DONE]:,} were done with before, {found[COPY]:,} are copies, "
    kinds += f"{found[OTHER]:,} name another topic, {found[GONE]:,} have no topic to go back to, "
    kinds += f"{found[FOREIGN]:,} are no dead letters"
    tallied = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    return "\n".join(
        [f"{sum(found.values()):,} letters: {kinds}", f"{tallied}; {replay.left:,} wait for the next replay", *named]
    )


def _list_text(entries: Sequence[Entry], known: Sequence[str], plain: bool) -> str:
    rows, lines = [], [HEAD]
    for one, state in zip(entries, known, strict=True):
        row: dict[str, object] = {"letter": [one.partition, one.offset], "state": state}
        cells = (f"{one.partition}/{one.offset}", "", "", "", "", state)
        if isinstance(one, Foreign):
            rows.append(row | {"error": one.why})
            lines.append((*cells, one.why))
            continue
        why = one.reason
        at = datetime.fromtimestamp(why.time, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        place = f"{why.topic}/{why.partition}/{why.offset}"
        rows.append(row | asdict(why))
        lines.append((cells[0], place, str(why.attempts), str(why.replays), at, state, why.error))
    return as_json(rows) if plain else table(lines, numbers=(2, 3))


if __name__ == "__main__":
    sys.exit(main())
