"""The example that the commands are asked about: an orders' ScaledObject, its workload and an evening's traffic."""

from pathlib import Path

import yaml

from lab import paths

EXAMPLES = paths.PROJECT / "docs" / "examples"
ORDERS, ENRICHER, PEAK = (str(EXAMPLES / f"{name}.yaml") for name in ("orders", "enricher", "evening-peak"))
OBJECT, WORK, TRAFFIC, START = (f"--scaledobject={ORDERS}", f"--workload={ENRICHER}", f"--profile={PEAK}", "--start-s=3")
THEIRS = [OBJECT, WORK, TRAFFIC, START]
LAG = yaml.safe_load(Path(ORDERS).read_text())["spec"]["triggers"][0]


def triggered(folder, *triggers):
    """The file of the orders' ScaledObject with these triggers."""
    content = yaml.safe_load(Path(ORDERS).read_text())
    content["spec"]["triggers"] = list(triggers)
    (folder / "theirs.yaml").write_text(yaml.safe_dump(content))
    return folder / "theirs.yaml"
