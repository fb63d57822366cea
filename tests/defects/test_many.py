"""Many ScaledObjects, which share the operator's limit of requests to kube-apiserver."""

import time

from tests.defects.behaviour import behaviour, judge

MANY = 60  # polled once a second they want three times the 20 requests a second that the operator may make
NEVER_S = 600  # longer than any test


@behaviour(
    question="How many ScaledObjects can KEDA hold as it is shipped?",
    threads=("kedacore/keda#7613", "kedacore/keda#6789", "kedacore/keda#3730"),
    reported="With 100 to 1,600 ScaledObjects the operator logs client-side throttling of its patches, and a new one is not "
    "reconciled for minutes.",
    shown="At each poll the operator patches `status.lastActiveTime` of each active ScaledObject, one with minReplicaCount 1 "
    "too. It may make 20 requests a second, which 600 active ones use up at a pollingInterval of 30 s. With 60 of them at 1 s, "
    "which want three times the limit, a new ScaledObject waits more than five times as long for its HPA as beside 60 that "
    "are polled every ten minutes. HPAs that are there are synced as before.",
    cure="`--kube-api-qps` and `--kube-api-burst` of the operator: with 50 and 100 a thousand active ones had their HPAs "
    "([measured](decisions/68-600-active-scaledobjects-use-up-kedas-requests.md)). Or a longer pollingInterval: it delays no "
    "HPA where minReplicaCount is 1 or more.",
    price="More requests to kube-apiserver; with a longer pollingInterval a later step from zero.",
)
def test_keda_7613_patches_of_status_use_up_the_operators_requests(topic, target):
    """The time until a ScaledObject has its HPA, beside many that are polled rarely, and beside the same ones polled often."""
    group = topic()
    group.produce(50)
    many = [target(group.trigger(), pollingInterval=NEVER_S) for _ in range(MANY)]
    for one in many:
        one.wait(lambda one=one: one.hpa() is not None, "its HPA", 180)
    spared_s = seconds_to_hpa(group, target)
    for one in many:
        one.apply(pollingInterval=1)
    many[-1].wait(lambda: many[-1].requests() > 15, "the operator at its limit", 120)
    throttled_s = seconds_to_hpa(group, target)
    judge(throttled_s > 5 * spared_s, known=True, cured=False)


def seconds_to_hpa(group, target):
    """The time from applying one more ScaledObject until it has its HPA."""
    begun = time.monotonic()
    one = target(group.trigger(), pollingInterval=NEVER_S)
    one.wait(lambda: one.hpa() is not None, "its HPA", 120)
    return time.monotonic() - begun
