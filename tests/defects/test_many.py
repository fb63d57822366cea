"""Many ScaledObjects, which share the operator's limit of requests to kube-apiserver."""

import logging
import time

from tests.defects.behaviour import behaviour, judge

log = logging.getLogger(__name__)

MANY = 40  # polled once a second they want twice the 20 requests a second that the operator may make
AT_LIMIT = 15  # requests a second: fewer leave room for a new ScaledObject
CALM = 2  # requests a second
SLOWER = 5  # a request waits behind 20 others for 1 s, and a new ScaledObject needs several; alone it takes less than 1 s
REQUESTS = 'rest_client_requests_total{job="keda"}'
RECONCILED = 'controller_runtime_reconcile_total{controller="scaledobject"}'
NEVER_S = 600  # longer than any test


@behaviour(
    question="How many ScaledObjects can KEDA hold as it is shipped?",
    threads=("kedacore/keda#7613", "kedacore/keda#6789", "kedacore/keda#3730"),
    reported="With 100 to 1,600 ScaledObjects the operator logs client-side throttling of its patches, and a new one is not "
    "reconciled for minutes.",
    shown="At each poll the operator patches `status.lastActiveTime` of each active ScaledObject, also with a minReplicaCount "
    "of 1. It may make 20 requests a second, which 600 active ones use up at a pollingInterval of 30 s. With 40 at 1 s, "
    "which want twice the limit, a new ScaledObject waits more than five times as long for its HPA as beside 40 that "
    "are polled every ten minutes. HPAs that are there are synced as before.",
    cure="`--kube-api-qps` and `--kube-api-burst` of the operator: with 50 and 100 a thousand active ones had their HPAs "
    "([how cost grows](handbook.md#how-many-scaledobjects-can-keda-hold)). Or a longer pollingInterval: it delays no HPA where "
    "minReplicaCount is 1 or more.",
    price="More requests to kube-apiserver; with a longer pollingInterval a later step from zero.",
)
def test_keda_7613_patches_of_status_use_up_the_operators_requests(topic, target):
    """The time until a ScaledObject has its HPA, beside many that are polled rarely, and beside the same ones polled often."""
    group = topic()
    group.produce(50)
    many = [target(group.trigger(), pollingInterval=NEVER_S) for _ in range(MANY)]
    for one in many:
        one.wait(lambda one=one: one.hpa() is not None, "its HPA", 180)
    # The operator's own work on them is done by then, and its allowance of 30 requests in a burst is there again.
    many[-1].wait(lambda: many[-1].rate(RECONCILED) == 0 and many[-1].rate(REQUESTS) < CALM, "a calm operator", 120)
    spared_s = seconds_to_hpa(group, target)
    for one in many:
        one.apply(pollingInterval=1)
    # The change of the interval is reconciled by then: what is left are the polls.
    many[-1].wait(lambda: many[-1].rate(RECONCILED) == 0 and many[-1].rate(REQUESTS) > AT_LIMIT, "polls at the limit", 240)
    throttled_s = seconds_to_hpa(group, target)
    log.info("an HPA after %.1f s, and after %.1f s at the limit: more than %g times as long", spared_s, throttled_s, SLOWER)
    judge(throttled_s > SLOWER * spared_s, known=True, cured=False)


def seconds_to_hpa(group, target):
    """The time from applying one more ScaledObject until it has its HPA."""
    begun = time.monotonic()
    one = target(group.trigger(), pollingInterval=NEVER_S)
    one.wait(lambda: one.hpa() is not None, "its HPA", 120)
    return time.monotonic() - begun
