"""``elastic-lab measures``: the list of all measures, and one of them with its units."""

import importlib
import pkgutil

import lab.measure
from lab.__main__ import main
from lab.commands.measures import entries
from lab.judge.measure import Measure


def test_every_measure_is_listed(capsys):
    """A class that no listed function computes would be in no list; each has a first sentence."""
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(lab.measure.__path__, "lab.measure.")]
    kinds = {one for module in modules for one in vars(module).values() if isinstance(one, type) and issubclass(one, Measure)}
    fields = {row[2] for entry in entries() for row in entry.rows}
    assert {item.name for kind in kinds for item in kind.declared().values()} <= fields
    assert main(["measures"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [entry.name for entry in entries()]
    assert all(len(line.split()) > 1 for line in listed)


def test_one_measure_is_shown_with_its_units(capsys):
    """Its formulas, and each field with unit and name; a name that no measure has is bad input."""
    assert main(["measures", "cold_start"]) == 0
    shown = capsys.readouterr().out
    assert "medians over the pods" in shown
    assert "pods     pods  new pods that came to work\n" in shown
    assert main(["measures", "luck"]) == 2
    assert "allowed: agreement, " in capsys.readouterr().err
