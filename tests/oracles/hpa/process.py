"""The running oracle: batches of cases in, what the controller did out."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from lab.errors import LabFault
from tests.oracles.hpa.build import ensure
from tests.oracles.hpa.cases import Case, Sync, read, written


class Refused(ValueError):
    """The API server's validation refuses an HPA of the case; the text is its own."""


class Oracle:
    """The program, running until it is closed. Raises :class:`LabFault` like :func:`ensure`, and when it dies."""

    def __init__(self, program: Path | None = None) -> None:
        program = program or ensure()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [str(program), "-test.run=^TestOracle$"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self._process.communicate()
        self._errors.close()

    def syncs(self, case: Case) -> list[Sync]:
        """What the real controller does at each step of ``case``. Raises :class:`Refused` when an HPA is not valid."""
        return self.batch([case])[0]

    def batch(self, cases: Sequence[Case]) -> list[list[Sync]]:
        """Like :meth:`syncs` for many cases in one exchange."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([written(case) for case in cases]) + "\n")
            self._process.stdin.flush()
            answers = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            raise LabFault(f"the HPA oracle died: {self._last_words()}") from error
        for answer in answers:
            if answer["refused"]:
                raise Refused(answer["refused"])
        return [read(answer["syncs"]) for answer in answers]

    def _last_words(self) -> str:
        self._process.kill()
        printed, _ = self._process.communicate()
        self._errors.seek(0)
        lines = [line for line in (printed + self._errors.read()).splitlines() if line.strip()]
        return next((line for line in lines if "panic" in line or "oracle" in line), lines[-1] if lines else "no output")
