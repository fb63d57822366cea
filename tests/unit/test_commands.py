"""The commands of ``elastic-lab`` on files as users have them: what they print and write, and one line for what is wrong."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lab import paths, typed
from lab.__main__ import COMMANDS, READER_GONE, main
from lab.charts import drawing
from lab.commands import answers
from lab.commands.text import SCHEMA
from lab.errors import BREACHED, HELD
from lab.inputs import scaledobject
from tests.suite import NESTED_S, PROGRAM_S
from tests.unit.measure.built import lags, profile, record, replicas
from tests.unit.plugin.project import COMMITTED

EXAMPLES = paths.PROJECT / "docs" / "examples"
POLICIES = paths.MANIFESTS / "scaledobjects"
ORDERS, ENRICHER, PEAK = (str(EXAMPLES / f"{name}.yaml") for name in ("orders", "enricher", "evening-peak"))
OBJECT, WORK, TRAFFIC, START = (f"--scaledobject={ORDERS}", f"--workload={ENRICHER}", f"--profile={PEAK}", "--start-s=3")
THEIRS = [OBJECT, WORK, TRAFFIC, START]
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}


@pytest.fixture
def lab(capsys):
    """A function that runs a command in this process: what it prints. Nothing but a breach may be wrong."""

    def run(*arguments):
        code = main([*arguments])
        said = capsys.readouterr()
        assert (code in (HELD, BREACHED), said.err) == (True, "")
        return said.out

    return run


@pytest.fixture
def figures(lab):
    """A function that simulates: the figures by name."""
    return lambda *arguments: json.loads(lab("simulate", *arguments, "--json"))["figures"]


@pytest.fixture
def refused(capsys):
    """A function that runs a command: the line on stderr; the exit code must be 2 and nothing printed."""

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert (code, said.out) == (2, "")
        (line,) = said.err.strip().splitlines()
        return line

    return run


@pytest.fixture
def chart(monkeypatch, tmp_path):
    """A file for a chart of a kind, by its suffix, which is written as kind and specification: to draw one takes seconds."""
    for kind in ("svg", "html"):
        monkeypatch.setattr(drawing, kind, lambda chart, kind=kind: kind + json.dumps(chart.to_dict()))
    monkeypatch.setattr(drawing, "png", lambda chart: b"png" + json.dumps(chart.to_dict()).encode())
    return lambda kind: tmp_path / f"chart.{kind}"


def triggered(folder, *triggers):
    """The file of the orders' ScaledObject with these triggers."""
    content = yaml.safe_load(Path(ORDERS).read_text())
    content["spec"]["triggers"] = list(triggers)
    (folder / "theirs.yaml").write_text(yaml.safe_dump(content))
    return folder / "theirs.yaml"


LAG = yaml.safe_load(Path(ORDERS).read_text())["spec"]["triggers"][0]


def test_simulate_tells_figures_objectives_and_each_decision(lab, chart):
    """The table, the verdicts, the log with the model's reasons, and a chart."""
    text = lab("simulate", *THEIRS, "--objective-s=20", "--log", f"--chart={chart('html')}")
    assert "150 to 900 messages/s for 2,400 s" in text
    assert "pods of 100 messages/s on 12 partitions" in text
    assert "✔ flips: 0 flips, wanted == 0 flips: held" in text
    assert "✘ age of the oldest event at worst:" in text
    assert "scaleUp Max of Pods 6 per 30 s from 3 -> 9" in text
    drawn = chart("html").read_text()
    assert (drawn.startswith("html"), "on evening-peak, simulated" in drawn) == (True, True)


@pytest.mark.parametrize(("window", "flips"), [("2s", 0), ("2m", 0), ("5m", 4)])
def test_a_trigger_on_arrivals_ends_the_flapping_of_bursts_that_its_query_sees(figures, tmp_path, window, flips):
    """Ten bursts of 120 s with lag alone flip 4 times; so they do where the query's window is longer than a burst."""
    pods = ["--profile=ten-bursts", "--pod-rate=100", "--partitions=24", "--start-s=45", "--in-flight-s=2.5"]
    changed = tmp_path / "arrivals.yaml"
    changed.write_text((POLICIES / "lag-4500-arrivals.yaml").read_text().replace("[2s]", f"[{window}]"))
    alone, both = (figures(f"--scaledobject={file}", *pods) for file in (POLICIES / "lag-4500.yaml", changed))
    assert (alone["flips"], both["flips"]) == (4, flips)
    assert (both["worst_age_s"] < alone["worst_age_s"]) is (window == "2s")


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
    assert "? reaction at real time: no data (the profile has no phase baseline that something follows)" in lab(*given)
    content = json.loads(lab(*given, "--json"))
    assert (content["figures"]["reaction_s"], content["figures"]["drain_s"]) == (None, None)
    assert [one["verdict"] for one in content["objectives"]].count("no data") == 2


def test_tune_recommends_one_and_writes_it(lab, figures, chart, tmp_path):
    """The file is the user's with the changes it names, and simulates as was said; the same in one process as in two.

    The table has given and recommended side by side, and a sentence for each change.
    """
    output = tmp_path / "tuned.yaml"
    given = ["tune", *THEIRS, "--candidates=8", "--json"]
    code = "import sys; from lab.commands import tune; tune.CHUNK = 4; from lab.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *given, "--processes=2", f"--output={output}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    content = json.loads(ran.stdout)
    chosen = content["recommended"]
    assert content["candidates"] == 8
    assert chosen["flips"] == 0
    assert chosen["late_s"] <= content["given"]["late_s"]
    assert [reason["field"] for reason in chosen["reasons"]] == list(chosen["changes"])
    assert all(reason["why"].startswith("with ") for reason in chosen["reasons"])
    costs = [(one["pod_minutes"], one["late_s"]) for one in content["front"]]
    assert costs == sorted(costs)
    assert output.read_text() == content["yaml"]
    scaledobject.parse(yaml.safe_load(output.read_text()), output)
    again = figures(f"--scaledobject={output}", *THEIRS[1:])
    assert {name: again[name] for name in ("late_s", "pod_minutes", "flips")}.items() <= chosen.items()
    assert json.loads(lab(*given, "--processes=1", f"--chart={chart('png')}")) == content
    assert chart("png").read_text().startswith("png")
    text = lab("tune", *THEIRS, "--candidates=10", "--processes=1")
    assert "10 policies simulated" in text
    assert text.index("as given") < text.index("recommended") < text.index("front")
    assert "recommended: behind by more than 60 s for" in text


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


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*THEIRS, "--pod-rate=0"], "command line: --pod-rate: '0' is not allowed; allowed: 0.001 to 1,000,000"),
        ([*THEIRS, "--partitions=2.5"], "command line: --partitions: '2.5' is not allowed; allowed: 1 to 100,000"),
        (
            [*THEIRS, "--chart=x.pdf"],
            "command line: --chart: 'x.pdf' is not allowed; allowed: FILE.png, FILE.svg, FILE.html in a",
        ),
        ([*THEIRS, "--profile=evening"], "command line: --profile: 'evening' is not allowed; allowed: a YAML file, or one of"),
        ([*THEIRS, "--workload=no.yaml"], "no.yaml: No such file or directory; allowed: a readable"),
        ([*THEIRS, "--calibrate=nowhere"], "nowhere: (folder): 'no trial.json' is not allowed; allowed: a record"),
        ([OBJECT, TRAFFIC], "command line: --pod-rate: missing; allowed: messages/s a pod processes, or"),
        ([OBJECT, WORK, TRAFFIC], "command line: --start-s: missing; allowed: 0 to 3600 s from a decision until"),
        (["tune", *THEIRS, "--scale=medium"], "--scale: 'medium' is not allowed; allowed: real: what is recommended is"),
        (["plane", *THEIRS, "--scale=medium"], "--scale: 'medium' is not allowed; allowed: real: every figure is at real time"),
        (["plane", *THEIRS, "--windows=300,60"], "--windows: '300,60' is not allowed; allowed: at most 12 whole numbers that"),
        (["plane", *THEIRS, "--tolerances=2000"], "--tolerances: '2000' is not allowed; allowed: at most 12 numbers that rise"),
    ],
)
def test_a_bad_flag_is_one_line(refused, arguments, line):
    """File or flag, value, what is allowed; exit code 2. Neither a rate nor a start's time is made up: a default flatters."""
    assert line in refused(*arguments if arguments[0] in COMMANDS else ["simulate", *arguments])


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
        f"elastic-lab: {theirs}:31: spec.triggers: ['kafka', 'cron', 'external'] is not allowed; allowed: at most"
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


STEADY = ["simulate", OBJECT, "--profile={steady}", "--pod-rate=100", START]  # no reaction and no drain is seen


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["simulate", *THEIRS, "--objective-s=60"], 0),
        (["simulate", *THEIRS, "--objective-s=20"], 1),
        (["simulate", *THEIRS, "--objective-s=20", "--fail-on=breached"], 1),
        (["simulate", *THEIRS, "--objective-s=20", "--fail-on=nothing"], 0),
        (STEADY, 1),
        ([*STEADY, "--fail-on=breached"], 0),
        (["tune", *THEIRS, "--candidates=5", "--processes=1", "--objective-s=60"], 0),
        (["tune", *THEIRS, "--candidates=5", "--processes=1", "--objective-s=1"], 1),
        (["threshold", "--rate=0.1", "--slo=2"], 1),
    ],
)
def test_the_exit_code_says_what_held(capsys, tmp_path, flags, code):
    """What is no data does not hold, unless --fail-on says so."""
    steady = tmp_path / "steady.yaml"
    steady.write_text("{kind: steady, rate: 150, duration: 600}\n")
    assert main([word.format(steady=steady) for word in flags]) == code
    assert capsys.readouterr().out


def test_a_trial_too_large_is_bad_input(monkeypatch, capsys):
    """It is the user's to make smaller: no fault of the lab. The table says what is needed."""
    monkeypatch.setattr("lab.commands.estimate.available_bytes", lambda: 2**20)
    assert main(["estimate", "--profile=short-step"]) == 2
    said = capsys.readouterr()
    assert "memory" in said.out
    assert said.err.startswith("elastic-lab: short-step-")


@pytest.mark.parametrize(
    ("raised", "code", "line"), [(ZeroDivisionError, 3, "a fault of the lab: Zero"), (KeyboardInterrupt, 2, "interrup")]
)
def test_a_fault_is_no_breach(monkeypatch, capsys, raised, code, line):
    """Python would end with 1, the code of a breach; the traceback of a fault is kept for its report."""
    monkeypatch.setattr("lab.commands.threshold.computed_threshold", lambda *_: (_ for _ in ()).throw(raised))
    assert main(["threshold", "--rate=1", "--slo=1"]) == code
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"elastic-lab: {line}")


def test_a_reader_that_has_gone_is_no_error():
    """As with ``| head``: nothing on stderr, and the exit code of a program that the pipe ended."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "lab", "threshold", "--rate=1", "--slo=9"]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=PROGRAM_S, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (READER_GONE, b"")


@pytest.mark.parametrize(("line", "words"), [("sim", {"simulate"}), ("tune --cand", {"--candidates"}), ("x --y", set())])
def test_a_shell_completes_commands_and_flags(tmp_path, line, words):
    """As argcomplete asks: the line in the environment, the answer in a file."""
    pytest.importorskip("argcomplete")
    text = f"elastic-lab {line}"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words"), "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"COMP_LINE": text, "COMP_POINT": str(len(text))}
    ran = subprocess.run([sys.executable, "-m", "lab"], env=os.environ | asked, timeout=PROGRAM_S, check=False)
    assert ran.returncode == 0
    assert {word.strip() for word in (tmp_path / "words").read_text().split("\n")} - {""} == words


def test_the_published_schema_is_of_what_is_printed(lab):
    """Each command's answer has the shape of its type, and the file in the repository is made of these types."""
    published = json.loads((paths.PROJECT / "lab" / "commands" / "answers.schema.json").read_text())
    assert published == json.loads(json.dumps(answers.json_schema()))
    asked = {
        "simulate": THEIRS,
        "sync": [OBJECT, "--lag=33", "--replicas=4", "--partitions=12"],
        "tune": [*THEIRS, "--candidates=5", "--processes=1"],
        "plane": [*THEIRS, "--windows=300", "--tolerances=0.1"],
        "threshold": ["--rate=100", "--slo=2"],
        "estimate": ["--scaledobject=lag", "--profile=short-step"],
        "judge": [str(COMMITTED)],
    }
    assert asked.keys() == answers.KINDS.keys()
    for command, words in asked.items():
        content = json.loads(lab(command, *words, "--json"))
        assert content.pop("schema") == SCHEMA
        typed.read(answers.KINDS[command], content, command)


def test_a_project_says_once_what_is_its_own(lab, monkeypatch, tmp_path):
    """[tool.elastic-lab] of the nearest pyproject.toml; a flag goes before it."""
    ours = {"scaledobject": ORDERS, "workload": ENRICHER, "profile": PEAK, "start-s": 3, "scale": "medium"}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in ours.items())
    (tmp_path / "pyproject.toml").write_text(f"[tool.elastic-lab]\n{lines}")
    monkeypatch.chdir(tmp_path)
    assert json.loads(lab("simulate", "--json")) == json.loads(lab("simulate", *THEIRS, "--json"))
    assert json.loads(lab("simulate", "--start-s=9", "--json"))["consumers"]["start_s"] == 9


def test_every_error_of_both_files_is_a_line(capsys, tmp_path):
    """Of the ScaledObject and of the profile, in one run."""
    theirs, traffic = tmp_path / "theirs.yaml", tmp_path / "traffic.yaml"
    theirs.write_text(Path(ORDERS).read_text().replace("maxReplicaCount", "maxReplicas").replace("consumerGroup", "group"))
    traffic.write_text("kind: steady\nrate: 1e2\nduration: 30:00\n")
    assert main(["simulate", f"--scaledobject={theirs}", f"--profile={traffic}", "--pod-rate=1", START]) == 2
    lines = [line.removeprefix(f"elastic-lab: {tmp_path}/") for line in capsys.readouterr().err.splitlines()]
    shown = [line.partition(" is not")[0] for line in lines]
    assert [re.sub(r":\d+: ", " ", one) for one in shown] == [
        "theirs.yaml spec.maxReplicas: 12",
        "theirs.yaml spec.triggers[0].metadata.group: 'orders-enricher'",
        "traffic.yaml rate: '1e2'",
        "traffic.yaml duration: '30:00'",
    ]


def test_a_file_on_standard_input_is_simulated(lab, monkeypatch):
    """With what deserves a line; the one of several that is named."""
    given = yaml.safe_load(Path(ORDERS).read_text())
    other = given | {"metadata": given["metadata"] | {"name": "other"}}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(yaml.safe_dump_all([given, other]).encode())))
    content = json.loads(lab("simulate", "--scaledobject=-", "--name=other", *THEIRS[1:], "--json"))
    assert content["scaledobject"] == "other"
    assert "ScaledObject orders-enricher beside it scales the same" in content["remarks"][0]


@pytest.mark.parametrize("flag", ["pod-rate", "profile", "name", "scaledobject", "workload", "chart", "scale", "x" * 400])
def test_a_value_that_is_very_long_is_a_short_line(refused, flag):
    """Also where no file could have such a name."""
    assert len(refused("simulate", *THEIRS, f"--{flag}={'x' * 1000}")) <= 300
