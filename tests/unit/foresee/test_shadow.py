"""Shadow: an HPA that the model plays, or a trial's own, seen by its watch alone; and what a candidate would ask for there."""

from __future__ import annotations

import copy
import json
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import validation
from lab.__main__ import main
from lab.commands import answers
from lab.errors import InputError
from lab.foresee import shadow
from lab.foresee.candidate import Comparison
from lab.foresee.shadow import AGREED, EDGE, OTHERWISE, UNREAD, WARMING
from lab.foresee.situation import controller_of
from lab.inputs import scaledobject
from lab.model import hpa, keda
from lab.model.hpa import Controller, State
from lab.record import live
from lab.record.tables import Watched
from tests import explained
from tests.records import FOLDER
from tests.unit.foresee.test_explain import BEGIN, BRISK, ORDERS, ORDERS_FILE, SLOW, SYNC_S, policy

UNCAPPED = {"allowIdleConsumers": "true"}
WAVE = [lag for lag in (9_000, 25_000, 12_000, 6_000, 18_000) * 4 for _ in range(7)]


def seen(scaled, lags, controller=hpa.DEFAULTS, begin=0, failing=(), late=lambda number: 0.0):
    """The watch events of the HPA and of its Deployment, and the syncs: one on each of ``lags``, watched from ``begin`` on."""
    made = keda.hpa(scaled)
    spec, state, replicas = hpa.parse(made, "played"), State(), scaled.min_replicas
    status: dict = {}
    hpas, target, syncs = [], [event(BEGIN - 30, pods(replicas), "target")], []
    kept: dict = {}
    for number, lag in enumerate(lags):
        t = BEGIN + number * SYNC_S
        values = [None] if number in failing else [hpa.external(lag)]
        decision, state = hpa.decide(spec, state, replicas, values, t, controller=controller)
        for one in decision.conditions:
            kept[one.type] = {"type": one.type, "status": str(one.status), "reason": one.reason}
        current = {"averageValue": f"{math.ceil(1000 * lag / max(1, replicas))}m"}
        metric = {} if number in failing else {"external": {"metric": {"name": spec.metrics[0].name}, "current": current}}
        after = {
            "currentReplicas": replicas,
            "desiredReplicas": status.get("desiredReplicas", 0) if decision.failed else decision.desired,
            "currentMetrics": [metric] if decision.proposals else None,
            "conditions": list(kept.values()),
        }
        syncs.append((t, replicas, decision.desired))
        at = t + late(number)
        if number == begin or (number > begin and after != status):  # the first is listed a little later than it was written
            hpas.append(event(at + (number == begin), made | {"status": copy.deepcopy(after)}, "uid"))
        if replicas != decision.desired:
            target.append(event(at + 0.5, pods(decision.desired), "target"))
        status, replicas = after, decision.desired
    return hpas, target, syncs


def pods(count):
    """The Deployment, all of whose pods are ready."""
    return {"status": {"replicas": count, "readyReplicas": count}}


def event(t, item, uid):
    """A watch event of an object."""
    return Watched(t, uid, "MODIFIED", {**item, "metadata": {"name": uid, "uid": uid}})


def decided(hpas, target, until, controller=hpa.DEFAULTS, gaps=()):
    """What the model decides of what was watched."""
    found = live.syncs(hpas, target, live.period(hpas, 15.0), until, gaps)
    return list(shadow.decide(found, controller, 15.0))


def end(syncs):
    """A moment after the last sync."""
    return syncs[-1][0] + SYNC_S / 2


@settings(max_examples=30, deadline=None)
@given(
    runs=st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 12)), min_size=12, max_size=24),
    behavior=st.sampled_from([None, SLOW, BRISK]),
    begin=st.integers(0, 10),
    failing=st.sets(st.integers(21, 100), max_size=4),
)
def test_every_sync_is_found_and_decided_as_it_was(runs, behavior, begin, failing):
    """Also those that wrote no status, of which nothing is seen; once the HPA's memory was seen, none is decided otherwise."""
    scaled = policy(behavior, **UNCAPPED)
    lags = [lag for lag, times in runs for _ in range(times)]
    hpas, target, syncs = seen(scaled, lags, begin=begin, failing=failing)
    found = decided(hpas, target, end(syncs))
    told = [(one.live.sync.current, one.live.sync.desired) for one in found]
    assert told == [(before, after) for _, before, after in syncs][len(syncs) - len(found) :]
    assert len(syncs) - len(found) == begin + 1
    assert [one.live.sync.at for one in found] == pytest.approx([t for t, _, _ in syncs][len(syncs) - len(found) :], abs=1.1)
    assert {one.word for one in found} <= {AGREED, WARMING}
    memory = shadow.memory_s(found[0].live.sync.spec, hpa.DEFAULTS)
    assert all((one.word == WARMING) == (one.live.sync.at < found[0].live.sync.at + memory) for one in found)


def test_a_new_hpa_has_no_memory_to_wait_for():
    """Its first state is without a condition: no sync was before."""
    hpas, target, syncs = seen(policy(BRISK, **UNCAPPED), WAVE)
    first = event(BEGIN - 20, hpas[0].object | {"status": {}}, "uid")
    written = [first, hpas[0]._replace(t=BEGIN), *hpas[1:]]
    assert {one.word for one in decided(written, target, end(syncs))} == {AGREED}


def test_a_status_that_comes_late_is_at_an_edge_and_apart():
    """A window ends between two syncs that are as long apart as it is: which of them counts hangs on milliseconds."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    hpas, target, syncs = seen(policy(behavior, **UNCAPPED), WAVE, late=lambda number: 0.4 * (number % 3))
    words = [one.word for one in decided(hpas, target, end(syncs))]
    assert words.count(OTHERWISE) == 0
    assert words.count(AGREED) > 0.8 * len(words)
    assert set(words) <= {AGREED, WARMING, EDGE}


def test_what_was_not_seen_is_never_judged():
    """A gap in the watch, and a scale that could not be set: the HPA's memory is then to be seen anew."""
    hpas, target, syncs = seen(policy(SLOW, **UNCAPPED), WAVE)
    gap = (hpas[40].t + 1, hpas[40].t + 2)
    after = [one for one in decided(hpas, target, end(syncs), gaps=[gap]) if one.live.sync.at > gap[1]]
    assert (after[0].word, after[-1].word) == (WARMING, AGREED)
    broken = copy.deepcopy(hpas)
    broken[50].object["status"]["conditions"][0] |= {"status": "False", "reason": "FailedUpdateScale"}
    words = [one.word for one in decided(broken, target, end(syncs))]
    assert words.count(UNREAD) == 1
    assert words[words.index(UNREAD) + 1] == WARMING


@pytest.mark.parametrize(
    ("lags", "controller", "said"),
    [
        (WAVE, Controller(tolerance=0.6), "has the controller flags of its own"),
        (WAVE[:20], hpa.DEFAULTS, "20 are needed: watch for longer than the 600 s"),
        ([9_000] * 120, hpa.DEFAULTS, "no sync that was judged changed the replicas"),
    ],
)
def test_without_trust_there_are_reasons(lags, controller, said):
    """A controller with another tolerance, a watch too short, and a group that stands still."""
    hpas, target, syncs = seen(scaledobject.parse(ORDERS, "orders"), lags, controller)
    found = shadow.trust(decided(hpas, target, end(syncs)), hpa.DEFAULTS)
    assert any(said in reason for reason in found.reasons)


def test_after_another_decision_the_model_goes_on_with_the_steps_that_were_seen():
    """An HPA of another tolerance errs at some syncs; the model agrees again between them."""
    hpas, target, syncs = seen(policy(SLOW, **UNCAPPED), WAVE, Controller(tolerance=0.4))
    words = [one.word for one in decided(hpas, target, end(syncs)) if one.word in (AGREED, OTHERWISE)]
    assert (OTHERWISE, AGREED) in pairwise(words)
    assert words[-20:].count(AGREED) >= 10


def asked(scaled, wanted, lags=WAVE, partitions=None):
    """What ``wanted`` asks for where ``scaled`` is live."""
    hpas, target, syncs = seen(scaled, lags)
    compared = Comparison(scaled, wanted, partitions)
    return shadow.ask(decided(hpas, target, end(syncs)), compared, hpa.DEFAULTS, end(syncs))


def test_the_live_one_asks_for_what_it_asked_for():
    """And a candidate with twice the lagThreshold for fewer pods; it is exact until their replicas first differ."""
    same = asked(policy(SLOW, **UNCAPPED), policy(SLOW, **UNCAPPED))
    assert (same.exact_until, same.exact, same.near, same.live) == (None, 1, pytest.approx(1), same.asked)
    other = asked(policy(SLOW, **UNCAPPED), policy(SLOW, **UNCAPPED, lagThreshold="4500"))
    assert other.asked.pod_minutes < 0.8 * other.live.pod_minutes
    assert other.exact_until == next(row.at for row in other.rows if row.live != row.candidate)
    played = seen(policy(BRISK, **UNCAPPED), WAVE)[2]
    brisk = asked(policy(SLOW, **UNCAPPED), policy(BRISK, **UNCAPPED))
    assert [row.candidate for row in brisk.rows[-30:]] == [after for _, _, after in played[-30:]]


@pytest.mark.parametrize(
    ("threshold", "hidden", "answered"),
    [("2250", False, 18_000), ("1000", False, 8_000), ("4500", True, None)],
)
def test_lag_that_the_live_cap_hides_is_not_made_up(threshold, hidden, answered):
    """8 partitions of 2,250: KEDA answered 18,000, of a lag that may be any above. Another cap that surely acts is known."""
    capped = {"allowIdleConsumers": "false"}
    compared = Comparison(policy(SLOW, **capped), policy(SLOW, **capped, lagThreshold=threshold), 8)
    value = None if answered is None else (1000 * answered,)
    assert compared.observed([(18_000_000,)]) == ([value], hidden)
    assert compared.observed([None]) == ([None], False)
    assert compared.observed([(7_000_000,)]) == ([(7_000_000,)], False)


@pytest.mark.parametrize(
    ("metadata", "partitions", "said"),
    [
        ({"topic": "other"}, 8, r"spec\.triggers\[0\]: 'kafka' is not allowed; allowed: a trigger that the live"),
        ({"lagThreshold": "100"}, None, "--partitions: missing"),
    ],
)
def test_a_candidate_on_what_was_not_seen_is_refused(metadata, partitions, said):
    """Another topic, and another cap without the partitions."""
    capped = {"allowIdleConsumers": "false"}
    with pytest.raises(InputError, match=said):
        Comparison(policy(SLOW, **capped), policy(SLOW, **capped | metadata), partitions)


def test_trials_whose_watch_is_kept_are_decided_as_their_hpa_did():
    """Their own log has the truth: as many syncs, within few, and 99 % of those that are judged."""
    judged = agreed = known = counted = 0
    for record in explained.suited(FOLDER):
        statuses, until = record.watched("HorizontalPodAutoscaler"), record.end
        sync_s, controller = live.period(statuses, record.scale.hpa_sync_s), controller_of(record.scale)
        inside = [one for one in statuses if one.t < until]
        found = list(
            shadow.decide(live.syncs(inside, record.watched("Deployment", "consumer"), sync_s, until), controller, sync_s)
        )
        known += len(record.hpa_syncs)
        counted += len(found)
        told = shadow.trust(found, controller)
        judged, agreed = judged + told.judged, agreed + told.agreed
    assert judged > 1000
    assert agreed >= 0.99 * judged
    assert counted == pytest.approx(known, rel=0.02)


def saved(folder, lags, **how):
    """The file which --save would have made of ``lags``."""
    content = policy(SLOW, **UNCAPPED).content
    hpas, target, syncs = seen(policy(SLOW, **UNCAPPED), lags, **how)
    rows = [("HorizontalPodAutoscaler", one) for one in hpas] + [("Deployment", one) for one in target]
    rows += [("ScaledObject", Watched(BEGIN, "orders", "ADDED", content))]
    rows += [("Watch", Watched(end(syncs), "orders", "END", {"gaps": []}))]
    lines = [{"kind": kind} | one._asdict() for kind, one in sorted(rows, key=lambda row: row[1].t)]
    file = folder / "watched.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_the_answer_begins_with_the_trust_line(tmp_path, capsys):
    """Then the candidate, then the closed loop with its error; a verdict's exit code is 0."""
    pods = ["--pod-rate=100", "--start-s=10", "--partitions=12"]
    assert main(["shadow", f"--watched={saved(tmp_path, WAVE)}", f"--candidate={ORDERS_FILE}", *pods]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\ntrust: of 1.. syncs the model decided 1.. as the live HPA did, 100 %", said)
    assert "orders-enricher on the same metrics" in said
    assert "known error, that of the live one: " in said
    other = tmp_path / "traffic.yaml"
    other.write_text("kind: steps\nduration: 60\nbegins_at: 2026-01-15T07:54:00Z\nsteps: [{at: 0, rate: 9, phase: baseline}]\n")
    assert main(["shadow", f"--watched={saved(tmp_path, WAVE)}", f"--profile={other}", *pods]) == 2
    assert "begins_at: '2026-01-15 07:54:00+00:00' is not allowed; allowed: traffic from " in capsys.readouterr().err


def test_without_trust_nothing_is_said_of_the_candidate(tmp_path, capsys):
    """The exit code is 1, and the JSON has the shape of its type."""
    given = ["shadow", f"--watched={saved(tmp_path, WAVE, controller=Controller(tolerance=0.6))}", f"--candidate={ORDERS_FILE}"]
    assert main([*given, "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content.pop("schema") == 1
    answer = validation.read(answers.KINDS["shadow"], content, "shadow")
    assert answer.trust.agreement < 99
    assert (answer.candidate, answer.closed) == (None, None)
    assert answer.disagreements
    assert (main(given), "no verdict: the model decided " in capsys.readouterr().out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--context: missing"),
        (["--context=x"], "--name: missing"),
        (["--watched=none.jsonl"], "none.jsonl: content: "),
        (
            ["--to=9", "--query=lag", "--pod-rate=1"],
            "which --to, --query would read\nelastic-lab: command line: --start-s, --pod-rate: ",
        ),
    ],
)
def test_what_lacks_is_one_line(capsys, arguments, line):
    """Exit code 2; and what does not fit together, all at once."""
    assert main(["shadow", *arguments]) == 2
    assert line in capsys.readouterr().err
