"""``python -m tests.scenarios.ride_hailing.programs.dashboard``: reads the pipeline's table, and shows surge multipliers.

It is a process of its own. Of Spark it sees files alone: the log of the table, and the rows. A batch is available at the time
at which this process has read its rows. It reports each batch with that time, the multipliers that it shows from then on, and
how far the table has come in each partition of the group's topic.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from lab.flags import Flags
from lab.kafka.login import kafka_flags
from lab.programs.telemetry import Reports, process_started, reporter, serve
from tests.scenarios.ride_hailing.programs.sinklog import SinkLog
from tests.scenarios.ride_hailing.programs.surge import DRIVER, REQUEST, WINDOW_S, multiplier

log = logging.getLogger("ride_hailing")
LOOK_S = 0.05


class Board:
    """What a dashboard shows of the rows that it was given, and how far these came. Pure.

    ``rows`` counts them, ``seqs`` is the sum of their seqs, by which they are told from other rows. ``late`` counts the rows
    that were older than the newest row of a batch before. ``offsets`` has the end offset of each partition.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window = pd.Timedelta(seconds=window_s)
        self._recent: list[pd.DataFrame] = []
        self.newest: pd.Timestamp | None = None
        self.rows = self.seqs = self.late = 0
        self.offsets: dict[int, int] = {}

    def take(self, batch: pd.DataFrame) -> None:
        """Take in the rows of a batch, at least one."""
        newest = batch["at"].max()
        if self.newest is not None:
            self.late += int((batch["at"] < self.newest).sum())
            newest = max(newest, self.newest)
        self.newest = newest
        self.rows += len(batch)
        self.seqs += int(batch["seq"].sum())
        ends = batch.groupby("partition")["offset"].max() + 1
        for partition, end in zip(ends.index.tolist(), ends.tolist(), strict=True):
            self.offsets[partition] = max(self.offsets.get(partition, 0), end)
        held = (rows[rows["at"] > newest - self._window] for rows in (*self._recent, batch))
        self._recent = [rows for rows in held if not rows.empty]

    def zones(self) -> dict[str, float]:
        """The multiplier of each zone that has requests or drivers in the window before the newest row."""
        counts = Counter(row for rows in self._recent for row in zip(rows["zone"], rows["kind"], strict=True))
        shown = {zone: multiplier(counts[zone, REQUEST], counts[zone, DRIVER]) for zone in sorted({zone for zone, _ in counts})}
        return {f"zone-{zone}": value for zone, value in shown.items() if value is not None}


class Reader:
    """Follows the table in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.board = Board()
        self._log = SinkLog(folder)

    def take(self) -> Iterator[dict[str, Any]]:
        """Read each batch that is new; what is reported of it. ``newest`` is the time of the newest event, epoch s."""
        for batch, files in self._log.take():
            tables = [rows for rows in (pq.read_table(file).to_pandas() for file in files) if len(rows)]
            if tables:
                self.board.take(pd.concat(tables))
            board = self.board
            zones, available = board.zones(), time.time()
            yield {
                "batch": batch,
                "available": available,
                "rows": sum(map(len, tables)),
                "events": board.rows,
                "seqs": board.seqs,
                "late": board.late,
                "newest": None if board.newest is None else board.newest.timestamp(),
                "zones": zones,
                "offsets": {str(partition): end for partition, end in sorted(board.offsets.items())},
            }


def main() -> int:
    """Follow the table until SIGTERM."""
    parser = Flags(prog="python -m tests.scenarios.ride_hailing.programs.dashboard", description=__doc__)
    kafka_flags(parser)
    parser.serving(metrics_port=9091)
    parser.flag("reports-topic", str, None, "topic on which batches are reported")
    parser.flag("storage", str, "storage", "the pipeline's folder")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, lambda: True, lambda: True)
    who = os.environ.get("HOSTNAME", "dashboard")
    producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who)
    reports.say("started", created=process_started())
    folder = Path(options.storage).resolve() / "table"
    log.info("reads %s", folder)
    reader = Reader(folder)
    while not stop.wait(LOOK_S):
        for batch in reader.take():
            reports.say("table", **batch)
        producer.poll(0)
    producer.flush(10)
    return 0


if __name__ == "__main__":
    sys.exit(main())
