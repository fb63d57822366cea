"""Command-line options of the suite; everything else is in fixtures/."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = [f"fixtures.{name}" for name in ("cluster", "kafka", "spark", "trial", "own", "outcome", "evidence")]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of an experiment session; ``--keep-cluster`` is pytest-kind's and means the same here."""
    group = parser.getgroup("elastic lab")
    group.addoption("--cluster", choices=("binary", "kind"), default="binary", help="runtime (default: binary)")
    group.addoption("--scale", default="quick", help="quick, standard or full: see profiles/scales.yaml (default: quick)")
    group.addoption("--results", type=Path, default=Path("results"), help="where records, verdicts and report go")
    group.addoption("--repeat", type=int, default=1, metavar="N", help="runs of each trial that is repeated (default: 1)")
    group.addoption("--from-records", type=Path, metavar="DIR", help="judge stored records; starts no cluster")
    group.addoption("--recheck", action="store_true", help="with --from-records: settle each ledger again, and compare")
    for name, what in (("scaledobject", "ScaledObject"), ("profile", "traffic profile"), ("workload", "workload")):
        text = f"your own {what}: runs the acceptance instead of the lab's experiments (docs/bring-your-own.md)"
        group.addoption(f"--{name}", type=Path, metavar="FILE", help=text)
    group.addoption("--spark-master", default="local[*]", help="Spark master of the ledger (default: local[*])")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Experiments always leave Allure results beside their records."""
    marks = config.getoption("markexpr", "")
    live = any(mark in marks and f"not {mark}" not in marks for mark in ("spike", "scenario"))
    if live and not config.option.collectonly and not config.getoption("allure_report_dir"):
        config.option.allure_report_dir = str(config.getoption("--results") / "allure-results")
        config.option.clean_alluredir = True
