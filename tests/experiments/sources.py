"""Sources that claims of several experiments and scenarios share, and the kinds of claim that go with them."""

DESIGN = "the experiment's design"
TEXT = "text 1, section 5"
GIVES_BACK = "text 1, section 5: gives back"
NO_NOISE = "text 1, section 5: no scaling on noise"
PATTERN = "text 2, pattern: inertia"
SHUTDOWN = "text 2: graceful shutdown"
ORACLES = "the pinned Go code of the HPA/KEDA (tests/oracles)"
LARGEST = "Kubernetes' docs: of several metrics the HPA takes the largest number"
MODEL = "the lab's model of the controller (python -m lab simulate): 0 flips"
ACTIVATION = "KEDA's docs: activationLagThreshold"
STAMPS = "the order of a member's own stamps"

# Keywords of a claim: its kind and its source.
CONTROL = {"kind": "control", "source": DESIGN}
ORACLE = {"kind": "invariant", "source": ORACLES}
ONCE = {
    "kind": "invariant",
    "source": "delivery contract (docs/decisions/11, 18): every event exactly once where the group drains",
}
ANSWERED = {"kind": "invariant", "source": "contract of the answer 202"}
