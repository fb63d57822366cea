"""A page for this machine alone: it is served on loopback, and answers no request that names another host."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask, request
from werkzeug.sansio.utils import host_is_trusted
from werkzeug.serving import make_server

from lab.errors import InputError

HOST = "127.0.0.1"


def refuse() -> tuple[str, int] | None:
    """Answer nothing to a page that gave its own name this address: for Flask, before each request."""
    return None if host_is_trusted(request.host, (HOST, "localhost")) else ("another host\n", 403)


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A socket that listens on ``port`` of loopback, any free one for 0. Raises :class:`InputError` where it is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise InputError("command line", "--port", port, f"a free port of {HOST} ({error.strerror})") from error
        listener.listen()
        yield listener


def address(listener: socket.socket) -> str:
    """The address of the page that ``listener`` waits for."""
    return f"http://{HOST}:{listener.getsockname()[1]}"


def serve(listener: socket.socket, app: Flask, said: str) -> None:
    """Print the line ``said``, and answer until interrupted."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for every refresh
    server = make_server(HOST, listener.getsockname()[1], app, threaded=True, fd=listener.fileno())
    print(said, flush=True)
    server.serve_forever()
