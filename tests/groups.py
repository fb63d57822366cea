"""The scheduler of ``pytest -n N --dist loadscope``: a group of tests at a time, and one group when all else has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


def scheduler(config: pytest.Config, log: Any, group: Callable[[str], str], alone: str) -> Any:
    """A scheduler of pytest-xdist that gives a worker one group after another.

    ``group`` names the group of a test by its node id. Groups begin in the order in which their first tests were collected;
    left to itself pytest-xdist begins with the group of most tests, which is not the longest. The group ``alone`` begins when
    every worker but one has ended, with all that its session had started.
    """
    config.option.loadscopereorder = False
    # Only the environments that are for the lab's own tests have it.
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc] # has no types
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            """Give ``node`` the next group. The last one is held until ``node`` is the only one; until then the others end."""
            if alone in self.workqueue:
                self.workqueue.move_to_end(alone)
            if next(iter(self.workqueue)) == alone and len(self.nodes) > 1:
                if sum(not one.shutting_down for one in self.nodes) > 1:
                    node.shutdown()
                return
            super()._assign_work_unit(node)

        def remove_node(self, node: WorkerController) -> str | None:
            """Note that ``node`` has ended; the one that remains is given the last group."""
            crashed: str | None = super().remove_node(node)
            if self.workqueue:
                for one in self.nodes:
                    self._reschedule(one)
            return crashed

    return Groups(config, log)
