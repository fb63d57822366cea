"""The pods' network: a /16 of loopback addresses that no other run on this machine has, of any user and with any cache."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from lab.errors import LabFault

FIRST, LAST = 16, 249
SOCKET = "\0elastic-lab-pods-{}"


@dataclass(frozen=True)
class Claim:
    """A claimed network: the first two octets of its addresses, and the socket that holds it.

    An abstract socket's name belongs to one network namespace, as the loopback addresses do. The kernel gives it to one socket,
    of any user, and takes it back when the last process that has the socket open is gone. So there is nothing to clean up.
    """

    prefix: str
    holder: socket.socket

    @property
    def fileno(self) -> int:
        """The descriptor by which another process holds the network as well: the node, which lives as long as its pods."""
        return self.holder.fileno()

    def close(self) -> None:
        """Release the network here; a process that has inherited it goes on holding it."""
        self.holder.close()


def claim() -> Claim:
    """The first network that nobody holds. Raises :class:`LabFault` when there is none."""
    for octet in range(FIRST, LAST + 1):
        prefix = f"127.{octet}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(SOCKET.format(prefix))
        except OSError:
            holder.close()
            continue
        return Claim(prefix, holder)
    raise LabFault(f"no free pod network: clusters hold all of 127.{FIRST} to 127.{LAST}; python -m lab down ends those kept")
