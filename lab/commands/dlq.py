"""``python -m lab dlq``: the letters of a dead-letter topic, and their replay to the topics they came from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime

from lab.commands.text import as_json, table
from lab.flags import Flags
from lab.kafka.deadletters import COPY, REPLAYED, WAITING, DeadLetters, Letter, states

ACTIONS = ("list", "replay")
HEAD = ("letter", "message", "attempts", "replays", "failed (UTC)", "state", "error")


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """List or replay; returns the exit code: 1 when a replayed message was not acknowledged."""
    parser = Flags(f"python -m lab {command}", help_text, environment=False)
    parser.add_argument("action", choices=ACTIONS, help="list the letters, or send those that wait back to their topics")
    parser.flag("bootstrap-servers", str, None, "Kafka's address")
    parser.flag("topic", str, None, "the dead-letter topic")
    parser.flag(
        "group", str, None, "whose offsets say what was replayed [default: the topic's name and -replay]", optional=True
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    options = parser.parse_args(arguments)
    with closing(DeadLetters(options.bootstrap_servers, options.topic, options.group or f"{options.topic}-replay")) as dead:
        if options.action == "list":
            letters = dead.letters()
            print(_listed(letters, states(letters, dead.committed()), options.json))
            return 0
        tally, found = dead.replay()
    counts = {"sent": tally.sent, "acknowledged": tally.acked, "failed": tally.failed, "unknown": tally.unknown}
    if options.json:
        print(as_json(counts | {"letters": found}))
    else:
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        print(
            f"{sum(found.values()):,} letters: {found[WAITING]:,} waited, {found[REPLAYED]:,} were replayed before, "
            f"{found[COPY]:,} are copies\n{told}"
        )
    return 0 if tally.acked == tally.sent == found[WAITING] else 1


def _listed(letters: Sequence[Letter], known: Sequence[str], plain: bool) -> str:
    if plain:
        rows = zip(letters, known, strict=True)
        return as_json([{"letter": [one.partition, one.offset], "state": state} | asdict(one.reason) for one, state in rows])
    lines = [HEAD]
    for one, state in zip(letters, known, strict=True):
        why = one.reason
        at = datetime.fromtimestamp(why.time, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        place = f"{why.topic}/{why.partition}/{why.offset}"
        lines.append((f"{one.partition}/{one.offset}", place, str(why.attempts), str(why.replays), at, state, why.error))
    return table(lines, numbers=(2, 3))
