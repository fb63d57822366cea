"""Kafka's protocol by hand: what a listener answers one who has not logged in, which no client library asks it."""

from __future__ import annotations

import socket
import struct

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
REFUSED = 58  # SASL_AUTHENTICATION_FAILED
ANSWERS_S = 60
# A write and a read that broker and controller both answer, each as (key, version, body).
CREATE_TOPIC = (19, 4, struct.pack(">ih8sihiiib", 1, 8, b"stranger", 1, 1, 0, 0, 1000, True))  # checked, and not made
DESCRIBE_BROKER = (32, 1, struct.pack(">ibh1sib", 1, 4, 1, b"1", -1, False))


class Wire:
    """A connection to the listener on ``port`` of this machine."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWERS_S)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, key: int, version: int, body: bytes) -> bytes | None:
        """The body of the answer; None where the other side closes the connection in place of one."""
        request = struct.pack(">hhih4s", key, version, 7, 4, b"wire") + body
        try:
            self._socket.sendall(struct.pack(">i", len(request)) + request)
            size = self._read(4)
            answer = self._read(struct.unpack(">i", size)[0]) if size else b""
        except ConnectionError:
            return None
        return answer[4:] or None

    def mechanisms(self, wanted: str = "PLAIN") -> bytes | None:
        """What it says of the mechanisms it takes, when asked for ``wanted``: an error, 0 for none, and their names."""
        return self.ask(SASL_HANDSHAKE, 1, _text(wanted))

    def log_in(self, user: str, password: str) -> int | None:
        """Kafka's error for a login by PLAIN, 0 for none; None where it says nothing."""
        self.mechanisms()
        told = f"\0{user}\0{password}".encode()
        answer = self.ask(SASL_AUTHENTICATE, 0, struct.pack(">i", len(told)) + told)
        return None if answer is None else int(struct.unpack(">h", answer[:2])[0])

    def _read(self, size: int) -> bytes:
        """That many bytes; fewer at the connection's end."""
        found = b""
        while len(found) < size and (part := self._socket.recv(size - len(found))):
            found += part
        return found


def asks_for_login(port: int) -> bool:
    """Whether the listener on ``port`` offers a login by PLAIN alone, and answers no other request before it."""
    with Wire(port) as offered:
        if offered.mechanisms() != struct.pack(">hi", 0, 1) + _text("PLAIN"):
            return False
    for request in (CREATE_TOPIC, DESCRIBE_BROKER):
        with Wire(port) as stranger:
            if stranger.ask(*request) is not None:
                return False
    return True


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
