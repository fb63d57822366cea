"""``python -m lab.board``: watch a running trial in the browser. ``--write``: write the Grafana dashboard instead."""

from __future__ import annotations

import argparse
import re
import sys
from urllib.parse import urlsplit

from lab.errors import BAD_INPUT, InputError, LabFault
from lab.flags import NAME, Flags, number, whole
from lab.host import runs


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text.rstrip("/")


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text):
        raise ValueError(text)
    return text


def flags() -> Flags:
    """The board's flags. None is read from the environment, because PORT or NAMESPACE there belong to other programs."""
    parser = Flags("python -m lab.board", __doc__, environment=False)
    text = "Prometheus to ask [default: the newest running cluster's]"
    parser.flag("prometheus", _url, None, text, "http://HOST:PORT", optional=True)
    text = "namespace to show [default: the newest trial's, always]"
    parser.flag("namespace", _name, None, text, "a namespace's name", optional=True)
    parser.flag("port", whole(0, 65_535), 8050, "loopback port to serve on; 0 picks one", "0 to 65,535")
    parser.flag("minutes", number(0.5, 720), 5.0, "how much time is shown", "0.5 to 720")
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
        print(f"{NAME}: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        pass
    return 0


def _serve(options: argparse.Namespace) -> None:
    # Imported here, because --help and --write need no web server.
    from lab.board import serving
    from lab.board.app import Board, create
    from lab.board.source import Source

    url = options.prometheus or runs.prometheus()
    if url is None:
        raise LabFault("--prometheus: no running cluster found; give its URL, or start one with pytest --keep-cluster")
    with serving.listening(options.port) as listener:
        try:
            app = create(Board(Source(url), options.minutes, options.namespace))
        except LabFault as fault:
            raise LabFault(f"--prometheus: {fault}") from fault
        said = f"board: {serving.address(listener)} (Prometheus at {url}); Ctrl-C ends it"
        serving.serve(listener, app.server, said)


if __name__ == "__main__":
    sys.exit(main())
