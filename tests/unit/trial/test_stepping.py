"""When a group has settled after a decreed step: by what its live pods hold."""

from types import SimpleNamespace

import pytest

from lab.trial.stepping import _settled


def stage(alive, owned, ready):
    """A group of 6 partitions with these live pods; ``owned`` is what each pod said last that it holds."""
    return SimpleNamespace(
        transitions=SimpleNamespace(
            pods=lambda app: [{"metadata": {"name": name}} for name in alive],
        ),
        field=lambda *path: ready,
        reports=SimpleNamespace(owned=lambda: owned),
        inputs=SimpleNamespace(partitions=6, partitions_after=0),
    )


@pytest.mark.parametrize(
    ("alive", "owned", "ready", "settled"),
    [
        ("ab", {"a": 3, "b": 3}, 2, True),
        ("ab", {"a": 3, "b": 3, "c": 2}, 2, True),  # c was killed, and never said that it gave up its partitions
        ("ab", {"a": 2, "b": 2, "c": 2}, 2, False),  # c's are nobody's yet
        ("ab", {"a": 6, "b": 0}, 2, False),
        ("abc", {"a": 3, "b": 3}, 3, False),
        ("ab", {"a": 3, "b": 3}, 1, False),
    ],
)
def test_a_group_has_settled_when_its_live_pods_hold_everything(alive, owned, ready, settled):
    """Each of them some, all of them together each partition, and all Ready."""
    assert _settled(stage(alive, owned, ready), len(alive)) is settled
