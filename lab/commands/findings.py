"""``elastic-lab findings``: the page of a session's evidence, which is committed beside its records, and the index of such."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.flags import Flags


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Write the page, and the index of all such; returns 0 whatever the verdicts are.

    Raises :class:`lab.errors.InputError` where no session is, and for an index's page without its marks.
    """
    parser = Flags(f"elastic-lab {command}", help_text, environment=False)
    parser.add_argument("results", type=Path, help="the results of a session")
    parser.flag("to", Path, None, "the folder of the page [default: RESULTS itself]", optional=True)
    text = "the page whose index of all sessions beside this one is written anew [default: none]"
    parser.flag("index", Path, None, text, optional=True)
    options = parser.parse_args(arguments)
    from lab.report import evidenceindex, findings

    page = findings.write(findings.read(options.results), options.to or options.results)
    print(page)
    if options.index:
        evidenceindex.update(options.index, page.parent.parent)
        print(options.index)
    return 0
