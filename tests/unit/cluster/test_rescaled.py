"""A session's cluster at more than one scale."""

from lab.cluster import Rescaled
from lab.inputs import scale as scales


class Stand:
    """A cluster that writes down what is done to it."""

    def __init__(self, scale, done):
        self.scale, self._done = scale, done
        done.append(f"up {scale.name}")

    def down(self):
        """End."""
        self._done.append(f"down {self.scale.name}")

    def keep(self):
        """Leave running."""
        self._done.append(f"keep {self.scale.name}")


def test_a_cluster_at_another_scale_takes_the_place_of_the_running_one():
    """One runs at a time, and the last is ended or left running."""
    done = []
    session = Rescaled(lambda scale: Stand(scale, done))
    quick, standard = scales.load("quick"), scales.load("standard")
    assert session.at(quick) is session.at(quick)
    session.at(standard)
    session.close(keep=True)
    session.close()
    assert done == ["up quick", "down quick", "up standard", "keep standard"]
