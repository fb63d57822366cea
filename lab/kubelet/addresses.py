"""Loopback addresses for pods: each pod has its own, and none is given twice while in use."""

from __future__ import annotations

from lab.errors import LabFault

_HOSTS = 2**16


class Addresses:
    """The /16 under a prefix such as ``127.77``. The pointer moves on, so that a freed address rests before its next use."""

    def __init__(self, network: str) -> None:
        self._network = network
        self._next = 1
        self._used: set[str] = set()

    def take(self, wanted: str = "") -> str:
        """An unused address: ``wanted`` (a pod's from before a restart of the node) if it is of this network and free."""
        if wanted.startswith(f"{self._network}.") and wanted not in self._used:
            self._used.add(wanted)
            return wanted
        for _ in range(_HOSTS):
            number, self._next = self._next, (self._next + 1) % _HOSTS
            address = f"{self._network}.{number >> 8}.{number & 255}"
            if number & 255 not in (0, 255) and address not in self._used:
                self._used.add(address)
                return address
        raise LabFault(f"no free pod address is left in {self._network}.0.0/16")

    def give_back(self, address: str) -> None:
        """Mark an address as free again."""
        self._used.discard(address)
