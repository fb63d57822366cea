"""Ten bursts, with pods that start at once or slowly, and a policy's price on them: shared by the experiments on flapping."""

from lab.judge.bounds import TIME_BEHIND_S
from lab.measure.cost import cost
from lab.measure.drain import drain_time
from lab.measure.lag import swing
from lab.measure.lateness import behind
from lab.measure.reaction.bursts import bursts_met, reactions
from lab.measure.reaction.hpa_readings import readings
from lab.measure.rebalance import rebalances
from lab.measure.scaling import scale_events
from tests.experiments.workloads import slim

TEN_BURSTS = {"profile": "ten-bursts", "workload": slim()}
SLOW_START = {"profile": "ten-bursts", "workload": slim(start_s=45)}  # an image that is pulled and a JVM that warms up, s


def report_price(evidence, found):
    """Writes flips, scaling events and price of each policy (runs by name) into the report."""
    for name, runs in found.items():
        events = scale_events(runs)
        figures = {"flips": events.flips, "scaling events": events.scale_ups + events.scale_downs}
        figures |= {"rebalances": rebalances(runs).rebalances, "pod-minutes": cost(runs).pod_minutes}
        figures |= {"late (s)": behind(runs, TIME_BEHIND_S), "drain (s)": drain_time(runs)}
        seen = readings(runs)
        figures |= {"lag swings by (s of traffic)": swing(runs), "of that the HPA reads in a burst": seen.share}
        figures |= {"bursts met at the floor": bursts_met(runs).bursts, "their slowest reaction (s)": reactions(runs).slowest_s}
        evidence.report(name, figures | {"read in each burst (s of traffic)": seen.renewing_s})
