"""``python -m lab.board``: watch a running trial in the browser. ``--write``: write the Grafana dashboard instead."""

from __future__ import annotations

import argparse
import logging
import re
import socket
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from lab.cluster import runs
from lab.errors import InputError, LabFault
from lab.flags import Flags, number, whole

HOST = "127.0.0.1"


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text.rstrip("/")


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text):
        raise ValueError(text)
    return text


def _checked(kind: Callable[[str], Any], allowed: str) -> Callable[[str], Any]:
    """``kind`` with a refusal that says what is allowed."""

    def convert(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: {allowed}") from None

    return convert


def flags() -> Flags:
    """The board's flags. None is read from the environment: PORT or NAMESPACE there are someone else's."""
    parser = Flags(prog="python -m lab.board", description=__doc__)
    for name, kind, allowed, default, text in (
        ("prometheus", _url, "http://HOST:PORT", None, "Prometheus to ask (default: the newest running cluster's)"),
        ("namespace", _name, "a namespace's name", None, "namespace to show (default: the newest trial's, always)"),
        ("port", whole(0, 65_535), "0 to 65,535", 8050, "loopback port to serve on; 0 picks one (default: 8050)"),
        ("minutes", number(0.5, 720), "0.5 to 720", 5.0, "how much time is shown (default: 5)"),
    ):
        parser.add_argument(f"--{name}", type=_checked(kind, allowed), default=default, help=text)
    parser.add_argument("--write", action="store_true", help="write manifests/grafana/dashboards/elastic-lab.json and end")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Serve the board until interrupted; returns the exit code."""
    options = flags().parse_args(arguments)
    try:
        if options.write:
            from lab.board import grafana

            grafana.write()
            print(grafana.FILE)
        else:
            _serve(options)
    except (InputError, LabFault) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _serve(options: argparse.Namespace) -> None:
    # Imported here: --help and --write have no use for a web server.
    from werkzeug.serving import make_server

    from lab.board.app import Board, create
    from lab.board.source import Source

    url = options.prometheus or runs.prometheus()
    if url is None:
        raise LabFault("--prometheus: no running cluster found; give its URL, or start one with pytest --keep-cluster")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, options.port))
        except OSError as error:
            allowed = f"a free port of {HOST} ({error.strerror})"
            raise LabFault(f"--port: {options.port} is not allowed; allowed: {allowed}") from error
        listener.listen()
        try:
            app = create(Board(Source(url), options.minutes, options.namespace))
        except LabFault as fault:
            raise LabFault(f"--prometheus: {fault}") from fault
        port = listener.getsockname()[1]
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # not a line for every refresh
        server = make_server(HOST, port, app.server, threaded=True, fd=listener.fileno())
        print(f"board: http://{HOST}:{port} (Prometheus at {url}); Ctrl-C ends it", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
