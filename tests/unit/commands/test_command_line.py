"""The command line: its help, its exit codes, a line for each thing that is wrong, and what a shell and a project add to it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.__main__ import COMMANDS, READER_GONE, main
from lab.commands import demo, play
from lab.errors import InputError
from lab.flags import Flags
from lab.foresee.variants import computed_threshold
from tests.suite import NESTED_S, PROGRAM_S
from tests.unit.commands.files import ENRICHER, OBJECT, ORDERS, PEAK, START, THEIRS, TRAFFIC, WORK


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
        ([OBJECT, TRAFFIC, START], "command line: --pod-rate: missing; allowed: messages/s a pod processes, or"),
        ([OBJECT, WORK, TRAFFIC], "command line: --start-s: missing; allowed: 0 to 3600 s from a decision until"),
        (["tune", *THEIRS, "--scale=medium"], "--scale: 'medium' is not allowed; allowed: real: what is recommended is"),
        (["plane", *THEIRS, "--scale=medium"], "--scale: 'medium' is not allowed; allowed: real: every figure is at real time"),
        (["plane", *THEIRS, "--windows=300,60"], "--windows: '300,60' is not allowed; allowed: at most 12 whole numbers that"),
        (["plane", *THEIRS, "--tolerances=2000"], "--tolerances: '2000' is not allowed; allowed: at most 12 numbers that rise"),
        (["simulat"], "command line: COMMAND: 'simulat' is not allowed; did you mean simulate? allowed: one of demo, accept, "),
        ([], "command line: COMMAND: missing; allowed: one of demo, accept, "),
        (["profile", "--prometheus=prom:9090"], "--prometheus: 'prom:9090' is not allowed; allowed: a URL such as http"),
        (["tune"], "command line: --scaledobject, --profile: missing"),
        (["sync", OBJECT, "--replicas=4", "--lags=3"], "unrecognized arguments: --lags=3; did you mean --lag?"),
        ([*THEIRS, "--profile=step-1x"], "--profile: 'step-1x' is not allowed; did you mean step-10x?"),
        (
            [*THEIRS, "--scale=quik"],
            "command line: --scale: 'quik' is not allowed; did you mean quick? allowed: one of quick, ",
        ),
    ],
)
def test_a_bad_flag_is_one_line(refused, arguments, line):
    """File or flag, value, what is allowed; exit code 2. Neither a rate nor a start's time is made up: a default flatters."""
    whole = not arguments or not arguments[0].startswith("-")
    assert line in refused(*arguments if whole else ["simulate", *arguments])


SCRAPES = "time,replicas,lag\n" + "".join(f"{1_700_000_000 + 15 * n},{4 if n < 9 else 8},{99_000}\n" for n in range(20))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (SCRAPES.replace("\n", "\r\n"), []),
        (SCRAPES.encode("utf-16"), []),
        (SCRAPES.replace(",4,", ",4.0,").replace(",", ", ").replace("99000", "NaN", 3), []),
        (
            SCRAPES.replace(",", ";"),
            ["line 1: 'time;replicas;lag' is not allowed; allowed: the columns time, replicas, lag, with"],
        ),
        ("time,replicas,lag\n", ["rows: 0 is not allowed; allowed: two at least"]),
        (
            SCRAPES + "1700000000000,4,1\n",
            ["line 22: time: '1700000000000' is not allowed; allowed: epoch s, or a time such as"],
        ),
        (SCRAPES + "nan,4.5,1\n1,-4,-1\n", ["line 22: time", "line 22: replicas", "line 23: replicas", "line 23: lag: '-1'"]),
        (SCRAPES + f'"{"x" * 200_000}",1,1\n', ["content: 'field larger than"]),
    ],
)
def test_a_csv_file_is_read_however_it_was_saved(capsys, tmp_path, text, lines):
    """By a spreadsheet, PowerShell or Grafana. All that is wrong is said at once, and no cell is a fault of the lab."""
    (tmp_path / "s.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["explain", OBJECT, f"--csv={tmp_path / 's.csv'}", "--partitions=24"]) == (2 if lines else 0)
    said = capsys.readouterr()
    found = said.err.splitlines()
    assert len(found) == len(lines)
    assert all(f"s.csv: {line}" in one for one, line in zip(found, lines, strict=True)), found
    assert ("4 -> 8" in said.out) is not bool(lines)


def test_every_command_explains_itself(capsys):
    """``--help`` of each names its flags; the list names each."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    listed = capsys.readouterr().out
    assert "`" not in listed
    for name, text in COMMANDS.items():
        assert name in listed
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        said = capsys.readouterr().out
        assert " ".join(text.split()[:4]) in " ".join(said.split())
        assert "--scaledobject " not in said or "--name " in said  # of several in a file


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
        (["simulate", *THEIRS, "--objective-s=100"], 0),
        (["simulate", *THEIRS, "--objective-s=60"], 1),  # at two of five points of a sync
        (["simulate", *THEIRS, "--objective-s=20"], 1),
        (["simulate", *THEIRS, "--objective-s=20", "--fail-on=breached"], 1),
        (["simulate", *THEIRS, "--objective-s=20", "--fail-on=nothing"], 0),
        (STEADY, 1),
        ([*STEADY, "--fail-on=breached"], 0),
        (["tune", *THEIRS, "--candidates=5", "--processes=1", "--objective-s=60"], 0),
        (["tune", *THEIRS, "--candidates=5", "--processes=1", "--objective-s=1"], 1),
        (["tune", *THEIRS, "--candidates=2", "--processes=1", "--scaledobject={kept}", "--objective-s=100"], 1),
        (["tune", *STEADY[1:], "--candidates=2", "--processes=1"], 1),
        (["tune", *STEADY[1:], "--candidates=2", "--processes=1", "--fail-on=breached"], 0),
        (["threshold", "--rate=0.1", "--slo=2"], 1),
    ],
)
def test_the_exit_code_says_what_held(capsys, tmp_path, flags, code):
    """What is no data does not hold, unless --fail-on says so. Pods that are kept for ever breach an objective, late or not."""
    steady, kept = tmp_path / "steady.yaml", tmp_path / "kept.yaml"
    steady.write_text("{kind: steady, rate: 150, duration: 600}\n")
    kept.write_text(Path(ORDERS).read_text().replace("stabilizationWindowSeconds: 600", "selectPolicy: Disabled"))
    assert main([word.format(steady=steady, kept=kept) for word in flags]) == code
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


def test_a_project_says_once_what_is_its_own(lab, refused, monkeypatch, tmp_path):
    """[tool.elastic-lab] of the nearest pyproject.toml; a flag goes before it."""
    ours = {"scaledobject": ORDERS, "workload": ENRICHER, "profile": PEAK, "start-s": 3, "scale": "medium"}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in ours.items())
    (tmp_path / "pyproject.toml").write_text(f"[tool.elastic-lab]\n{lines}")
    monkeypatch.chdir(tmp_path)
    assert json.loads(lab("simulate", "--json")) == json.loads(lab("simulate", *THEIRS, "--json"))
    assert json.loads(lab("simulate", "--start-s=9", "--json"))["consumers"]["start_s"] == 9
    assert "--name: missing" in refused("shadow", "--context=none")  # its ScaledObject is the live one
    (tmp_path / "pyproject.toml").write_text("[tool.elastic-lab]\npartitions = 12\n")
    asked = ["sync", f"--scaledobject={ORDERS}", "--lag=1000000", "--replicas=4", "--json"]
    assert lab(*asked) == lab(*asked, "--partitions=12") != lab(*asked, "--partitions=6")
    (tmp_path / "pyproject.toml").write_text("[tool.elastic-lab]\nstart_s = 3\n")
    assert "[tool.elastic-lab] start_s: '3' is not allowed; did you mean start-s?" in refused("simulate", *THEIRS)


def test_every_error_of_both_files_is_a_line(capsys, tmp_path):
    """Of the ScaledObject and of the profile, in one run; and every flag that lacks."""
    assert main(["simulate", OBJECT, TRAFFIC]) == 2
    assert [line.split(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["--pod-rate", "--start-s"]
    theirs, traffic = tmp_path / "theirs.yaml", tmp_path / "traffic.yaml"
    theirs.write_text(Path(ORDERS).read_text().replace("maxReplicaCount", "maxReplicas").replace("consumerGroup", "group"))
    traffic.write_text("kind: steady\nrate: 1k\nduration: 30:00\n")
    assert main(["simulate", f"--scaledobject={theirs}", f"--profile={traffic}", "--pod-rate=1", START]) == 2
    lines = [line.removeprefix(f"elastic-lab: {tmp_path}/") for line in capsys.readouterr().err.splitlines()]
    shown = [line.partition(" is not")[0] for line in lines]
    assert [re.sub(r":\d+: ", " ", one) for one in shown] == [
        "theirs.yaml spec.maxReplicas: 12",
        "theirs.yaml spec.triggers[0].metadata.group: 'orders-enricher'",
        "traffic.yaml rate: '1k'",
        "traffic.yaml duration: '30:00'",
    ]


@pytest.mark.parametrize("flag", ["pod-rate", "profile", "name", "scaledobject", "workload", "chart", "scale", "x" * 400])
def test_a_value_that_is_very_long_is_a_short_line(refused, flag):
    """Also where no file could have such a name."""
    assert len(refused("simulate", *THEIRS, f"--{flag}={'x' * 1000}")) <= 300


def test_play_begins_with_a_users_own_files(refused, tmp_path):
    """Its link holds them; what can't be used is one line before anything is served."""
    parser = Flags("x", None, environment=False)
    play.add_flags(parser)
    (tmp_path / "own.yaml").write_text("{kind: steady, rate: 5, duration: 700}\n")
    begun = play.begin(parser.parse_args([f"--scaledobject={ORDERS}", f"--profile={tmp_path}/own.yaml"]))
    assert (begun.traffic, "orders-enricher" in begun.policy) == ("zipf 1.1\n0 5 baseline\n700 end", True)
    assert play.begin(parser.parse_args(["--profile=bursty"])).traffic == "bursty"
    two = Path(ORDERS).read_text() + "---\n" + Path(ORDERS).read_text().replace("orders-enricher", "b")
    (tmp_path / "two.yaml").write_text(two)
    one = play.begin(parser.parse_args([f"--scaledobject={tmp_path}/two.yaml", "--name=b"])).policy
    assert yamlfile.parse(one, "x")["metadata"]["name"] == "b"
    assert "did you mean" in refused("play", "--profile=burst")


def test_the_authors_threshold_is_the_formulas(capsys):
    """Pods of 166.67/s and the SLO of 30 s that the author gives as an example: what the payment processor deploys.

    The text's first line is the field as a ScaledObject has it; where a single message is too many, that is said.
    """
    assert main(["threshold", "--rate=166.67", "--slo=30", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    deployed = yamlfile.read(paths.MANIFESTS / "payments" / "scaledobject.yaml")["spec"]["triggers"][0]["metadata"]
    assert str(found["lagThreshold"]) == deployed["lagThreshold"] == "3750"
    assert found["behind_at_rest_s"] == pytest.approx(22.5, abs=0.01)
    assert main(["threshold", "--rate=0.1", "--slo=2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'lagThreshold: "1"'
    assert "the least there is" in lines[-1]
    for slo, said in (("6", True), ("7", False)):
        assert main(["threshold", "--rate=100", f"--slo={slo}"]) == 0
        assert ("up to 500 messages in flight" in capsys.readouterr().out) is said


@given(st.floats(1, 1e5), st.floats(0.1, 3600))
def test_a_group_at_rest_has_a_quarter_to_spare(rate, slo):
    """To within the rounding to a whole message."""
    assert abs(computed_threshold(rate, slo) - rate * slo * 0.75) <= max(0.5, 1 - rate * slo * 0.75)


@pytest.mark.parametrize(("flag", "value"), [("rate", "0"), ("rate", "fast"), ("slo", "-1"), ("slo", "1e9"), ("rate", "nan")])
def test_what_can_not_be_computed_is_one_line(capsys, flag, value):
    """Flag, value and range; exit code 2."""
    with pytest.raises(SystemExit) as end:
        main(["threshold", *[f"--{name}={value if name == flag else 1}" for name in ("rate", "slo")]])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"--{flag}: {value!r} is not allowed; allowed: 0.001 to" in line


def test_a_demo_has_an_experiment_its_profile_and_its_policy(tmp_path):
    """The files that a newcomer changes; a second demo is one of the changed files. A folder with other files is left alone."""
    folder = tmp_path / "new"
    demo.prepare(folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == set(demo.FILES)
    assert yaml.safe_load((folder / "manifests" / "scaledobjects" / "scaler.yaml").read_text())["kind"] == "ScaledObject"
    profile = folder / "profiles" / "spike.yaml"
    profile.write_text("kind: steady\n")
    demo.prepare(folder)
    assert profile.read_text() == "kind: steady\n"
    (tmp_path / "theirs.txt").write_text("theirs")
    with pytest.raises(InputError, match=r"--folder: .* is not allowed; allowed: a new folder, an empty one"):
        demo.prepare(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "theirs.txt"}
    assert main(["demo", f"--folder={tmp_path / 'theirs.txt'}"]) == 2


@pytest.mark.services
def test_the_experiment_of_a_demo_is_collected(tmp_path):
    """In the folder alone: what it imports is there, and the plugin knows its mark and its fixtures."""
    demo.prepare(tmp_path)
    words = [sys.executable, "-m", "pytest", "-m", "spike", "--setup-plan", "-p", "no:cacheprovider", "--results=results"]
    planned = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=NESTED_S, check=False)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "test_the_group_keeps_up" in planned.stdout
    assert "rootdir: " + str(tmp_path.resolve()) in planned.stdout
