"""A record is closed part by part: one that raises, hangs or is interrupted costs no other, and says why it is missing."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pandas as pd
import pytest

from lab.errors import LabFault, NoData
from lab.record import store
from lab.record.store import Record, lines_to_parquet
from lab.trial import samples
from lab.trial.closing import Closing, Part, close
from lab.trial.record_parts import _concerns
from tests.unit.measure import whole


def writes(name):
    """What writes the file ``name``."""
    return lambda into: (into / name).write_text("x")


def closed(folder, *parts):
    """What is missing once ``parts`` are closed into ``folder``."""
    missing = {}
    close(Closing(folder, parts, missing))
    return missing


def names(folder):
    """The files there are."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_part_that_raises_costs_no_other(tmp_path):
    """What it had written so far does not come into the record, and what it would have replaced stays; a whole one replaces."""

    def half(into):
        writes("half")(into)
        raise LabFault("Prometheus could not be asked: refused\nand more")

    def table(into):
        (into / "ledger" / "events").mkdir(parents=True)
        writes("ledger/events/a.parquet")(into)

    for name in ("kept", "gone"):
        (tmp_path / name).write_text("x")
    parts = [
        Part("one", writes("one"), 5),
        Part("samples", half, 5, replaces=("kept",)),
        Part("two", table, 5, replaces=("gone",)),
    ]
    assert closed(tmp_path, *parts) == {"samples": "Prometheus could not be asked: refused"}
    assert names(tmp_path) == ["kept", "ledger/events/a.parquet", "one"]


def test_a_part_that_hangs_is_given_up_and_cancelled(tmp_path):
    """Its deadline passes, the rest goes on; what it writes later is not in the record."""
    go_on, written = threading.Event(), threading.Event()

    def hang(into):
        go_on.wait(120)
        try:
            writes("late")(into)
        finally:
            written.set()

    missing = closed(tmp_path, Part("ledger", hang, 0.2, cancel=go_on.set), Part("two", writes("two"), 60))
    assert missing == {"ledger": "not within 0.2 s"}
    assert written.wait(60)
    assert names(tmp_path) == ["two"]


def test_records_are_closed_part_by_part_of_all(tmp_path):
    """So that no side still runs while Spark settles the other's ledger; one that lacks a part costs the other none."""
    order = []

    def write(name, fails=False):
        def part(into):
            order.append(name)
            if fails:
                raise LabFault("gone")

        return Part(name[1:], part, 5)

    for name in "ab":
        (tmp_path / name).mkdir()
    a = Closing(tmp_path / "a", [write("a1"), write("a2", fails=True), write("a3")], {})
    b = Closing(tmp_path / "b", [write("b1"), write("b2")], {})
    close(a, b)
    assert order == ["a1", "b1", "a2", "b2", "a3"]
    assert (a.missing, b.missing) == ({"2": "gone"}, {})


def test_an_interruption_leaves_what_was_closed_and_names_the_rest(tmp_path):
    """Ctrl-C while the record is closed: no part is tried after it."""
    missing = {}

    def interrupt(into):
        raise KeyboardInterrupt

    parts = [Part("a", writes("a"), 5), Part("b", interrupt, 5), Part("c", writes("c"), 5)]
    with pytest.raises(KeyboardInterrupt):
        close(Closing(tmp_path, parts, missing))
    assert missing == {"b": "interrupted", "c": "not tried: interrupted"}
    assert names(tmp_path) == ["a"]


def test_a_prometheus_that_hangs_costs_only_the_samples(tmp_path):
    """It takes connections and never answers. A query has a deadline of its own; a measure of samples then has no data."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def ask(into):
            samples.write(into / "samples.parquet", samples.collect(url, "trial-x", 0, 10, timeout_s=0.2))

        missing = closed(tmp_path, Part("samples", ask, 60), Part("two", writes("two"), 5))
    assert list(missing) == ["samples"]
    whole.trial(whole.inputs(), missing=missing).write(tmp_path)
    with pytest.raises(NoData, match=r"has no samples: Prometheus could not be asked: .*timed out"):
        _ = Record(tmp_path).samples


def test_a_ledger_that_is_missing_is_no_data_everywhere(tmp_path):
    """Its reason stands with each of its tables."""
    missing = {"ledger": "no broker", "offsets": "no answer"}
    whole.trial(whole.inputs(), missing=missing, offsets={}).write(tmp_path)
    record = Record(tmp_path)
    for table in ("receipts", "rates", "dead_letters", "reconciliation", "produced"):
        with pytest.raises(NoData, match="no broker"):
            getattr(record, table)
    with pytest.raises(NoData, match="no answer"):
        _ = record.offsets


class Answers(BaseHTTPRequestHandler):
    """A Prometheus that knows one metric of one pod, with a sample each second."""

    def do_GET(self):
        """Answer an instant query of a range."""
        asked = parse_qs(urlparse(self.path).query)
        name, _, rest = asked["query"][0].partition("{")
        end, seconds = float(asked["time"][0]), int(rest.rpartition("[")[2].removesuffix("s]"))
        values = [[t, str(t)] for t in range(int(end - seconds), int(end) + 1)]
        found = [{"metric": {"__name__": name, "pod": "a"}, "values": values}] if name == "consume_rate" else []
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


def test_samples_are_taken_whole_in_chunks_and_once(monkeypatch):
    """Every sample of the time, none twice where chunks meet; also of further metrics; one without samples is absent."""
    monkeypatch.setattr(samples, "CHUNK_S", 10)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        (frame,) = samples.collect(url, "x", 100, 125)
        monkeypatch.setattr(samples, "METRICS", ())
        further = [list(samples.collect(url, "x", 100, 105, more)) for more in ((), ("consume_rate",))]
        server.shutdown()
    assert frame["t"].tolist() == [float(t) for t in range(100, 127)]
    assert (set(frame["metric"]), set(frame["pod"])) == ({"consume_rate"}, {"a"})
    assert [[len(frame) for frame in some] for some in further] == [[], [7]]


def test_lines_become_a_table_in_order_of_time(tmp_path, monkeypatch):
    """Also made in parts, some of which lack a number or a column; what is no column lies in detail. The lines stay."""
    rows = [
        {"t": 3, "event": "a", "owned": 1, "partitions": []},
        {"t": 1, "event": "b", "partitions": [1, 2], "more": {"x": 1}},
        {"t": 1, "event": "c", "owned": 2, "seconds": 0.5},
        {"t": 0.5, "event": "d"},
    ]
    lines = tmp_path / "lines"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns, _ = store.LINES["group_events"]
    lines_to_parquet(lines, tmp_path / "whole", columns)
    monkeypatch.setattr(store, "PART", 1)
    lines_to_parquet(lines, tmp_path / "parts", columns)
    whole, parts = (pd.read_parquet(tmp_path / name) for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(whole, parts)
    assert whole["event"].tolist() == ["d", "b", "c", "a"]
    assert [json.loads(text) for text in whole["detail"]] == [{}, {"more": {"x": 1}}, {}, {}]
    assert len(lines.read_text().splitlines()) == 4
    lines.write_text("")
    lines_to_parquet(lines, tmp_path / "empty", columns)
    assert list(pd.read_parquet(tmp_path / "empty").columns) == columns


def test_half_a_line_is_no_table(tmp_path):
    """A disk that was full leaves one; the part is then missing and the lines are kept."""
    (tmp_path / "lines").write_text('{"t": 2, "event": "b"}\n{"t": 1, "ev')
    part = Part("t", lambda into: lines_to_parquet(tmp_path / "lines", into / "t", ["t", "event"]), 5, replaces=("lines",))
    assert "t" in closed(tmp_path, part)
    assert names(tmp_path) == ["lines"]


@pytest.mark.parametrize(
    ("line", "concerns"),
    [
        ('"scaled" HPA="trial-plateau-lag-4500-aa-01/keda-hpa-consumer"', True),
        ('"scaled" HPA="trial-plateau-cpu-bb-01/keda-hpa-consumer"', False),
        ('"failed" keda-hpa-consumer: no metric for "trial-plateau-cpu-bb-01/consumer"', False),
        ('"failed to get" keda-hpa-consumer: no metric', True),
        ('"failed to get" other: no metric', False),
    ],
)
def test_a_line_of_the_controller_is_of_the_side_that_it_names(line, concerns):
    """The HPAs of a duet may have one name in two namespaces."""
    assert _concerns(line, "trial-plateau-lag-4500-aa-01", " keda-hpa-consumer:") is concerns
