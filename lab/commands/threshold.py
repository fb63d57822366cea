"""``elastic-lab threshold``: it computes the lagThreshold from a pod's rate and an SLO."""

from __future__ import annotations

import math
from argparse import Namespace

from lab.commands.text import as_json
from lab.errors import BREACHED, HELD
from lab.flags import Flags, number
from lab.foresee.in_flight import CLIENTS_COMMIT_S
from lab.foresee.variants import HEADROOM, computed_threshold


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("rate", number(0.001, 1e6), None, "messages/s that one pod processes at most", "0.001 to 1,000,000")
    parser.flag("slo", number(0.001, 86_400), None, "seconds within which a message is to be processed", "0.001 to 86,400")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> int:
    """Compute and print. Returns the exit code: an SLO that no lagThreshold meets is breached."""
    threshold = computed_threshold(options.rate, options.slo)
    behind = threshold / options.rate
    code = BREACHED if behind > options.slo else HELD
    if options.json:
        print(as_json({"lagThreshold": threshold, "rate": options.rate, "slo_s": options.slo, "behind_at_rest_s": behind}))
        return code
    print(f'lagThreshold: "{threshold}"')
    print(f"  = {options.rate:g} messages/s x {options.slo:g} s x {HEADROOM:g}")
    print(f"  a group at rest is then behind by {behind:.3g} s: lagThreshold / rate")
    if threshold < (flying := math.ceil(options.rate * CLIENTS_COMMIT_S)):
        default = f"a commit every {CLIENTS_COMMIT_S:g} s, the default of Kafka's clients"
        print(f"  a busy pod has up to {flying:,} messages in flight by {default}: they count as lag, and buy pods")
    if code == BREACHED:
        print(f"  the least there is: a pod that slow is behind by more than {options.slo:g} s with a single message waiting")
    return code
