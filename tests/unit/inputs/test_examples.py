"""KEDA's own examples, of its documentation and its end-to-end tests: what the lab says to each, in a table."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from lab import yamlfile
from lab.errors import InputError
from lab.foresee.group import Consumers
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.foresee.usage import Footprint
from lab.inputs import scaledobject
from lab.inputs.adopt import adopt
from lab.inputs.profile import Profile, Step
from lab.inputs.scale import Scale
from lab.inputs.topics import MOST
from lab.inputs.triggers import parsing

EXAMPLES = yamlfile.load((Path(__file__).parent / "data" / "keda-examples.yaml").read_text())
TAKEN = "taken"
TRAFFIC = Profile((Step(0, 1, "baseline"),), 60, begins_at=datetime(2026, 1, 15, tzinfo=UTC))
PODS = Consumers(100.0, 3.0, footprint=Footprint(100, 1.0))
KNOWN = Situation(TRAFFIC, np.full(MOST, 1 / MOST), PODS, topics=MOST)  # all that a user may say


def answer(use, *given):
    """What ``use`` says against what it is given, without the file's name."""
    try:
        use(*given)
    except InputError as error:
        return str(error).replace("example.yaml: ", "")
    return TAKEN


def answers(content):
    """The answers of the reader and, where it takes the object, of a trial and of the model."""
    found = {"read": answer(scaledobject.parse, content, "example.yaml")}
    if found["read"] == TAKEN:
        read = scaledobject.parse(content, "example.yaml")
        found["trial"] = answer(lambda: adopt(read)[0].compressed(Scale("quick", 30, 1)))
        found["simulate"] = answer(Scaler, read, KNOWN)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["source"].partition(" ")[2])
def test_each_example_has_its_answer(example):
    """Taken, or refused for the reason in the table."""
    expected = {name: example[name] for name in ("read", "trial", "simulate") if name in example}
    assert answers(example["scaledobject"]) == expected


def test_every_type_that_is_read_has_examples_that_are_taken():
    """Whatever a trigger is, something that KEDA shows of it can be used."""
    taken = {one["type"] for row in EXAMPLES if row["read"] == TAKEN for one in row["scaledobject"]["spec"]["triggers"]}
    assert taken == parsing.TYPES.keys()
