"""Who owns what in a consumer group, as its coordinator describes it, and what changed from one answer to the next. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ASSIGNED, REVOKED = "assigned", "revoked"


@dataclass(frozen=True)
class Member:
    """A member by its member id and client id. ``partitions`` are the trial's numbers of those that it owns.

    ``elsewhere`` are topics that it owns partitions of and that are not the trial's.
    """

    identity: str
    client: str
    partitions: frozenset[int]
    elsewhere: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Handover:
    """The member ``name`` was assigned ``partitions``, or they were revoked; it ``owned`` so many then."""

    name: str
    event: str
    partitions: tuple[int, ...]
    owned: int


class Roster:
    """Follows a group through the answers about it.

    A member's name is its client id, which is the pod's where a consumer says $POD_NAME there. Where another member has that
    name already, it is the member id. A member keeps its name while it is there.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._owned: dict[str, frozenset[int]] = {}

    def update(self, members: Iterable[Member]) -> list[Handover]:
        """What changed since the answer before: first all that was revoked, then all that was assigned.

        A member that comes without partitions is assigned none. One that has gone owns nothing.
        """
        there = {member.identity: member for member in members}
        self._names = {identity: name for identity, name in self._names.items() if identity in there}
        for identity, member in there.items():
            taken = not member.client or member.client in self._names.values()
            self._names.setdefault(identity, identity if taken else member.client)
        before = self._owned
        now = self._owned = {name: there[identity].partitions for identity, name in self._names.items()}
        found = []
        for name, held in before.items():
            if gone := held - now.get(name, frozenset()):
                found.append(Handover(name, REVOKED, tuple(sorted(gone)), len(held - gone)))
        for name, owned in now.items():
            if (come := owned - before.get(name, frozenset())) or name not in before:
                found.append(Handover(name, ASSIGNED, tuple(sorted(come)), len(owned)))
        return found

    @property
    def names(self) -> dict[str, str]:
        """The name of each member by its member id."""
        return dict(self._names)
