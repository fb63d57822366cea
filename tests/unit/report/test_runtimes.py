"""Two runtimes side by side: what is paired, what is said of the pairs, and a page that calls no one."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lab.host.machine import Machine
from lab.report import blocks, runtimecharts, runtimepage, trust
from lab.report.__main__ import main
from lab.report.look import png
from lab.report.runtimes import COLD, DEPTH, INTEGRITY, LOST, REACTION, START, TOTAL, UP, Comparison, Decisions, compare, ratio
from tests.unit.measure.built import sealed
from tests.unit.report.runtime_records import VERSIONS, both, spike, stepped
from tests.unit.report.test_tables import Tags


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of results, of the binary and of the kind runtime."""
    return both(tmp_path_factory.mktemp("sides"))


@pytest.fixture(scope="module")
def comparison(sides: tuple[Path, Path]) -> Comparison:
    """Those folders paired; the order in which they are given is not that of the columns."""
    return compare(sides[1], sides[0])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one trial under an autoscaler and one of decreed steps, as the command line writes it."""
    folder = tmp_path_factory.mktemp("page")
    for runtime, slow in (("binary", 1.0), ("kind", 1.4)):
        spike(folder / runtime, runtime, slow=slow)
        stepped(folder / runtime, runtime, depth=0.1 * slow)
    page = folder / "deep" / "compare.html"
    assert main(["compare", str(folder / "binary"), str(folder / "kind"), "--output", str(page)]) == 0
    return page


def shown(comparison: Comparison, heading: str) -> str:
    """The sentences of one topic."""
    return "\n".join(next(topic.show for topic in trust.topics(comparison) if topic.heading == heading))


def pair_of(tmp_path: Path) -> Comparison:
    """The folders ``binary`` and ``kind`` compared."""
    return compare(tmp_path / "binary", tmp_path / "kind")


def test_equal_inputs_are_paired(comparison: Comparison) -> None:
    """But for the runtime, and repetitions are runs of one side; what else tells trials apart is in their names."""
    assert comparison.runtimes == ("binary", "kind")
    assert [pair.name for pair in comparison.pairs] == [
        "saturate, bystanders",
        "saturate, up-and-down (balancer consumer)",
        "saturate, up-and-down (balancer cooperative-sticky)",
        "saturate, up-and-down (balancer range)",
        "step-10x, lag (wake off)",
        "step-10x, lag (wake on)",
    ]
    assert {runtime: len(runs) for runtime, runs in comparison.pairs[-1].runs.items()} == {"binary": 2, "kind": 2}
    assert [record.inputs.repetition for record in comparison.pairs[-1].runs["kind"]] == [1, 2]


def test_what_is_not_paired_is_named(comparison: Comparison) -> None:
    """A record without a counterpart, and one that was interrupted."""
    assert [len(ids) for ids in comparison.alone.values()] == [1, 0]
    (unfinished,) = comparison.unfinished
    assert unfinished.endswith("(kind): interrupted")


def test_figures_are_those_of_the_measures(comparison: Comparison) -> None:
    """The median over runs on each side; pods that start more slowly are seen in the cold start and the reaction."""
    pair = comparison.pairs[-1]
    start, total = pair.row(COLD, START), pair.row(REACTION, TOTAL)
    assert start is not None
    assert total is not None
    assert (start.middle("binary"), start.middle("kind")) == pytest.approx((1.19, 1.67), abs=0.01)
    assert ratio(total.middle("binary"), total.middle("kind")) == pytest.approx(1.27, abs=0.01)
    parts = [row.middle("kind") for row in pair.rows if row.part == REACTION and row.name != TOTAL]
    assert math.fsum(part for part in parts if part is not None) == pytest.approx(total.middle("kind"))


def test_a_missing_part_is_not_zero(tmp_path: Path) -> None:
    """One side without a ledger and without samples: n/a with its reason, and no chart; the other side keeps its values."""
    spike(tmp_path / "binary", "binary")
    spike(tmp_path / "kind", "kind", without=("reconciliation", "samples"))
    comparison = pair_of(tmp_path)
    (pair,) = comparison.pairs
    lost = pair.row(INTEGRITY, LOST)
    assert lost is not None
    assert lost.values == {"binary": (0.0,), "kind": ()}
    assert pair.lacking[REACTION] == {"kind": f"{pair.first['kind'].folder.name} has no samples"}
    text = blocks.text(runtimepage.document(comparison, "x"))
    assert "| lost or unseen | 0 | n/a | n/a | n/a |" in text
    assert "0 → n/a" in text
    assert "on both runtimes: n/a, " in text
    assert "No pair has data for this part" in shown(comparison, "Integrity")


def test_steps_nobody_decreed_have_no_dip(comparison: Comparison) -> None:
    """Under an autoscaler the load changes with the replicas: the part is n/a, in a trial of decreed steps it is there."""
    assert comparison.pairs[-1].lacking[UP] == dict.fromkeys(("binary", "kind"), "no step was decreed")
    assert comparison.pairs[3].row(UP, DEPTH) is not None


def test_equal_sequences_are_said_to_be(comparison: Comparison) -> None:
    """And different ones are both written out."""
    said = shown(comparison, "Scaling decisions")
    assert said.startswith("Same replica sequence in 1 of 2 autoscaled trials.")
    assert "step-10x, lag (wake on): same, 2 → 4 → 8 → 4 → 2; step for step at most" in said
    assert (
        "step-10x, lag (wake off): other steps, same most replicas; "
        "binary 2 → 4 → 8 → 4 → 2, kind 2 → 4 → 6 → 8 → 4 → 2." in said
    )


def decided(*replicas: int) -> Decisions:
    """A sequence of these replicas."""
    return Decisions(replicas, tuple(map(float, range(len(replicas) - 1))))


@pytest.mark.parametrize(
    ("one", "two", "word"),
    [
        ([decided(4, 8, 4)], [decided(4, 8, 4)], trust.SAME),
        ([decided(4)], [decided(4)], trust.SAME),
        ([decided(4, 8, 4)], [decided(4, 8, 6, 4)], trust.SAME_OUT),
        ([decided(4, 8)], [decided(4, 6, 8)], trust.SAME_TOP),
        ([decided(4, 8)], [decided(4, 9)], trust.DIFFERENT),
        ([decided(4, 8), decided(4, 9)], [decided(4, 8)], trust.VARIES),
        ([], [decided(4)], trust.NO_SEQUENCE),
    ],
)
def test_sequences_agree_by_degrees(one: list[Decisions], two: list[Decisions], word: str) -> None:
    """From the very same down to another maximum; runs of one runtime that differ blame no runtime."""
    assert trust.agreement(one, two) == trust.agreement(two, one) == word


@given(st.lists(st.lists(st.integers(1, 24), min_size=1, max_size=6).map(lambda counts: decided(*counts)), max_size=3))
def test_a_side_agrees_with_itself(runs: list[Decisions]) -> None:
    """The same runs on both sides are the same, or vary, or are none: never different."""
    word = trust.agreement(runs, runs)
    assert word == (trust.NO_SEQUENCE if not runs else trust.SAME if len({run.replicas for run in runs}) == 1 else trust.VARIES)


def test_factors_and_verdicts_are_computed(comparison: Comparison) -> None:
    """Cold start as a factor, dips by the objective's verdict and their order, messages by their counts."""
    assert "takes 1.39 times (1.38 to 1.39) as long on kind as on binary (2 trials" in shown(comparison, "Cold start")
    dips = shown(comparison, "Rebalance and dip")
    assert "has the same verdict on both runtimes in 3 of 3 trials" in dips
    assert "(balancer range): worst step 48 % on binary, 67 % on kind; breached on both." in dips
    assert "the 3 trials stand in the same order on both" in dips
    assert "saturate, bystanders: pods that start but never join cost the median step" in dips
    assert "2 of 2 trials have none on either runtime" in shown(comparison, "Integrity")


def test_a_verdict_that_turns_and_messages_that_repeat_are_told(tmp_path: Path) -> None:
    """A dip that only one runtime holds, an order that is another, and messages doubled on one side."""
    for runtime, depths in (("binary", (0.1, 0.05)), ("kind", (0.1, 0.3))):
        for balancer, depth in zip(("range", "consumer"), depths, strict=True):
            stepped(tmp_path / runtime, runtime, depth=depth, balancer=balancer)
        spike(tmp_path / runtime, runtime, doubled=0 if runtime == "binary" else 7)
    comparison = pair_of(tmp_path)
    dips = shown(comparison, "Rebalance and dip")
    assert "the same verdict on both runtimes in 1 of 2 trials" in dips
    assert "held on binary, breached on kind" in dips
    assert "the order differs, for trials at most" in dips
    assert "processed more than once: 0 of 1 trials have none on either runtime; step-10x, lag: 0 on binary, 7 on kind." in (
        shown(comparison, "Integrity")
    )


def test_what_runs_can_tell_is_said(tmp_path: Path) -> None:
    """One run a side tells no difference from the spread of runs."""
    for runtime in ("binary", "kind"):
        spike(tmp_path / runtime, runtime)
    assert "can't be told from the spread" in trust.told_by_runs(pair_of(tmp_path))
    for runtime in ("binary", "kind"):
        spike(tmp_path / runtime, runtime, repetition=2, slow=1.1)
    assert re.search(r"there 0 of \d+ figures lie apart in every run", trust.told_by_runs(pair_of(tmp_path)))


def test_versions_that_differ_are_listed(tmp_path: Path) -> None:
    """The one that differs and the one that one side does not have."""
    spike(tmp_path / "binary", "binary")
    spike(tmp_path / "kind", "kind", versions=VERSIONS | {"kafka": "4.4.0", "containerd": "2.1.3", "keda": "v2.21.0"})
    text = blocks.text(runtimepage.document(pair_of(tmp_path), "x"))
    assert "3 of 5 versions are equal on both runtimes; different, or known on one side only: kafka, containerd." in text
    assert "| kafka | 4.3.1 | 4.4.0 | differs |" in text
    assert "| keda | 2.21.0 | v2.21.0 | same |" in text
    assert "| containerd | n/a | 2.1.3 | differs |" in text
    assert "| cpu | AMD EPYC | AMD EPYC | same |" in text


def test_different_machines_are_no_one_machine() -> None:
    """Ratios of records from two machines are said to mix."""
    one, two = Machine("A", 2, 8.0, "6", (0, 0, 0)), Machine("B", 4, 8.0, "6", (0, 0, 0))
    assert trust.shared_machine({"binary": [one], "kind": [two]}).startswith("The records name different machines")
    assert "(A, 2 cores)" in trust.shared_machine({"binary": [one], "kind": [one]})


def test_the_page_fetches_nothing(written: Path) -> None:
    """No address of another host, no script; every image is inside, and the tags are closed."""
    page = written.read_text()
    assert not re.search(r"https?://|<script|<link|@import", page)
    assert "Content-Security-Policy" in page
    sources = re.findall(r'src="([^"]{30})', page)
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert len(page) < 3_000_000
    Tags().feed(page)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(re.findall(r' id="([^"]*)"', page))


def test_every_pair_is_on_the_page(written: Path) -> None:
    """And in the Markdown beside it, which has the same tables and no image."""
    page, twin = written.read_text(), written.with_suffix(".md").read_text()
    names = ["saturate, up-and-down", "step-10x, lag"]
    for name in names:
        assert f">{name}</h2>" in page
        assert f"## {name}\n" in twin
    assert "How far the embedded default can be trusted" in twin
    assert "data:image" not in twin
    assert page.count("<table") == sum(line.startswith("|--") for line in twin.splitlines())
    assert page.count("<img") == 2 + len(names) + 2


def test_a_charts_own_gap_is_an_error_with_words(tmp_path: Path) -> None:
    """No reaction and no ratio to draw: the chart says so, and the page shows the words."""
    for runtime in ("binary", "kind"):
        spike(tmp_path / runtime, runtime, without=("transitions", "samples", "receipts", "rates", "group_events"))
    comparison = pair_of(tmp_path)
    with pytest.raises(ValueError, match="no pair has a reaction"):
        runtimecharts.reactions(comparison)
    with pytest.raises(ValueError, match="no figure has a ratio"):
        runtimecharts.ratios(comparison)
    assert "Reaction by part on both runtimes: n/a, no pair has a reaction." in blocks.text(
        runtimepage.document(comparison, "x")
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What ``compare`` says on bad input: one line, and exit code 2."""
    assert main(["compare", *map(str, arguments)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_folder_without_records_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder is named, also when all that it holds is unfinished."""
    spike(tmp_path / "binary", "binary")
    spike(tmp_path / "faulty", "kind", ended="fault: Kafka died")
    assert f"{tmp_path / 'none'}: records: 'none'" in refused(capsys, tmp_path / "binary", tmp_path / "none")
    assert f"{tmp_path / 'faulty'}: records: '1 unfinished'" in refused(capsys, tmp_path / "binary", tmp_path / "faulty")


def test_one_runtime_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In both folders, or in one folder beside another."""
    for name in ("a", "b"):
        spike(tmp_path / name, "binary")
    said = refused(capsys, tmp_path / "a", tmp_path / "b")
    assert f"{tmp_path / 'b'}: runtime: 'binary' is not allowed; allowed: records of another runtime" in said
    spike(tmp_path / "b", "kind")
    said = refused(capsys, tmp_path / "a", tmp_path / "b")
    assert f"{tmp_path / 'b'}: runtime: 'binary, kind' is not allowed; allowed: records of one runtime" in said


def test_no_equal_pair_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two seeds have nothing to compare."""
    spike(tmp_path / "binary", "binary", seed=1)
    spike(tmp_path / "kind", "kind", seed=2)
    assert f"{tmp_path / 'kind'}: records: '1 without a counterpart'" in refused(capsys, tmp_path / "binary", tmp_path / "kind")


@pytest.mark.parametrize("content", ["{", json.dumps({"id": "x"}), json.dumps([1])])
def test_a_record_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    """The file is named."""
    folder = tmp_path / "records" / "x"
    folder.mkdir(parents=True)
    (folder / "trial.json").write_text(content)
    assert str(folder / "trial.json") in refused(capsys, tmp_path, tmp_path)


def test_only_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no .html would be overwritten by its own twin."""
    assert "a file whose name ends in .html" in refused(capsys, tmp_path, tmp_path, "--output", tmp_path / "x.md")


@given(st.none() | st.floats(), st.none() | st.floats())
def test_a_ratio_is_finite_or_none(one: float | None, two: float | None) -> None:
    """Nothing is divided by 0, by what is missing, or by infinity."""
    found = ratio(one, two)
    assert found is None or (one is not None and two is not None and 0 < one < math.inf)


@given(st.text(), st.text())
def test_texts_are_escaped(words: str, anchor: str) -> None:
    """Whatever a name holds, the page has the tags it was given and no others."""
    page = blocks.html("x", [blocks.Heading(2, words, anchor), blocks.Text(words, words), blocks.Facts((words,))])
    assert page.count("<h2") == page.count("<li>") == 1


def test_images_are_packed_without_a_pixel_changed(comparison: Comparison) -> None:
    """Smaller, and the same picture."""
    image = png(runtimecharts.ratios(comparison), 1)
    small = runtimepage._small(image)
    assert len(small) < len(image)
    one, two = (Image.open(BytesIO(data)).convert("RGBA").tobytes() for data in (image, small))
    assert one == two


def test_what_is_left_of_a_lag_is_not_lost(tmp_path: Path) -> None:
    """A trial that ends with its traffic has messages nobody processed yet: that is told, not counted as lost."""
    pairs = compare(*both(tmp_path)).pairs
    drained = next(pair for pair in pairs if pair.autoscaled)
    assert drained.withheld(INTEGRITY, LOST) is None
    for record in (run for runs in drained.runs.values() for run in runs):
        sealed(record.folder, inputs=replace(record.inputs, until="replayed"))
    again = compare(tmp_path / "binary", tmp_path / "kind").pairs
    (replayed,) = (pair for pair in again if pair.inputs.until == "replayed")
    assert replayed.withheld(INTEGRITY, LOST) == "not drained"
