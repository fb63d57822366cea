"""trial.json: written and read through its types, published as a JSON Schema; another version or field is one clear line."""

import json
from dataclasses import fields, replace

import pytest

from lab import paths
from lab.errors import InputError
from lab.inputs.anchor import Schedule
from lab.inputs.inputs import Inputs
from lab.record import seal, trial
from lab.record.trial import Anchor, Deadlines, Duet, Fault, Offsets, Step, Turn, WatchGap
from tests.unit.measure import whole

SCHEMA = paths.PROJECT / "lab" / "record" / "trial.schema.json"
FULL = whole.trial(
    whole.inputs(),
    times={"settling": 1.0, "ended": 9.5},
    ledger_s=2.5,
    offsets={0: Offsets(7, None), 3: Offsets(5, 5)},
    steps=(Step(1.0, "control", 3, 3, 2.0, 3.0),),
    events=({"t": 4.0, "until": 4.1, "due": 3.9, "phase": "baseline", "event": "kill", "result": {"pod": "a"}},),
    faults=(Fault(4.0, "sigkill", "a", 17, 2),),
    faults_from="seed 3",
    deadlines=Deadlines(1, 2, 3, 4),
    watch_gaps=(WatchGap("Pod", 1.5, 1.75),),
    turn=Turn(7, 2, 1, 3),
    duet=Duet("other-00000000.2", first=True),
    anchor=Anchor("2026-01-15T07:54:00+00:00", 90.0, 40.0, 91.0, (Schedule("start", "57 7 * * * UTC", "2 0 1 1 * UTC"),)),
    files={"a": "b"},
)


def test_what_is_written_is_read_again(tmp_path):
    """Every field, and the version first."""
    FULL.write(tmp_path)
    content = json.loads((tmp_path / seal.FILE).read_text())
    assert next(iter(content.items())) == ("schema", 2)
    assert content["watch_gaps"] == [{"kind": "Pod", "from": 1.5, "until": 1.75}]
    again = trial.read(tmp_path)
    assert again.files == {"a": "b", seal.FILE: content["files"][seal.FILE]}
    assert replace(again, inputs=FULL.inputs, files=FULL.files) == FULL
    assert again.inputs.to_dict() == FULL.inputs.to_dict()


def test_the_published_schema_is_that_of_the_types():
    """After a change of the types: ``python -m lab.record.trial > lab/record/trial.schema.json``. It is in the wheel."""
    assert '"trial.schema.json"]' in (paths.PROJECT / "pyproject.toml").read_text()
    published = json.loads(SCHEMA.read_text())
    assert published == json.loads(json.dumps(trial.json_schema()))
    inputs = published["$defs"][published["properties"]["inputs"]["$ref"].rpartition("/")[2]]
    kept = {field.name for field in fields(Inputs)} - {"during", "faults_from", "library", "policy_times", "policy_lags"}
    assert set(inputs["properties"]) == kept | {"events"}
    assert set(FULL.to_json()) == set(published["properties"])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"schema": 1}, "schema: 1 is not allowed; allowed: 2: this record is of another version"),
        ({"schema": True}, "schema: True is not allowed"),
        ({"begun": "noon"}, "begun: 'noon' is not allowed; allowed: a valid number"),
        ({"machine": {}}, "machine.cpu: missing; allowed: a value"),
        ({"mood": 1}, "mood: 1 is not allowed; allowed: no field of that name"),
        ({"offsets": {"x": {"end": 1, "committed": 1}}}, "offsets.x"),
        ({"inputs": {}}, "inputs.profile_name: missing; allowed: a value"),
        ({"seed": "1"}, "inputs.seed: '1' is not allowed; allowed: a whole number"),
        ({"scale": {"name": "x"}}, "inputs.scale.time: missing; allowed: a value"),
        ({"workload": {"concurrency": 0}}, "concurrency: 0 is not allowed; allowed: 1 to"),
        ({"events": [3]}, "inputs.events[0]: 3 is not allowed; allowed: a mapping"),
        ({"events": [{"phase": "flood", "event": "kill"}]}, "inputs: phase of an event: 'flood' is not allowed"),
        ({"weather": "fine"}, "inputs.weather: 'fine' is not allowed"),
    ],
)
def test_what_no_trial_writes_is_refused_in_one_line(change, line, tmp_path):
    """It names the file, the field, its value and what is allowed; most changes are of the inputs."""
    if not line.startswith(tuple(change)):
        change = {"inputs": FULL.inputs.to_dict() | change}
    (tmp_path / seal.FILE).write_text(json.dumps(FULL.to_json() | change))
    with pytest.raises(InputError) as refused:
        trial.read(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / seal.FILE}: {line}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["{", "[]", "7", ""])
def test_a_file_that_is_no_trial_is_refused(content, tmp_path):
    """And so is none at all."""
    with pytest.raises(InputError, match=r"trial.json: content: "):
        trial.read(tmp_path)
    (tmp_path / seal.FILE).write_text(content)
    with pytest.raises(InputError, match=r"trial.json: content: "):
        trial.read(tmp_path)
