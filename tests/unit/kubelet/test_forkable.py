"""Which commands of a pod are forked from a zygote: what comes to the same, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lab.kubelet.forking import Zygote

from .harness import IMAGES

FOLDER = IMAGES.folders["elastic-lab"]
BASE = {"PATH": f"{FOLDER}:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": "/programs", "COLOUR": "blue"}


@pytest.mark.parametrize(
    ("command", "env", "taken"),
    [
        (["python", "-m", "work"], {}, True),
        (["python3", "-m", "work", "--flag"], {"COLOUR": "red", "TZ": "Asia/Tokyo"}, True),
        ([str(FOLDER / "python"), "-m", "work"], {}, True),
        (["python", "-m", "other"], {}, False),
        (["python", "-u", "-m", "work"], {}, False),
        (["python", "work.py"], {}, False),
        (["python"], {}, False),
        (["sh", "-m", "work"], {}, False),
        (["no-such-python", "-m", "work"], {}, False),
        (["python", "-m", "work"], {"PATH": "/nowhere"}, False),
        (["python", "-m", "work"], {"PYTHONPATH": "/others"}, False),
        (["python", "-m", "work"], {"LANG": "de_DE.UTF-8"}, False),
        (["python", "-m", "work"], {"LD_PRELOAD": "/x.so"}, False),
    ],
)
def test_only_what_comes_to_the_same_is_forked(tmp_path: Path, command: list[str], env: Mapping[str, str], taken: bool) -> None:
    """A listed module of the image's own interpreter, with the variables that act before it as the zygote has them."""
    made = Zygote(tmp_path, FOLDER, ["work"], {"PYTHONPATH": "/programs"})
    assert made.takes(command, BASE | env) is taken
