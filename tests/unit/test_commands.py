"""The commands of ``python -m lab`` on files as users have them: what they print and write, and one line for what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import paths
from lab.__main__ import COMMANDS, main
from lab.inputs import scaledobject
from tests.suite import NESTED_S, PROGRAM_S
from tests.unit.measure.built import lags, profile, record, replicas

EXAMPLES = paths.PROJECT / "docs" / "examples"
ORDERS, ENRICHER, PEAK = (str(EXAMPLES / f"{name}.yaml") for name in ("orders", "enricher", "evening-peak"))
THEIRS = [f"--scaledobject={ORDERS}", f"--workload={ENRICHER}", f"--profile={PEAK}", "--start-s=3"]


@pytest.fixture
def lab(capsys):
    """A function that runs a command in this process: what it prints; it must end well and say nothing on the side."""

    def run(*arguments):
        code = main([*arguments])
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
        return said.out

    return run


def started(*arguments):
    """What ``python -m lab``, a process of its own, prints; as above."""
    command = [sys.executable, "-m", "lab", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def refused(capsys, *arguments):
    """The line on stderr; the exit code must be 2 and nothing printed."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    (line,) = said.err.strip().splitlines()
    return line


def triggered(folder, *more, own=True):
    """The file of the orders' ScaledObject with these triggers more, or with them alone."""
    content = yaml.safe_load(Path(ORDERS).read_text())
    content["spec"]["triggers"] = [*(content["spec"]["triggers"] if own else ()), *more]
    (folder / "theirs.yaml").write_text(yaml.safe_dump(content))
    return folder / "theirs.yaml"


CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}


class TestSimulate:
    """A ScaledObject on a profile."""

    def test_it_tells_figures_objectives_and_each_decision(self, lab, tmp_path):
        """The table, the verdicts, the log with the model's reasons, and a chart."""
        chart = tmp_path / "orders.svg"
        text = lab("simulate", *THEIRS, "--objective-s=20", "--log", f"--chart={chart}")
        assert "150 to 900 messages/s for 2,400 s" in text
        assert "pods of 100 messages/s on 12 partitions" in text
        assert "✔ flips: 0 flips, wanted == 0 flips: held" in text
        assert "✘ age of the oldest event at worst:" in text
        assert "scaleUp Max of Pods 6 per 30 s from 3 -> 9" in text
        assert chart.read_text().startswith("<svg")

    @pytest.mark.parametrize(("window", "flips"), [("2s", 0), ("2m", 0), ("5m", 4)])
    def test_a_trigger_on_arrivals_ends_the_flapping_of_bursts_that_its_query_sees(self, lab, tmp_path, window, flips):
        """Ten bursts of 120 s with lag alone flip 4 times; so they do where the query's window is longer than a burst."""
        pods = ["--profile=ten-bursts", "--pod-rate=100", "--partitions=24", "--start-s=45", "--in-flight-s=2.5", "--json"]
        policies = paths.MANIFESTS / "scaledobjects"
        changed = tmp_path / "arrivals.yaml"
        changed.write_text((policies / "lag-4500-arrivals.yaml").read_text().replace("[2s]", f"[{window}]"))
        figures = [
            json.loads(lab("simulate", f"--scaledobject={file}", *pods))["figures"]
            for file in (policies / "lag-4500.yaml", changed)
        ]
        assert [one["flips"] for one in figures] == [4, flips]
        assert (figures[1]["worst_age_s"] < figures[0]["worst_age_s"]) is (window == "2s")

    def test_its_json_holds_together(self, lab):
        """From the floor up and back to it; the log is the changes that are counted."""
        content = json.loads(lab("simulate", *THEIRS, "--objective-s=20", "--json", "--seed=7"))
        found, log = content["figures"], content["log"]
        assert content["consumers"]["rate"] == 100
        assert found["scale_ups"] + found["scale_downs"] == len(log)
        assert log[0]["before"] == log[-1]["after"] == 3
        assert max(change["after"] for change in log) == found["most_replicas"] <= 12
        assert found["worst_age_s"] > 20
        assert 0 < found["late_s"] < content["duration_s"]
        assert content["missing"] == {}
        assert {one["verdict"] for one in content["objectives"]} == {"held", "breached"}

    def test_a_scale_is_shown_at_real_time(self, lab):
        """Pods whose times are those of medium, seen: all else agrees, as times and lags are compressed alike."""
        seen = {"start": 15.0, "stop": 7.5, "notice": 3.0, "round": 15.0, "in-flight": 1.5}
        shown = []
        for name, factor in (("real", 1), ("medium", 15)):
            lengths = [f"--{time}-s={length / factor}" for time, length in seen.items()]
            shown.append(json.loads(lab("simulate", *THEIRS, "--json", f"--scale={name}", *lengths)))
        plain, half = shown
        assert (plain["scale"], half["scale"]) == ("real", "medium")
        assert half["duration_s"] == plain["duration_s"]
        ours, theirs = half["figures"], plain["figures"]
        for name in ("reaction_s", "peak_lag", "worst_age_s", "pod_minutes", "late_s", "drain_s"):
            assert ours[name] == pytest.approx(theirs[name], rel=0.1), name
        assert [ours[name] for name in ("flips", "most_replicas")] == [theirs[name] for name in ("flips", "most_replicas")]
        assert "simulated at medium: time / 15" in lab("simulate", *THEIRS, "--scale=medium")

    def test_what_no_scale_compresses_weighs_more_there(self, lab):
        """A start of 2 s as it is seen is half a minute of medium, and so are rounds of a rebalance."""
        reactions = [
            json.loads(lab("simulate", *THEIRS, "--json", "--start-s=2", f"--scale={name}"))["figures"]["reaction_s"]
            for name in ("real", "medium")
        ]
        assert 28 <= reactions[1] - reactions[0] < 60

    def test_a_slower_pod_is_later(self, lab):
        """Flags go before the workload: half the rate, a start ten times as long."""
        plain = json.loads(lab("simulate", *THEIRS, "--objective-s=20", "--json"))["figures"]
        slow = json.loads(lab("simulate", *THEIRS, "--objective-s=20", "--json", "--pod-rate=80", "--start-s=30"))["figures"]
        assert slow["late_s"] > plain["late_s"]
        assert slow["reaction_s"] > plain["reaction_s"] + 20

    def test_the_persistent_lag_scaler_is_a_trigger_like_another(self, lab, tmp_path):
        """The committed ScaledObject; waiting for what lasts comes later. With lagSeconds there is no threshold to drain to."""
        given = ["simulate", *THEIRS[1:], "--json", "--scaledobject"]
        path = paths.MANIFESTS / "lagscaler" / "scaledobject.yaml"
        slow = json.loads(lab(*given, str(path)))
        content = yaml.safe_load(path.read_text())
        metadata = content["spec"]["triggers"][0]["metadata"]
        changed = tmp_path / "changed.yaml"
        reactions = [slow["figures"]["reaction_s"]]
        for change in ({"sustainSeconds": "0"}, {"lagThreshold": "", "lagSeconds": "30"}):
            metadata.update(change)
            changed.write_text(yaml.safe_dump(content))
            found = json.loads(lab(*given, str(changed)))
            reactions.append(found["figures"]["reaction_s"])
        assert reactions[0] == pytest.approx(reactions[1] + 120, abs=25)
        assert "lagSeconds" in found["missing"]["drain_s"]
        assert slow["missing"] == {}

    def test_what_a_profile_does_not_show_is_no_data(self, lab, tmp_path):
        """Steady traffic has no reaction and no drain: neither is a pass."""
        steady = tmp_path / "steady.yaml"
        steady.write_text("{kind: steady, rate: 150, duration: 600}\n")
        given = ["simulate", f"--scaledobject={ORDERS}", f"--profile={steady}", "--pod-rate=100", "--start-s=3"]
        text = lab(*given)
        assert "? reaction at real time: no data (the profile has no phase baseline that something follows)" in text
        content = json.loads(lab(*given, "--json"))
        assert content["figures"]["reaction_s"] is None
        assert content["figures"]["drain_s"] is None
        assert [one["verdict"] for one in content["objectives"]].count("no data") == 2


class TestTune:
    """Variants of a ScaledObject."""

    def test_what_is_recommended_is_written_at_real_time(self, capsys):
        """So no scale is taken."""
        line = refused(capsys, "tune", *THEIRS, "--scale=medium")
        assert "--scale: 'medium' is not allowed; allowed: real: what is recommended is written at real time" in line

    def test_it_recommends_one_and_writes_it(self, lab, tmp_path):
        """The file is the user's with the changes it names, and simulates as was said; the same with one process."""
        output, chart = tmp_path / "tuned.yaml", tmp_path / "front.png"
        given = [*THEIRS, "--candidates=20", "--json"]
        told = started("tune", *given, "--processes=2", f"--output={output}", f"--chart={chart}")
        content = json.loads(told)
        chosen = content["recommended"]
        assert content["candidates"] == 20
        assert chosen["flips"] == 0
        assert chosen["late_s"] <= content["given"]["late_s"]
        assert [reason["field"] for reason in chosen["reasons"]] == list(chosen["changes"])
        assert all(reason["why"].startswith("with ") for reason in chosen["reasons"])
        costs = [(one["pod_minutes"], one["late_s"]) for one in content["front"]]
        assert costs == sorted(costs)
        assert output.read_text() == content["yaml"]
        scaledobject.parse(yaml.safe_load(output.read_text()), output)
        replaced = [f"--scaledobject={output}", *THEIRS[1:]]
        again = json.loads(lab("simulate", *replaced, "--json"))["figures"]
        for name in ("late_s", "pod_minutes", "flips"):
            assert again[name] == chosen[name], name
        assert chart.read_bytes().startswith(b"\x89PNG")
        assert json.loads(lab("tune", *given, "--processes=1")) == content

    def test_its_table_says_why(self, lab):
        """Given and recommended side by side, and a sentence for each change."""
        text = lab("tune", *THEIRS, "--candidates=10", "--processes=1")
        assert "10 policies simulated" in text
        assert text.index("as given") < text.index("recommended") < text.index("front")
        assert "recommended: behind by more than 60 s for" in text


class TestPlane:
    """Windows, tolerances and lagThresholds together."""

    def test_each_combination_is_simulated_alone(self, lab, tmp_path):
        """The cell of the given values is what ``simulate`` says of the ScaledObject, and is marked."""
        chart = tmp_path / "plane.svg"
        grid = ["--windows=300,600", "--tolerances=0.1,0.94", f"--lag-thresholds=500,{threshold_of(ORDERS)}"]
        content = json.loads(lab("plane", *THEIRS, *grid, "--json", f"--chart={chart}"))
        assert len(content["cells"]) == 8
        (given,) = (one for one in content["cells"] if one["given"])
        alone = json.loads(lab("simulate", *THEIRS, "--json"))["figures"]
        for name in ("flips", "late_s", "worst_age_s", "pod_minutes", "most_replicas"):
            assert given[name] == alone[name], name
        assert all(f">{one['pod_minutes']:,.0f}</text>" in chart.read_text() for one in content["cells"])
        text = lab("plane", *THEIRS, *grid)
        assert sum(line.endswith("as given") for line in text.splitlines()) == 1
        assert len(text.splitlines()) == 3 + 1 + 1 + 8

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["--windows=300,60"], "--windows: '300,60' is not allowed; allowed: at most 12 whole numbers that rise, such as"),
            (["--tolerances=2000"], "--tolerances: '2000' is not allowed; allowed: at most 12 numbers that rise"),
            (["--scale=medium"], "command line: --scale: 'medium' is not allowed; allowed: real: every figure is at real time"),
        ],
    )
    def test_a_bad_axis_is_named(self, capsys, arguments, line):
        """Nothing is simulated."""
        assert line in refused(capsys, "plane", *THEIRS, *arguments)

    def test_a_scaledobject_without_a_threshold_has_no_plane(self, capsys, tmp_path):
        """One line with what it has."""
        theirs = triggered(tmp_path, CPU, own=False)
        line = refused(capsys, "plane", f"--scaledobject={theirs}", *THEIRS[1:])
        assert line.startswith(f"lab: {theirs}: spec.triggers: ['cpu'] is not allowed; allowed: one trigger with a lag")


def threshold_of(file):
    """The lagThreshold in a ScaledObject's file."""
    return yaml.safe_load(Path(file).read_text())["spec"]["triggers"][0]["metadata"]["lagThreshold"]


class TestJudge:
    """Records, judged again."""

    def test_what_a_record_lacks_is_no_data(self, lab, tmp_path):
        """A record of lag and replicas alone: its measures are told, no agreement and no prediction is."""
        inputs, told = profile(0, 100, (0, "baseline"), (10, "spike"), (50, "drain"))
        (tmp_path / "built").mkdir()
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
        (content,) = json.loads(lab("judge", str(tmp_path), "--json"))
        assert content["record"] == "built"
        assert content["overview"]["peak lag (messages)"] == 500
        assert content["measures"]["reaction"]["no data"]
        assert content["agreement"] is None
        assert content["prediction"] is None


class TestBadInput:
    """One clear line: file or flag, field, value, what is allowed; exit code 2."""

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["--pod-rate=0"], "argument --pod-rate: '0' is not allowed; allowed: 0.001 to 1,000,000"),
            (["--partitions=2.5"], "argument --partitions: '2.5' is not allowed; allowed: 1 to 100,000"),
            (["--chart=x.pdf"], "argument --chart: 'x.pdf' is not allowed; allowed: FILE.png, FILE.svg, FILE.html in a folder"),
            (
                ["--profile=evening"],
                "command line: --profile: 'evening' is not allowed; allowed: a YAML file, or one of backlog",
            ),
            (["--workload=no.yaml"], "no.yaml: (file): 'No such file or directory' is not allowed"),
            (["--calibrate=nowhere"], "nowhere: (folder): 'no trial.json' is not allowed; allowed: a record"),
        ],
    )
    def test_a_bad_flag_is_named(self, capsys, arguments, line):
        """Nothing is simulated."""
        assert line in refused(capsys, "simulate", *THEIRS, *arguments)

    def test_a_pod_rate_is_asked_for(self, capsys):
        """No rate is made up."""
        line = refused(capsys, "simulate", f"--scaledobject={ORDERS}", f"--profile={PEAK}")
        assert line.startswith("lab: command line: --pod-rate: None is not allowed; allowed: messages/s a pod processes, or")

    def test_how_long_a_pod_takes_to_start_is_not_assumed(self, capsys):
        """A default flatters: an image that is pulled takes twenty times as long as a process."""
        line = refused(capsys, "simulate", *(one for one in THEIRS if not one.startswith("--start-s")))
        assert line.startswith("lab: command line: --start-s: None is not allowed; allowed: 0 to 3600 s from a decision until")
        assert "--calibrate" in line

    @pytest.mark.parametrize("command", ["simulate", "tune"])
    def test_a_trigger_that_is_not_simulated_is_named(self, capsys, command, tmp_path):
        """File, field, value and what is simulated."""
        metadata = {"timezone": "Europe/Berlin", "start": "0 6 * * *", "end": "0 20 * * *", "desiredReplicas": "10"}
        cron, external = (
            {"type": "cron", "metadata": metadata},
            {"type": "external", "metadata": {"scalerAddress": "queue:6000"}},
        )
        theirs = triggered(tmp_path, cron)
        line = refused(capsys, command, f"--scaledobject={theirs}", *THEIRS[1:])
        assert line.startswith(f"lab: {PEAK}: begins_at: None is not allowed; allowed: the time of day at which the profile")
        theirs = triggered(tmp_path, cron, external)
        line = refused(capsys, command, f"--scaledobject={theirs}", "--profile=spike-announced", *(THEIRS[1], THEIRS[3]))
        assert line.startswith(f"lab: {theirs}: spec.triggers: ['kafka', 'cron', 'external'] is not allowed; allowed: at most")

    def test_a_cpu_trigger_needs_a_workload(self, lab, capsys, tmp_path):
        """A rate alone does not say what a message costs; with the workload the same ScaledObject is simulated."""
        theirs = triggered(tmp_path, CPU)
        given = [f"--scaledobject={theirs}", f"--profile={PEAK}", "--start-s=3"]
        line = refused(capsys, "simulate", *given, "--pod-rate=100")
        assert line.startswith(f"lab: {theirs}: trigger cpu: pods: 'a rate alone' is not allowed; allowed: a workload, which")
        assert "pod-minutes" in lab("simulate", *given, f"--workload={ENRICHER}")

    def test_a_chart_is_of_one_record(self, capsys, tmp_path):
        """And of a prediction, which needs others."""
        (tmp_path / "built").mkdir()
        record(tmp_path / "built")
        line = refused(capsys, "judge", tmp_path, f"--chart={tmp_path}/x.png")
        assert "--chart" in line
        assert "allowed: one record to draw, and --calibrate" in line


def test_every_command_explains_itself(capsys):
    """``--help`` of each names its flags; the list names each."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    listed = capsys.readouterr().out
    for name, text in COMMANDS.items():
        assert name in listed
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert " ".join(text.split()[:4]) in " ".join(capsys.readouterr().out.split())


def test_a_question_without_a_record_imports_no_tables():
    """pandas and pyarrow take longer to import than the answer takes."""
    code = "import sys, lab.__main__ as lab; lab.main(sys.argv[1:]); print(sorted({'pandas', 'pyarrow'} & set(sys.modules)))"
    command = [sys.executable, "-c", code, "simulate", *THEIRS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
