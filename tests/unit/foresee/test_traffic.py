"""Traffic as Prometheus or a file saw it becomes a profile: no message and no peak is lost, and what lacks is named."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab.__main__ import main
from lab.foresee.traffic import errors, fit, of_counter, phases, total
from lab.foresee.usage import carried_rate
from lab.inputs.profile import build, load
from tests.thoroughness import examples
from tests.unit.commands.files import OBJECT, START, WORK

BEGIN, S = 1_768_464_000.0, 15.0  # 2026-01-15 08:00:00 UTC; a scrape
QUERY = 'kafka_topic_partition_current_offset{topic="orders"}'


def counter(rates, jitter=0.0, seed=1):
    """Times and counts of scrapes of a topic that gets ``rates`` messages/s, each for one scrape."""
    exact = BEGIN + S * np.arange(len(rates) + 1)
    counts = np.concatenate(([0.0], np.cumsum(np.array(rates, dtype=float) * S)))
    times = np.round(exact + np.random.default_rng(seed).uniform(-jitter, jitter, len(exact)), 3)
    return times, np.interp(times, exact, counts)


def evening(*parts):
    """Rates of ``parts``: (scrapes, messages/s)."""
    return [rate for scrapes, rate in parts for _ in range(scrapes)]


BURSTS = evening((40, 100), (8, 900), (40, 100), (1, 2_000), (20, 100), (12, 700), (30, 100))
LEVELS = st.lists(st.tuples(st.integers(1, 25), st.one_of(st.just(0.0), st.floats(0.001, 50_000))), min_size=1, max_size=20)


@settings(max_examples=examples(100))
@given(LEVELS, st.integers(2, 60), st.sampled_from([1.0, 0.1, 3.7]), st.data())
def test_no_message_and_no_peak_is_lost(parts, most, factor, data):
    """Whatever lacks or falls: the volume is within the stated error, and the peak is what two samples showed at the most."""
    times, counts = counter(evening((3, 10.0), *parts), jitter=4.0)
    fall = data.draw(st.integers(1, len(times) - 1))
    counts[fall:] -= counts[fall] * data.draw(st.sampled_from([0, 1]))
    there = [n for n in range(len(times)) if n < 2 or data.draw(st.integers(0, 9))]
    times, counts = times[there], counts[there]
    assume((np.diff(counts) >= 0).any())
    seen = of_counter(times, counts)
    profile = build(fit(seen, most, factor).to_dict(), "test")
    told = errors(seen, profile, factor)
    rates = np.diff(counts) / np.diff(times)
    assert max(one.rate for one in profile.steps) >= rates.max() * factor * (1 - 1e-9)
    assert told.peak_rate.error_percent is None or 0 <= told.peak_rate.error_percent < 0.002
    if not seen.falls:
        assert told.messages.seen == pytest.approx((counts[-1] - counts[0]) * factor)
    assert abs(profile.total - told.messages.steps) <= 1
    assert -1e-6 <= (told.messages.steps - told.messages.seen) / (1 + told.messages.seen) <= 2e-5
    assert len(profile.steps) <= max(most, 2) + 2 + 2 * len(seen.lacking())


def test_bursts_keep_their_height_and_their_length():
    """Three bursts, one of them a single scrape: the steps are those that were sent, and the guess names them."""
    seen = of_counter(*counter(BURSTS))
    profile = fit(seen, 10)
    assert [(one.at / S, round(one.rate)) for one in profile.steps] == [
        (0, 100), (40, 900), (48, 100), (88, 2_000), (89, 100), (109, 700), (121, 100)
    ]  # fmt: skip
    assert [one.phase for one in phases(profile)] == ["baseline", "burst", "lull", "burst", "lull", "burst", "lull"]
    told = errors(seen, profile)
    assert (told.burst_s.seen, told.burst_s.steps) == (12 * S, 12 * S)
    assert told.moved < 1
    single = fit(of_counter(*counter(evening((40, 100), (8, 900), (40, 100)))), 10)
    assert [one.phase for one in single.steps] == ["baseline", "spike", "drain"]
    assert str(single.begins_at) == "2026-01-15 08:00:00+00:00"


def test_fewer_steps_than_bursts_keep_the_peak_and_state_what_they_lose():
    """The longest burst is no longer what it was, and the error says so."""
    seen = of_counter(*counter(BURSTS))
    told = errors(seen, fit(seen, 3))
    assert told.peak_rate.error_percent == pytest.approx(0, abs=0.002)
    assert told.moved > 10_000
    assert told.burst_s.error_percent != 0


def test_what_differs_by_chance_alone_is_one_step():
    """A Poisson process of 200 messages/s; its highest sample stays."""
    counts = np.concatenate(([0], np.cumsum(np.random.default_rng(3).poisson(200 * S, 2_000)))).astype(float)
    steps = fit(of_counter(BEGIN + S * np.arange(2_001), counts), 200).steps
    assert len(steps) <= 20
    assert np.median([one.rate for one in steps]) == pytest.approx(200, rel=0.05)


def test_partitions_are_summed_on_their_own_clocks():
    """Two exporters at other moments; a partition that is made later counts as nothing before."""
    first = of_counter(*counter(evening((20, 100), (4, 500), (20, 100))))
    times, counts = counter(evening((30, 50)))
    later = of_counter(times + 7 + 10 * S, counts)
    seen = total([first, later])
    assert seen.counts[-1] == pytest.approx(first.counts[-1] + later.counts[-1])
    assert seen.peak == pytest.approx(550)
    assert fit(seen, 50).steps[0].rate == pytest.approx(100, rel=1e-4)


@pytest.fixture
def asked(tmp_path, capsys):
    """A function that has ``profile`` read these lines of a file: exit code, standard output, lines of standard error."""

    def run(lines, *flags):
        (tmp_path / "seen.csv").write_text("\n".join(lines))
        code = main(["profile", f"--csv={tmp_path / 'seen.csv'}", *flags])
        said = capsys.readouterr()
        return code, said.out, [line.removeprefix(f"elastic-lab: {tmp_path}/") for line in said.err.splitlines()]

    return run


def rows(rates, head="time,rate", begin=BEGIN, form="{:.3f}"):
    """A file of ``rates``, one a scrape."""
    return [head, *(f"{form.format(begin + S * n)},{rate}" for n, rate in enumerate(rates))]


TIMES, COUNTS = counter(BURSTS)
MESSAGES = np.interp(np.arange(0, COUNTS[-1], 10), COUNTS, TIMES)  # each tenth


@pytest.mark.parametrize(
    ("lines", "flags"),
    [
        (rows(BURSTS), []),
        (["counter,time", *(f"{count},{t}" for t, count in zip(TIMES, COUNTS, strict=True))], []),
        (["time_ms", *(f"{t * 1000:.0f}" for t in MESSAGES)], ["--factor=10"]),
    ],
    ids=["rate", "counter", "messages"],
)
def test_a_file_of_rates_of_a_counter_or_of_messages_says_the_same(asked, lines, flags):
    """The peak, to the messages that a second has."""
    code, out, _ = asked(lines, *flags)
    peak = max(step["rate"] for step in yaml.safe_load(out)["steps"])
    assert (code, peak) == (0, pytest.approx(2_000, rel=0.15))


def test_a_profile_of_what_was_seen_is_simulated_and_tuned(asked, tmp_path, capsys):
    """Its file begins with the errors, and is one that the other commands read."""
    file = tmp_path / "evening.yaml"
    code, out, _ = asked(rows(BURSTS), f"--output={file}", "--factor=0.5")
    assert (code, "peak (messages/s)" in out, "rates x 0.5" in out) == (0, True, True)
    assert file.read_text().startswith("# " + out.splitlines()[0])
    assert load(file).steps[0].rate == 50
    for words in (["simulate", "--fail-on=nothing"], ["tune", "--candidates=5", "--processes=1", "--fail-on=nothing"]):
        assert main([*words, OBJECT, WORK, START, f"--profile={file}"]) == 0
        assert "50 to 1,000 messages/s" in capsys.readouterr().out


def test_what_lacks_is_named(asked):
    """A gap, a NaN, rows that are not in order or there twice: a line each, and the gap is marked in the profile."""
    lines = rows([*BURSTS[:60], *["nan"] * 6, *BURSTS[66:]])
    code, out, _ = asked([lines[0], *reversed(lines[1:]), lines[5]])
    assert code == 0
    assert "# note: rows that are not in order of time were sorted\n" in out
    assert "# note: 1 row with the time of another row: one of each is taken\n" in out
    assert "# note: 6 samples without a number: no data there\n" in out
    assert "# note: no data from 2026-01-15 08:15:00 to 2026-01-15 08:16:30 UTC, for 90 s: 100 messages/s are assumed\n" in out
    assert "phase: lull}  # no data\n" in out


def test_a_counter_that_falls_is_no_traffic(asked):
    """It was made anew: the sample is named, and neither its old height nor a drop is taken for messages."""
    times, counts = counter(evening((60, 100)))
    counts[30:] -= counts[30]
    code, out, _ = asked(["time,counter", *(f"{t},{count}" for t, count in zip(times, counts, strict=True))])
    assert "# note: the counter falls 1 time, first at 2026-01-15 08:07:30 UTC: that sample is no data" in out
    assert (code, [step["rate"] for step in yaml.safe_load(out)["steps"]]) == (0, [100])


def test_an_exporter_that_is_slower_than_its_scrapes_has_a_line(asked):
    """Its counter stands still at every other scrape, and moves twice as much at the next."""
    assert "# note: nothing came in 50% of the samples, a few at a time: perhaps the exporter" in asked(rows([0, 200] * 60))[1]


def test_all_that_is_wrong_in_a_file_is_said_at_once(asked):
    """Text, a negative rate, a decimal comma, a time without a zone, two values of a time."""
    code, out, err = asked([*rows(BURSTS), "soon,3", f"{BEGIN + 9e5},-3", "1,2,5", "2026-01-15T08:00:00,1", f"{BEGIN},7"])
    last = len(BURSTS) + 1
    assert (code, out) == (2, "")
    assert [line.partition(" is not allowed")[0] for line in err] == [
        f"seen.csv: line {last + 1}: time: 'soon'",
        f"seen.csv: line {last + 2}: rate: '-3'",
        f"seen.csv: line {last + 3}: '1,2,5'",
        f"seen.csv: line {last + 4}: time: '2026-01-15T08:00:00'",
        "seen.csv: 2026-01-15 08:00:00 UTC: rate: '100 and 7'",
    ]


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["time,per_minute", "1,2"], "seen.csv: line 1: 'time,per_minute' is not allowed; allowed: time,rate (messages/s)"),
        ([], "seen.csv: line 1: '' is not allowed; allowed: time,rate"),
        (["time,rate", "1,2"], "seen.csv: rate: '1 sample of use' is not allowed; allowed: two at least"),
        (["time,counter", "1,9", "2,3"], "seen.csv: counter: '2 samples of use' is not allowed; allowed: two at least"),
        (["time", "1"], "seen.csv: time: '1 message in 0 s' is not allowed; allowed: two at least"),
        (rows(BURSTS, begin=BEGIN * 1000), "seen.csv: time: 1768464000000.0 is not allowed; did you mean 1768464000.000?"),
        (["time,rate", "0,1", "15,1", "30,1", "900,1"], "seen.csv: no data: '14 min 15 s of 15 min 15 s, as from"),
        (["time,rate", "0,1", "700000,1"], "seen.csv: time: '388 h 53 min' is not allowed; allowed: at most 168 h 00 min"),
        (rows([2e6, 1]), "elastic-lab: command line: --factor: 1 is not allowed; did you mean 0.5?"),
    ],
)
def test_what_makes_no_profile_is_one_line(asked, lines, line):
    """Wrong units, too little, too long, too many gaps, and a peak that no profile may have."""
    code, _, err = asked(lines)
    assert (code, len(err)) == (2, 1)
    assert line in err[0]


def test_a_peak_that_these_cores_do_not_carry_has_a_factor(asked, monkeypatch):
    """For a trial: the model takes any rate. The factor brings it below what they carry."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    _, out, _ = asked(rows([100, 100, 400_000, 100]))
    (note,) = (line for line in out.splitlines() if "--factor" in line)
    factor = float(note.partition("--factor ")[2].partition(",")[0])
    assert 0.9 < 400_000 * factor / carried_rate(2) <= 1
    assert "--factor" not in asked(rows([100, 100, 400_000, 100]), f"--factor={factor}")[1]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "--query: missing"),
        ('sum(kafka_consumergroup_lag{topic="orders"})', "a lag is what waits"),
        ("rate(kafka_server_brokertopicmetrics_bytesin_total[1m])", "bytes are no messages"),
        ("kafka_consumergroup_current_offset", "commits are what the group took"),
        (
            "increase(kafka_topic_partition_oldest_offset[5m])",
            "that is where a log begins; that is of a window, rate() of a second",
        ),
        ("orders:arrivals", "--values: missing; allowed: rate or counter: orders:arrivals does not tell"),
    ],
)
def test_a_query_that_is_no_traffic_is_refused(capsys, query, why):
    """Before Prometheus is asked."""
    assert main(["profile", "--prometheus=http://127.0.0.1:1", f"--query={query}"]) == 2
    assert why in capsys.readouterr().err


@pytest.fixture
def answered(monkeypatch):
    """A function that makes a Prometheus of these series, (labels, times, values); it gives what was asked."""

    def make(*series):
        queries = []

        class Made:
            def custom_query(self, query, params):
                queries.append((query, params["time"]))
                pairs = ((of, zip(times, values, strict=True)) for of, times, values in series)
                return [{"metric": of, "values": [[t, str(value)] for t, value in some]} for of, some in pairs]

        monkeypatch.setattr("prometheus_api_client.PrometheusConnect", lambda **_: Made())
        return queries

    return make


def profiled(capsys, *flags):
    """What ``profile --json`` says."""
    assert main(["profile", "--prometheus=http://127.0.0.1:1", "--to=2026-01-15T09:00:00Z", *flags, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_counter_of_prometheus_is_asked_for_raw_samples(capsys, answered):
    """Of two exporters of a partition one counts; two partitions are summed."""
    times, counts = counter(BURSTS)
    queries = answered(
        ({"partition": "0", "topic": "orders", "pod": "a"}, times, counts),
        ({"partition": "0", "topic": "orders", "pod": "b"}, times[:90] + 7, np.interp(times[:90] + 3, times, counts)),
        ({"partition": "1", "topic": "orders", "pod": "a"}, times, counts),
        ({"partition": "2", "topic": "orders", "pod": "a"}, times, [float("nan")] * len(times)),
    )
    content = profiled(capsys, f"--query={QUERY}", "--range=1h")
    assert queries == [(f"{QUERY}[3600s]", BEGIN + 3600)]
    assert (content["series"], content["kept"]["peak_rate"]["seen"]) == (2, pytest.approx(4_000))
    assert content["kept"]["messages"]["seen"] == pytest.approx(2 * counts[-1])
    assert f"{len(times)} samples without a number: no data there" in content["notes"]
    assert "1 of 3 series have no two samples of use, and count as nothing" in content["notes"]


def test_an_expression_is_asked_for_an_answer_every_15_s(capsys, answered):
    """A rate is blurred by its own window, which a line says; what is before the first answer is no data."""
    times, _ = counter(BURSTS)
    queries = answered(({}, times[:-1] + 1800, BURSTS))
    content = profiled(capsys, "--query=sum(rate(orders_total[2m]))", "--range=1h")
    assert queries[0][0] == "(sum(rate(orders_total[2m])))[3600s:15s]"
    assert content["kept"]["peak_rate"]["seen"] == 2_000
    assert "a burst shorter than 120 s keeps its messages, and not its height" in content["notes"]
    assert "no data before 2026-01-15 08:30:00 UTC: the profile begins there" in content["notes"]
