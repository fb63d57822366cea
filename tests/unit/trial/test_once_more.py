"""An invalid trial is run once more, and no more than once."""

import pytest

from lab.trial.once_more import once_more


@pytest.mark.parametrize(
    ("reasons", "runs"),
    [([""], 1), (["steal", ""], 2), (["steal", "steal", ""], 2)],
)
def test_a_trial_is_repeated_once_where_it_is_invalid(reasons, runs):
    """The last result counts; a second that is invalid too is left at that, and stays invalid."""
    executed = []

    def execute(chosen, *, turn):
        executed.append((chosen, turn))
        return len(executed)

    assert once_more(execute, lambda result: reasons[result - 1])("a trial", turn=1) == runs
    assert executed == [("a trial", 1)] * runs
