"""The commands of ``elastic-lab`` on files as users have them: what they print and write."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import paths, validation
from lab.charts import drawing
from lab.commands import answers, tune
from lab.commands.text import SCHEMA
from lab.foresee import variants
from lab.inputs import scaledobject
from tests.suite import NESTED_S
from tests.unit.commands.files import LAG, OBJECT, ORDERS, PEAK, START, THEIRS, TRAFFIC, WORK, triggered
from tests.unit.foresee.test_shadow import WAVE, saved
from tests.unit.measure.built import lags, profile, record, replicas
from tests.unit.plugin.project import COMMITTED

POLICIES = paths.MANIFESTS / "scaledobjects"
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}
PUBLISHED = json.loads((paths.PROJECT / "lab" / "commands" / "answers.schema.json").read_text())


@pytest.fixture
def figures(lab):
    """A function that simulates: the figures by name."""
    return lambda *arguments: json.loads(lab("simulate", *arguments, "--json"))["figures"]


@pytest.fixture
def chart(monkeypatch, tmp_path):
    """A file for a chart of a kind, by its suffix, which is written as kind and specification: to draw one takes seconds."""
    for kind in ("svg", "html"):
        monkeypatch.setattr(drawing, kind, lambda chart, kind=kind: kind + json.dumps(chart.to_dict()))
    monkeypatch.setattr(drawing, "png", lambda chart: b"png" + json.dumps(chart.to_dict()).encode())
    return lambda kind: tmp_path / f"chart.{kind}"


def test_simulate_tells_figures_objectives_and_each_decision(lab, chart):
    """The table, the verdicts, the log with the model's reasons, and a chart."""
    text = lab("simulate", *THEIRS, "--objective-s=20", "--log", f"--chart={chart('html')}")
    assert "150 to 900 messages/s for 2,400 s" in text
    assert "pods of 100 messages/s on 12 partitions" in text
    assert "✔ flips: 0 flips, wanted = 0 flips: held" in text
    assert "✘ age of the oldest event at worst:" in text
    assert "scaleUp Max of Pods 6 per 30 s from 3 -> 9" in text
    drawn = chart("html").read_text()
    assert (drawn.startswith("html"), "on evening-peak, simulated" in drawn) == (True, True)


def test_a_trigger_on_arrivals_ends_the_flapping_of_bursts_that_its_query_sees(figures, tmp_path):
    """Ten bursts of 120 s with lag alone flip 4 times; so they do where the query's window is longer than a burst."""
    pods = ["--profile=ten-bursts", "--pod-rate=100", "--partitions=24", "--start-s=45", "--in-flight-s=2.5"]
    alone, changed = figures(f"--scaledobject={POLICIES / 'lag-4500.yaml'}", *pods), tmp_path / "arrivals.yaml"
    for window, flips in (("2s", 0), ("2m", 0), ("5m", 4)):
        changed.write_text((POLICIES / "lag-4500-arrivals.yaml").read_text().replace("[2s]", f"[{window}]"))
        both = figures(f"--scaledobject={changed}", *pods)
        assert (alone["flips"], both["flips"]) == (4, flips), window
        assert (both["worst_age_s"] < alone["worst_age_s"]) is (window == "2s"), window


def test_the_json_of_simulate_holds_together(lab, figures):
    """From the floor up and back to it; the log is the changes that are counted. Flags go before the workload."""
    content = json.loads(lab("simulate", *THEIRS, "--objective-s=20", "--json", "--seed=7"))
    found, log = content["figures"], content["log"]
    assert content["consumers"]["rate"] == 100
    assert found["scale_ups"] + found["scale_downs"] == len(log)
    assert log[0]["before"] == log[-1]["after"] == 3
    assert max(change["after"] for change in log) == found["most_replicas"] <= 12
    assert (found["above_floor_at_baseline"], found["above_floor_at_end"], found["beyond_partitions"]) == (0, 0, 0)
    assert found["worst_age_s"] > 20
    assert 0 < found["late_s"] < content["duration_s"]
    assert content["missing"] == {}
    assert {one["verdict"] for one in content["objectives"]} == {"held", "breached"}
    slow = figures(*THEIRS, "--objective-s=20", "--pod-rate=80", "--start-s=30")
    assert (slow["late_s"] > found["late_s"], slow["reaction_s"] > found["reaction_s"] + 20) == (True, True)


def test_a_scale_is_shown_at_real_time(lab, figures):
    """Pods whose times are those of medium, seen: all else agrees, as times and lags are compressed alike.

    What no scale compresses weighs more there: a start of 2 s as it is seen is half a minute of medium, and so are the rounds
    of a rebalance.
    """
    seen = {"start": 15.0, "stop": 7.5, "notice": 3.0, "round": 15.0, "in-flight": 1.5}
    scales = {"real": 1, "medium": 15}
    theirs, ours = (
        figures(*THEIRS, f"--scale={name}", *(f"--{time}-s={length / factor}" for time, length in seen.items()))
        for name, factor in scales.items()
    )
    for name in ("reaction_s", "peak_lag", "worst_age_s", "pod_minutes", "late_s", "drain_s"):
        assert ours[name] == pytest.approx(theirs[name], rel=0.1), name
    assert [ours[name] for name in ("flips", "most_replicas")] == [theirs[name] for name in ("flips", "most_replicas")]
    assert "simulated at medium: time / 15" in lab("simulate", *THEIRS, "--scale=medium")
    plain, medium = (figures(*THEIRS, "--start-s=2", f"--scale={name}")["reaction_s"] for name in scales)
    assert 28 <= medium - plain < 60


def test_the_persistent_lag_scaler_is_a_trigger_like_another(lab, tmp_path):
    """The committed ScaledObject; waiting for what lasts comes later. With lagSeconds there is no threshold to drain to."""
    content = yaml.safe_load((paths.MANIFESTS / "lagscaler" / "scaledobject.yaml").read_text())
    changed, found = tmp_path / "changed.yaml", []
    for change in ({}, {"sustainSeconds": "0"}, {"lagThreshold": "", "lagSeconds": "30"}):
        content["spec"]["triggers"][0]["metadata"].update(change)
        changed.write_text(yaml.safe_dump(content))
        found.append(json.loads(lab("simulate", *THEIRS[1:], "--json", f"--scaledobject={changed}")))
    slow, quick, by_age = found
    assert slow["figures"]["reaction_s"] == pytest.approx(quick["figures"]["reaction_s"] + 120, abs=25)
    assert "lagSeconds" in by_age["missing"]["drain_s"]
    assert slow["missing"] == {}


def test_what_a_profile_does_not_show_is_no_data(lab, tmp_path):
    """Steady traffic has no reaction and no drain: neither is a pass."""
    steady = tmp_path / "steady.yaml"
    steady.write_text("{kind: steady, rate: 150, duration: 600}\n")
    given = ["simulate", OBJECT, f"--profile={steady}", "--pod-rate=100", START]
    assert "? reaction: no data (the profile has no phase baseline that something follows)" in lab(*given)
    content = json.loads(lab(*given, "--json"))
    assert (content["figures"]["reaction_s"], content["figures"]["drain_s"]) == (None, None)
    assert [one["verdict"] for one in content["objectives"]].count("no data") == 2


def test_an_objective_that_another_point_of_the_sync_breaches_has_a_line(lab, tmp_path):
    """Verdicts are of a first sync at 0 s. A group that holds everywhere, or nowhere, has none."""
    flapping = tmp_path / "flapping.yaml"
    text = Path(ORDERS).read_text().replace("stabilizationWindowSeconds: 600", "stabilizationWindowSeconds: 300")
    flapping.write_text(text)
    given = [f"--scaledobject={flapping}", WORK, TRAFFIC, "--start-s=0"]
    content = json.loads(lab("simulate", *given, "--json"))
    assert {one["verdict"] for one in content["objectives"]} == {"held"}
    (line,) = content["elsewhere"]
    assert line == (
        "flips: breached where the HPA's first sync comes at 3 s, with 1 flips at worst, and not at 0, 6, 9, 12 s; shown is 0 s"
    )
    assert f"\nnote: {line}\n" in lab("simulate", *given)
    for objective in (60, 5):
        everywhere = [OBJECT, WORK, TRAFFIC, "--start-s=45", f"--objective-s={objective}"]
        assert json.loads(lab("simulate", *everywhere, "--json"))["elsewhere"] == []


def test_tune_recommends_one_and_writes_it(lab, figures, chart, tmp_path):
    """The file is the user's with the changes it names, and simulates as was said; the same in one process as in two.

    The table has given and recommended side by side, and a sentence for each change.
    """
    output = tmp_path / "tuned.yaml"
    given = ["tune", *THEIRS, "--candidates=5", "--json"]
    code = "import sys; from lab.commands import tune; tune.CHUNK = 4; from lab.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *given, "--processes=2", f"--output={output}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    content = json.loads(ran.stdout)
    chosen = content["recommended"]
    assert content["candidates"] == 5
    assert chosen["flips"] == 0
    assert chosen["late_s"] <= content["given"]["late_s"]
    assert {one["verdict"] for one in content["objectives"]} == {"held"}
    assert [reason["field"] for reason in chosen["reasons"]] == list(chosen["changes"])
    assert all(reason["why"].startswith("with ") for reason in chosen["reasons"])
    costs = [(one["pod_minutes"], one["late_s"]) for one in content["front"]]
    assert costs == sorted(costs)
    theirs = Path(OBJECT.partition("=")[2])
    assert output.read_text().splitlines()[0] == theirs.read_text().splitlines()[0]  # a comment
    assert yaml.safe_load(output.read_text()) == yaml.safe_load(content["yaml"])
    scaledobject.parse(yaml.safe_load(output.read_text()), output)
    again = figures(f"--scaledobject={output}", *THEIRS[1:])
    assert all(again[name] <= chosen[name] for name in ("late_s", "pod_minutes", "flips"))  # of one point, and at worst
    assert json.loads(lab(*given, "--processes=1", f"--chart={chart('png')}")) == content
    assert chart("png").read_text().startswith("png")
    text = lab("tune", *THEIRS, "--candidates=5", "--processes=1")
    assert "5 policies simulated; those below again, each alone: each figure is the worst of 5 points" in text
    assert text.index("as given") < text.index("recommended") < text.index("front")
    assert "recommended: behind by more than 60 s for" in text
    assert "\n✔ flips: 0 flips, wanted = 0 flips: held" in text


def test_tune_takes_the_simplest_that_breaches_no_objective(lab, monkeypatch):
    """Where the cheapest of the least late breaches one; where every one does, that is taken. Each change has its reason."""
    tune_five = ["tune", *THEIRS, "--candidates=5", "--processes=1", "--json"]
    monkeypatch.setattr(tune, "_breaches", lambda question, one: True)
    first = json.loads(lab(*tune_five))["recommended"]
    monkeypatch.setattr(tune, "_breaches", lambda question, one: [*one.changes] != [variants.DOWN_POLICIES])
    chosen = json.loads(lab(*tune_five))["recommended"]
    assert [*chosen["changes"]] == [variants.DOWN_POLICIES] != [*first["changes"]]
    assert chosen["why"].startswith("the simplest that breaches no objective; the cheapest of the least late breaches one")
    assert [reason["field"] for reason in chosen["reasons"]] == [variants.DOWN_POLICIES]


def test_tune_tells_of_what_is_given_what_simulate_tells(lab, tmp_path):
    """In text and JSON: here that what is in flight asks for pods."""
    given = [f"--scaledobject={triggered(tmp_path, LAG | {'metadata': LAG['metadata'] | {'lagThreshold': '20'}})}", *THEIRS[1:]]
    (note,) = json.loads(lab("simulate", *given, "--json"))["notes"]
    tune = ["tune", *given, "--candidates=2", "--processes=1"]
    assert json.loads(lab(*tune, "--json"))["notes"] == [note]
    assert f"\nnote on what is given: {note}\n" in lab(*tune)


def test_plane_simulates_each_combination_alone(lab, figures, chart):
    """The cell of the given values is what ``simulate`` says of the ScaledObject, and is marked."""
    thresholds = f"--lag-thresholds=500,{LAG['metadata']['lagThreshold']}"
    grid = ["--windows=300,600", "--tolerances=0.1,0.94", thresholds]
    content = json.loads(lab("plane", *THEIRS, *grid, "--json", f"--chart={chart('svg')}"))
    assert len(content["cells"]) == 8
    (given,) = (one for one in content["cells"] if one["given"])
    names = ("flips", "late_s", "worst_age_s", "pod_minutes", "most_replicas")
    assert {name: given[name] for name in names}.items() <= figures(*THEIRS).items()
    drawn = chart("svg").read_text()
    assert drawn.startswith("svg")
    assert all(f'"pod_minutes": {one["pod_minutes"]}' in drawn for one in content["cells"])
    lines = lab("plane", *THEIRS, *grid).splitlines()
    assert (sum(line.endswith("as given") for line in lines), len(lines)) == (1, 4 + 1 + 1 + 8)


def test_what_a_judged_record_lacks_is_no_data(lab, refused, tmp_path):
    """A record of lag and replicas alone: its measures are told, no agreement and no prediction is.

    A chart is of one record and of a prediction, which needs others.
    """
    inputs, told = profile(0, 100, (0, "baseline"), (10, "spike"), (50, "drain"))
    record(
        tmp_path / "built",
        inputs=inputs | {"workload": {"balancer": "range"}, "scale": {"name": "full", "time": 1, "rate": 1}},
        group_events=told,
        samples=lags({0: 0, 20: 500, 60: 90}),
        transitions=replicas((0, 1, 1), (15, 4, 4), (80, 1, 1)),
    )
    text = lab("judge", str(tmp_path))
    assert "no data: agreement: built has no hpa.log" in text
    assert "no data: prediction:" in text
    (content,) = json.loads(lab("judge", str(tmp_path), "--json"))["records"]
    assert (content["record"], content["overview"]["peak lag (messages)"]) == ("built", 500)
    assert content["measures"]["reaction"]["no data"]
    assert (content["agreement"], content["prediction"]) == (None, None)
    line = refused("judge", tmp_path, f"--chart={tmp_path}/x.png")
    assert "--chart" in line
    assert "allowed: one record to draw, and --calibrate" in line


@pytest.mark.parametrize("command", ["simulate", "tune"])
def test_a_trigger_that_is_not_simulated_is_named(refused, command, tmp_path):
    """File, field, value and what is simulated."""
    metadata = {"timezone": "Europe/Berlin", "start": "0 6 * * *", "end": "0 20 * * *", "desiredReplicas": "10"}
    triggers = [LAG, {"type": "cron", "metadata": metadata}, {"type": "external", "metadata": {"scalerAddress": "queue:6000"}}]
    theirs = triggered(tmp_path, *triggers[:2])
    line = refused(command, f"--scaledobject={theirs}", *THEIRS[1:])
    assert line.startswith(f"elastic-lab: {PEAK}: begins_at: missing; allowed: the time of day at which the profile")
    line = refused(command, f"--scaledobject={triggered(tmp_path, *triggers)}", "--profile=spike-announced", WORK, START)
    assert line.startswith(
        f"elastic-lab: {theirs}:31: spec.triggers: ['kafka', 'cron', 'external'] is not allowed; allowed: tr"
    )


def test_a_cpu_trigger_needs_a_workload(lab, refused, tmp_path):
    """A rate alone does not say what a message costs; with the workload it is simulated. Alone it has no plane."""
    theirs = triggered(tmp_path, LAG, CPU)
    given = [f"--scaledobject={theirs}", TRAFFIC, START]
    line = refused("simulate", *given, "--pod-rate=100")
    assert line.startswith(
        "elastic-lab: command line: --workload: missing; allowed: a workload with process_ms, burn and cpu_request"
    )
    assert "pod-minutes" in lab("simulate", *given, WORK)
    line = refused("plane", f"--scaledobject={triggered(tmp_path, CPU)}", *THEIRS[1:])
    assert line.startswith(f"elastic-lab: {theirs}:31: spec.triggers: ['cpu'] is not allowed; allowed: one trigger with a lag")


def test_the_published_schema_is_of_what_is_printed(lab, tmp_path):
    """Each command's answer has the shape of its type, and the file in the repository is made of these types."""
    assert json.loads(json.dumps(answers.json_schema())) == PUBLISHED
    (tmp_path / "scrapes.csv").write_text("time,replicas,lag\n0,4,9000\n600,4,9000\n615,7,15600\n")
    (tmp_path / "seen.csv").write_text("time,rate\n0,5\n15,5\n30,90\n45,5\n")
    asked = {
        "audit": [ORDERS, "--partitions=12"],
        "simulate": THEIRS,
        "explain": [OBJECT, f"--csv={tmp_path}/scrapes.csv"],
        "shadow": [f"--watched={saved(tmp_path, WAVE)}"],
        "sync": [OBJECT, "--lag=33", "--replicas=4", "--partitions=12"],
        "tune": [*THEIRS, "--candidates=5", "--processes=1"],
        "plane": [*THEIRS, "--windows=300", "--tolerances=0.1"],
        "profile": [f"--csv={tmp_path}/seen.csv"],
        "threshold": ["--rate=100", "--slo=2"],
        "estimate": ["--scaledobject=lag", "--profile=short-step"],
        "judge": [str(COMMITTED)],
    }
    assert asked.keys() == answers.KINDS.keys()
    for command, words in asked.items():
        content = json.loads(lab(command, *words, "--json"))
        assert content.pop("schema") == SCHEMA
        validation.read(answers.KINDS[command], content, command)


@pytest.mark.parametrize("kind", ["Sync", "Asked"])
def test_a_number_of_a_sync_has_its_unit(kind):
    """In its name, or in what the schema says of it."""
    shape = PUBLISHED["$defs"][kind]
    for name, one in shape["properties"].items():
        if {"integer", "number"} & {part.get("type") for part in one.get("anyOf", [one])}:
            assert name.endswith(("_s", "replicas")) or f"``{name}``" in shape["description"], name


def test_a_file_on_standard_input_is_simulated(lab, monkeypatch):
    """With what deserves a line; the one of several that is named."""
    given = yaml.safe_load(Path(ORDERS).read_text())
    other = given | {"metadata": given["metadata"] | {"name": "other"}}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(yaml.safe_dump_all([given, other]).encode())))
    content = json.loads(lab("simulate", "--scaledobject=-", "--name=other", *THEIRS[1:], "--json"))
    assert content["scaledobject"] == "other"
    assert "ScaledObject orders-enricher beside it scales the same" in content["remarks"][0]
