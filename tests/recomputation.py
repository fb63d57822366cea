"""Three numbers of an acceptance from its raw tables alone, by code that imports nothing of the lab.

``python -m tests.recomputation RESULTS`` prints them for each acceptance in RESULTS, beside what the lab says of it. Times are
epoch s, rates events/s. A message is done evenly between the start and the end of its receipt.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

GRID_S, WINDOW_S, BEFORE_S, AFTER_S = 0.05, 1.0, 3.0, 30.0
COMPARED = ("reaction", "worst dip", "messages that were not")  # objectives of the lab


class Raw:
    """The tables of a record: receipts, the events of the log by partition, and the consumer's replicas."""

    def __init__(self, folder):
        self.trial = json.loads((folder / "trial.json").read_text())
        self.receipts = pq.read_table(folder / "receipts.parquet").to_pandas()
        events = pq.read_table(folder / "ledger" / "events", columns=["partition", "ts"]).to_pandas()
        self.produced = {number: np.sort(own["ts"].to_numpy()) / 1e9 for number, own in events.groupby("partition")}
        begun, steps = min(times[0] for times in self.produced.values()), self.trial["inputs"]["profile"]["steps"]
        self.burst = begun + next(step["at"] for step in steps if step["phase"] == "burst")
        changes = pq.read_table(folder / "transitions.parquet").to_pylist()
        own = [row for row in changes if (row["kind"], row["name"]) == ("Deployment", "consumer")]
        self.replicas = [(row["t"], json.loads(row["object"])["spec"]["replicas"]) for row in own]

    def reaction_s(self):
        """From the first burst to the end of the first receipt of a pod that had none before the group was scaled."""
        scaled = next(t for (_, one), (t, other) in pairwise(self.replicas) if t > self.burst and other > one)
        first = self.receipts.groupby("pod")["end"].min()
        return first[first > scaled].min() - self.burst

    def not_once(self):
        """Offsets from the first to the partition's end that no receipt has, or several."""
        wrong = 0
        for number, offsets in self.trial["offsets"].items():
            times = np.zeros(offsets["end"] + 1, int)
            own = self.receipts[self.receipts["partition"] == int(number)]
            np.add.at(times, own["first"].to_numpy(), 1)
            np.add.at(times, own["last"].to_numpy() + 1, -1)
            wrong += int((times.cumsum()[:-1] != 1).sum())
        return wrong

    def worst_dip(self):
        """How far a second falls below the best of the three before it, at most, within half a minute of a step up.

        All the while each partition has messages that were produced and not done. NaN where there is no such second.
        """
        ups = [t for (_, one), (t, other) in pairwise(self.replicas) if other > one]
        grids = (np.arange(t - BEFORE_S - WINDOW_S, t + AFTER_S, GRID_S) for t in ups)
        return max((fall for grid in grids for fall in self._falls(grid)), default=np.nan)

    def _falls(self, grid):
        """The fall of each second that is judged; seconds begin at the times of ``grid``."""
        done = {number: self._done(own, grid) for number, own in self.receipts.groupby("partition")}
        waiting = [np.searchsorted(self.produced[number], grid, side="right") - own for number, own in done.items()]
        busy = np.min(waiting, axis=0) > 0
        width, before = round(WINDOW_S / GRID_S), round(BEFORE_S / GRID_S)
        line = np.sum(list(done.values()), axis=0)
        rate = (line[width:] - line[:-width]) / WINDOW_S
        whole = np.array([busy[at : at + width + 1].all() for at in range(len(rate))])
        judged = [at for at in range(before, len(rate)) if whole[at - before : at + 1].all()]
        return [1 - rate[at] / rate[at - before : at].max() for at in judged]

    def _done(self, own, grid):
        """How many messages of these receipts are done by each time."""
        edges = np.concatenate([own["start"], own["end"]])
        slopes = (own["count"] / np.maximum(own["end"] - own["start"], 1e-6)).to_numpy()
        order = np.argsort(edges, kind="stable")
        slope = np.concatenate([slopes, -slopes])[order].cumsum()
        line = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(edges[order]))])
        return np.interp(grid, edges[order], line)


def main(results):
    """Print the three numbers of each record, and the lab's verdicts of the session."""
    for folder in sorted((results / "records").glob("acceptance-*")):
        if not (folder / "ledger" / "events").is_dir():
            print(f"{folder.name}: without a ledger, as one of the archive may be")
            continue
        raw = Raw(folder)
        print(f"{folder.name}: reaction {raw.reaction_s():.2f} s, dip {raw.worst_dip():.3f}, not once {raw.not_once()}")
    for one in json.loads((results / "verdicts.json").read_text()):
        if one["experiment"] == "acceptance" and one["objective"].startswith(COMPARED):
            print(f"the lab: {one['objective']} {one['measured']:.3f}, median of {one['runs']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
