"""The page of scales, its curves, the command that makes both, and the mark of a claim that is not shown at real time."""

import json

import pytest

from lab import __main__ as program
from lab import paths
from lab.commands import scale as command
from lab.errors import BAD_INPUT, Breach, NoData
from lab.judge.gates import judge_gates
from lab.judge.quantity import Quantity
from lab.measure.lag import peak_lag
from lab.measure.outcome import committed, read
from lab.measure.similarity import FAITHFUL, NO_DATA, UNFAITHFUL
from lab.record.store import Record
from lab.report import drawing, evidence, page, scalepage
from lab.report.evidence import Evidence
from lab.report.session import Session
from lab.report.summary import Summary
from lab.report.tables import verdict_table
from tests.unit.measure import similar
from tests.unit.measure.test_outcome import OUTCOME, RUNS

SCALES = {"quick": 30, "medium": 15, "real": 1}


def sessions(results, blocks, **how):
    """A/A duets of a plateau at these scales under ``results``; ``how`` is that of the compressed ones."""
    for scale, factor in SCALES.items():
        for block in range(1, blocks + 1):
            for side in "ab":
                folder = results / "records" / f"plateau-{scale}-{block}-{side}"
                similar.write(folder, factor, scale=scale, block=block, side=side, **(how if factor > 1 else {}))
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three blocks at each of three scales, with a peak that is half as high again where time is compressed."""
    return sessions(tmp_path_factory.mktemp("results"), 3, peak=1.5)


@pytest.fixture
def undrawn(monkeypatch):
    """No curves: drawing takes longest."""
    monkeypatch.setattr(drawing, "svg", lambda _: "<svg/>")


def test_the_committed_page_is_that_of_the_numbers():
    """docs/scale-measured.md is what the committed outcome gives."""
    text = (paths.PROJECT / "docs" / "scale-measured.md").read_text()
    if text != scalepage.page(committed()):
        pytest.fail("docs/scale-measured.md differs from lab/measure/similarity.yaml: elastic-lab scale RESULTS --publish")


def test_the_page_shows_each_number_with_its_interval_and_what_it_is_worth():
    """In the column of its scale, whose head has n and the confidence; each profile has its curves and its sessions."""
    text = scalepage.page(OUTCOME)
    assert "| measure | unit | real (n = 0) | quick (n = 6, 93 %) |" in text
    assert "| peak lag | messages | 90,000 | ✔ +2 % (-1 to +5) |" in text
    assert "![plateau: lag, replicas and throughput at each scale over real time](img/scale-plateau.svg)" in text
    assert RUNS.machine in text


def test_the_command_finds_the_error_of_each_scale(results, capsys):
    """It writes numbers, page and curves, and says where."""
    assert program.main(["scale", str(results)]) == 0
    printed = capsys.readouterr().out
    outcome = read(results / "scale" / "similarity.yaml")
    assert printed.startswith(scalepage.page(outcome))
    assert (results / "scale" / "scale-measured.md").read_text() == scalepage.page(outcome)
    assert (results / "scale" / "img" / "scale-plateau.svg").read_text().startswith("<svg")
    assert [(one.scale, one.blocks, one.left_out) for one in outcome.runs] == [
        ("quick", 3, 0),
        ("medium", 3, 0),
        ("real", 3, 0),
    ]
    assert {one.commit for one in outcome.runs} == {"0123456789ab"}
    found = {(row.name, row.scale): row for row in outcome.rows}
    for scale in ("quick", "medium"):
        peak, pods = found["peak lag", scale], found["most replicas", scale]
        assert (peak.verdict, pods.verdict) == (UNFAITHFUL, FAITHFUL)
        assert peak.estimate == pytest.approx(0.5, abs=0.01)
        assert (peak.n, peak.reference_n, peak.confidence) == (3, 3, pytest.approx(0.9))
    assert not outcome.faithful("lab.measure.lag.peak_lag", "quick")
    assert outcome.faithful("lab.measure.scaling.ScaleEvents.most_replicas", "quick")


def test_another_reference_may_be_looked_at_and_not_published(results, capsys, undrawn):
    """Medium is not real time, whatever agrees with it."""
    assert program.main(["scale", str(results), "--reference", "medium"]) == 0
    assert "quick (n = 3" in capsys.readouterr().out
    assert program.main(["scale", str(results), "--reference", "medium", "--publish"]) == BAD_INPUT
    assert program.main(["scale", str(results), "--with-invalid", "--publish"]) == BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 2


def test_what_can_not_be_compared_is_refused(results, tmp_path, capsys):
    """A folder without records, and a reference without runs, in one line each."""
    assert program.main(["scale", str(tmp_path)]) == BAD_INPUT
    assert program.main(["scale", str(results), "--reference", "close"]) == BAD_INPUT
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "plateau at medium, plateau at quick, plateau at real" in lines[1]


@pytest.mark.parametrize(("speed", "warned"), [(290_000, False), (200_000, True)])
def test_a_machine_that_was_slower_at_one_scale_is_named(tmp_path, undrawn, caplog, speed, warned):
    """Its part of the error can't be told. A difference of less than a tenth gets no warning."""
    results = sessions(tmp_path, 1)
    for file in results.glob("records/*/trial.json"):
        content = json.loads(file.read_text())
        content["machine"]["speed"] = speed if "quick" in file.parent.name else 310_000
        file.write_text(json.dumps(content))
    assert program.main(["scale", str(results)]) == 0
    assert ("plateau: the machine's speed differed: quick 200, medium 310, real 310 thousand" in caplog.text) == warned
    (quick,) = (one for one in read(results / "scale" / "similarity.yaml").runs if one.scale == "quick")
    assert quick.machine.endswith(f"speed {speed // 1000} thousand events/s")


def test_a_block_counts_with_all_its_sides(tmp_path, undrawn):
    """One whose other side was interrupted is left out."""
    results = sessions(tmp_path, 2)
    file = results / "records" / "plateau-quick-2-b" / "trial.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"ended": "interrupted"}))
    assert program.main(["scale", str(results)]) == 0
    runs = {one.scale: one.blocks for one in read(results / "scale" / "similarity.yaml").runs}
    assert runs == {"quick": 1, "medium": 2, "real": 2}


def test_an_invalid_trial_is_left_out_with_its_block(tmp_path, monkeypatch, undrawn):
    """And counted; --with-invalid takes it."""
    results = sessions(tmp_path, 2)
    bad = judge_gates(lambda name: Quantity(name, "x", 99.0))
    monkeypatch.setattr(command, "judge_validity", lambda record: bad if record.name == "plateau-quick-2-b" else ())
    assert program.main(["scale", str(results)]) == 0
    first = read(results / "scale" / "similarity.yaml").runs[0]
    assert (first.scale, first.blocks, first.left_out) == ("quick", 1, 2)
    assert program.main(["scale", str(results), "--with-invalid"]) == 0
    assert read(results / "scale" / "similarity.yaml").runs[0].blocks == 2


def test_the_curves_of_a_similar_record_lie_on_each_other(tmp_path):
    """Lag and replicas over real time, one line for each scale."""
    runs = {scale: [similar.write(tmp_path / scale, factor, scale=scale)] for scale, factor in SCALES.items()}
    curves = {scale: scalepage._median_curves(scale, found) for scale, found in runs.items()}
    for panel in ("lag", "replicas"):
        one, other = (curves[scale][curves[scale]["panel"] == panel] for scale in ("quick", "real"))
        assert one["value"].max() == pytest.approx(other["value"].max(), rel=0.02)
        assert one["t"].max() == pytest.approx(other["t"].max(), rel=0.03)
    drawn = drawing.svg(scalepage.overlay("plateau", runs))
    assert all(f"{scale} (n = 1)" in drawn for scale in SCALES)


def test_a_record_without_curves_says_so(tmp_path):
    """It has nothing to lay over."""
    record = similar.write(tmp_path / "one", 30)
    (record.folder / "rates.parquet").unlink()
    with pytest.raises(NoData):
        scalepage.overlay("plateau", {"quick": [Record(record.folder)]})


@pytest.mark.parametrize(("factor", "mark"), [(30, "not shown to hold at real time: quick"), (1, "")])
def test_a_claim_is_marked_in_the_verdicts_the_summary_and_the_report(tmp_path, monkeypatch, factor, mark):
    """Where its measure is not shown to be faithful at the scale of its trial."""
    monkeypatch.setattr(evidence, "attach", lambda *_: None)
    monkeypatch.setattr(evidence, "committed", lambda: OUTCOME)
    session, record = Session(), similar.write(tmp_path / "one", factor, scale="quick" if factor > 1 else "real")
    with Evidence("scale", session).of(record) as claim:
        claim(peak_lag(record) >= 0, "there was lag")
        claim(peak_lag(record) >= 0, "there was lag", kind="invariant")
    assert [row["real_time"] for row in session.rows] == [mark, ""]
    summary = Summary(session.content(tmp_path))
    for text in (page.markdown(summary), page.html(summary), verdict_table(session.rows).html):
        assert ("real time: not shown" in text.lower()) is bool(mark)


def test_what_has_no_number_is_worth_nothing_at_any_time(tmp_path, monkeypatch):
    """A claim without data has no mark: its reason stands there already."""
    monkeypatch.setattr(evidence, "attach", lambda *_: None)
    session, record = Session(), similar.write(tmp_path / "one", 30, scale="quick")
    with pytest.raises(Breach, match="no sample"), Evidence("scale", session).of(record) as claim:
        claim(Quantity("lag", "messages", None, "no sample") >= 0, "there was lag")
    assert session.rows[0]["real_time"] == ""


def test_a_row_without_data_has_no_cell():
    """And one that has none at any scale has no row."""
    assert "never" not in scalepage.page(OUTCOME)
    assert scalepage.MARKS[NO_DATA] == ""
