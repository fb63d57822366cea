"""The order in which experiments run, which is that of every report."""

from pathlib import Path
from types import SimpleNamespace

from lab import plugin


def item(name: str, *, judging: bool = True) -> SimpleNamespace:
    """A test of the module ``name``."""
    return SimpleNamespace(
        nodeid=name,
        path=Path(f"tests/{name}.py"),
        fixturenames=[],
        get_closest_marker=lambda mark: judging and mark == "spike",
        add_marker=lambda mark: None,
    )


def test_experiments_run_in_their_natural_order() -> None:
    """1, 2, 10, then those with a name; other tests keep their places, and tests of one experiment their order."""
    config = SimpleNamespace(
        pluginmanager=SimpleNamespace(hasplugin=lambda name: False),
        option=SimpleNamespace(**dict.fromkeys(("lab_scaledobject", "lab_profile", "lab_workload", "lab_name"))),
        hook=SimpleNamespace(),
    )
    second = item("test_2_reaction")
    items = [item("test_10_lag"), item("test_code", judging=False), item("test_1_signal"), second, item("test_2_reaction")]
    items.append(item("test_model"))
    plugin.pytest_collection_modifyitems(config, items)
    names = [one.nodeid for one in items]
    assert names == ["test_1_signal", "test_code", "test_2_reaction", "test_2_reaction", "test_10_lag", "test_model"]
    assert items[2] is second
