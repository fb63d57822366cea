"""Two runtimes side by side: what is paired, every figure of a pair, and a page that calls no one."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.report import runtimepage
from lab.report.__main__ import main
from lab.report.runtimes import LOST, Comparison, Pair, Row, compare, ratio
from lab.report.tables import render
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


def row(pair: Pair, name: str) -> Row:
    """The figure ``name`` of a pair."""
    return next(row for row in pair.rows if row.name == name)


def text_of(tmp_path: Path) -> str:
    """The Markdown of the folders ``binary`` and ``kind`` compared."""
    return render("runtimes.md", **runtimepage.document(compare(tmp_path / "binary", tmp_path / "kind")))


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
    start, total = row(pair, "start, created to subscribed (s)"), row(pair, "total (s)")
    assert (start.middle("binary"), start.middle("kind")) == pytest.approx((1.19, 1.67), abs=0.01)
    assert ratio(total.middle("binary"), total.middle("kind")) == pytest.approx(1.27, abs=0.01)
    parts = [one.middle("kind") for one in pair.rows if one.part == "Reaction" and one is not total]
    assert math.fsum(part for part in parts if part is not None) == pytest.approx(total.middle("kind"))


def test_a_missing_part_is_not_zero(tmp_path: Path) -> None:
    """One side without a ledger and without samples: n/a with its reason; the other side keeps its values."""
    spike(tmp_path / "binary", "binary")
    kind = spike(tmp_path / "kind", "kind", without=("reconciliation", "samples"))
    (pair,) = compare(tmp_path / "binary", tmp_path / "kind").pairs
    assert row(pair, LOST).values == {"binary": (0.0,), "kind": ()}
    assert pair.lacking["Reaction"] == {"kind": f"{kind.folder.name} has no samples"}
    text = text_of(tmp_path)
    assert "| Integrity (messages) | lost or unseen | 0 | n/a | n/a |" in text
    assert f"| Reaction | no data: kind: {kind.folder.name} has no samples |" in text


def test_steps_nobody_decreed_have_no_dip(comparison: Comparison) -> None:
    """Under an autoscaler the load changes with the replicas: there is no dip; in a trial of decreed steps there is."""
    assert comparison.pairs[-1].lacking["Dip, scale-up"] == dict.fromkeys(("binary", "kind"), "no up step was decreed")
    assert any(one.part == "Dip, scale-up" for one in comparison.pairs[3].rows)


def test_what_a_trial_was_given_is_no_result(comparison: Comparison) -> None:
    """The replicas of decreed steps and their backlog are not shown as if they had been found."""
    decreed, scaled = comparison.pairs[3], comparison.pairs[-1]
    assert decreed.withheld("Replicas", "flips")
    assert not scaled.withheld("Replicas", "flips")


def test_versions_and_machine_are_listed(tmp_path: Path) -> None:
    """Also one that only one side has."""
    spike(tmp_path / "binary", "binary")
    spike(tmp_path / "kind", "kind", versions=VERSIONS | {"kafka": "4.4.0", "containerd": "2.1.3"})
    (file,) = (tmp_path / "kind").rglob("trial.json")
    content = json.loads(file.read_text())
    content["machine"]["speed"] = 310_000
    file.write_text(json.dumps(content))
    text = text_of(tmp_path)
    assert "| speed | n/a | 310 thousand events/s |" in text
    assert "| kafka | 4.3.1 | 4.4.0 |" in text
    assert "| containerd | n/a | 2.1.3 |" in text
    assert "| cpu | AMD EPYC | AMD EPYC |" in text


def test_the_page_fetches_nothing(written: Path) -> None:
    """No address of another host and no script."""
    page = written.read_text()
    assert not re.search(r"https?://|<script|<link|@import", page)
    assert "Content-Security-Policy" in page
    Tags().feed(page)


def test_every_pair_is_on_the_page(written: Path) -> None:
    """And in the Markdown beside it, which has the same tables."""
    page, twin = written.read_text(), written.with_suffix(".md").read_text()
    for name in ("saturate, up-and-down", "step-10x, lag"):
        assert f">{name}</h2>" in page
        assert f"## {name}\n" in twin
    assert page.count("<table") == sum(line.startswith("|--") for line in twin.splitlines())


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


def test_what_is_left_of_a_lag_is_not_lost(tmp_path: Path) -> None:
    """A trial that ends with its traffic has messages that no pod processed yet: the figure is left out."""
    for runtime in ("binary", "kind"):
        record = spike(tmp_path / runtime, runtime)
        sealed(record.folder, inputs=replace(record.inputs, until="replayed"))
    (pair,) = compare(tmp_path / "binary", tmp_path / "kind").pairs
    assert pair.withheld("Integrity (messages)", LOST)
    assert "| lost or unseen |" not in text_of(tmp_path)
