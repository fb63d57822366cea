"""The schemas by which editors complete a profile and a workload: those of the models, and named in each committed file."""

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from lab import paths
from lab.errors import InputError
from lab.inputs import editors, profile, workload
from lab.inputs.workload import Workload

FILES = [*paths.PROFILES.glob("*.yaml"), *(paths.PROJECT / "docs" / "examples").glob("*.yaml")]
PROFILES = {kind["properties"]["kind"]["const"]: kind for kind in profile.json_schema()["oneOf"]}


@pytest.mark.parametrize(("file", "schema"), editors.SCHEMAS.items(), ids=[file.name for file in editors.SCHEMAS])
def test_what_is_published_is_of_the_model(file, schema):
    """``python -m lab.inputs.editors`` writes it."""
    assert json.loads(file.read_text()) == json.loads(json.dumps(schema()))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_committed_file_names_its_schema_and_keeps_it(file):
    """In its first line, relative to its own folder."""
    content, (first, *_) = yaml.safe_load(file.read_text()), file.read_text().splitlines()
    kind = content.get("kind")
    schema = "workload" if kind == "Workload" else "profile" if kind in profile.KINDS else None
    named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert (named is not None) == (schema is not None)
    if named:
        there = Path(os.path.normpath(file.parent / named[1]))
        assert there == paths.PROFILES / f"{schema}.schema.json"
        jsonschema.validate(content, json.loads(there.read_text()))


def _takes(read, content):
    """Whether the model takes ``content``."""
    try:
        read(content, "file.yaml")
    except InputError:
        return False
    return True


def _numbers(schema, base, read):
    """Each number of a schema: a file with its least and most, and with one beyond either."""
    for name, field in schema["properties"].items():
        if "maximum" in field:
            low, high = field["minimum"], field["maximum"]
            yield from ((name, {**base, name: value}, read, True) for value in (low, high))
            yield from ((name, {**base, name: value}, read, False) for value in (low - 1, high + 1))


SHAPE = {"rate": 1, "duration": 10_000, "baseline": 1, "spike_hold": 1, "spike_mult": 1, "every": 2, "bursts": 1}
BOUNDS = [*_numbers(workload.json_schema(), {}, Workload.of)]
BOUNDS = [one for one in BOUNDS if one[0] != "partitions"]  # of the file, and no setting
for kind, schema in PROFILES.items():
    given = {"kind": kind, **{name: SHAPE[name] for name in schema["properties"] if name in SHAPE}}
    given |= {"steps": [{"at": 0, "rate": 1}]} if kind == "steps" else {}
    BOUNDS += _numbers(schema, given, profile.build)
TOGETHER = (
    "baseline",
    "spike_hold",
    "duration",
    "every",
    "bursts",
    "spike_mult",
    "store_contention",
    "session_timeout_ms",
    "max_poll_ms",
    "heartbeat_ms",
    "partition_fetch_kib",
)


@pytest.mark.parametrize(("name", "content", "read", "fits"), BOUNDS)
def test_a_bound_is_that_of_the_model(name, content, read, fits):
    """What the schema refuses, the model refuses; what it takes, the model takes, but for what does not fit together."""
    assert _takes(read, content) == fits or (fits and name in TOGETHER)


@pytest.mark.parametrize(("kind", "own"), [(kind, set(schema["properties"])) for kind, schema in PROFILES.items()])
def test_a_profile_has_these_fields_and_no_others(kind, own):
    """Of its kind; a field of another kind is refused by both."""
    every = set().union(*(schema["properties"] for schema in PROFILES.values()))
    given = {"rate": 1, "duration": 10_000, "steps": [{"at": 0, "rate": 1}]}
    given = {"kind": kind, **{name: value for name, value in given.items() if name in own}}
    for name in every - own:
        with pytest.raises(InputError, match=name):
            profile.build(given | {name: 1}, "file.yaml")
