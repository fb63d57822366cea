"""The trials of a session: repeated in blocks, run in duets, gone on with; what executes them stands in and leaves records."""

from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException
from kubernetes.client.exceptions import ApiException

from lab.errors import InputError, LabFault
from lab.inputs import duet
from lab.inputs import scale as scales
from lab.inputs.faults import Faults
from lab.inputs.variant import policy
from lab.judge.measure import Runs
from lab.record import store
from lab.record.store import Record
from lab.record.trial import Turn
from lab.trial.minimise import minimised
from lab.trial.trials import Trials, resumed, retried, stored, stored_rate
from tests.experiments.workloads import slim
from tests.unit.measure import whole

PLAN = {"profile": "plateau", "workload": slim(), "until": "replayed"}
LOW = policy("lag-4500", lag_threshold=150)
HEAVY = {"profile": "step-10x", "policy": "lag"}
PLANS = {"CPU": PLAN | {"policy": "cpu"}, "lag": PLAN | {"policy": "lag-4500"}, "low": PLAN | {"policy": LOW}}


class Session:
    """Executes by leaving finished records under ``results``; fails from the trial number ``fails_at`` on."""

    def __init__(self, results, fails_at=None):
        self.results, self.fails_at, self.asked, self.turns = results, fails_at, [], []

    def __call__(self, sides, turn):
        """Leave the records of these sides, in their order."""
        self.asked.append([side.id for side in sides])
        self.turns.append(turn)
        broken = self.fails_at is not None and len(self.asked) >= self.fails_at
        folders = store.begin(self.results, [side.id for side in sides])
        for side, folder in zip(sides, folders, strict=True):
            left = replace(whole.trial(side), id=side.id, ended="fault: power cut" if broken else "complete")
            left.sealed(folder).write(folder)
        if broken:
            raise LabFault("power cut")
        return [Record(folder) for folder in folders]


def trials(execute, **how):
    """The trials of a session at quick scale, on a machine that carries any duet."""
    return Trials(scales.load("quick"), "binary", execute, **{"carry": duet.sides} | how)


def test_equal_inputs_run_once(tmp_path):
    """By whichever call a test asks for them; without --repeat there is one run. The next session runs all again."""
    session = Session(tmp_path)
    made = trials(session)
    (record,) = made.run(**PLANS["lag"])
    assert record is made.blocks(PLANS)["lag"][0]
    assert Counter(one for asked in session.asked for one in asked).most_common(1)[0][1] == 1
    (again,) = trials(Session(tmp_path)).run(**PLANS["lag"])
    assert again.name == f"{record.id}.2"


@pytest.mark.parametrize("error", [KafkaException("gone"), ApiException(500), OSError("no space")])
def test_a_run_of_fewer_faults_that_breaks_costs_no_other(tmp_path, error):
    """The record of all faults is judged, whatever a client of the cluster raises in a run after it."""
    session = Session(tmp_path)

    def execute(sides, turn):
        if session.asked:
            raise error
        return session(sides, turn)

    made = trials(minimised(execute, lambda record: ["lost"], tmp_path, 1), faults=Faults(3))
    (record,) = made.run(**HEAVY)
    assert session.asked == [[record.id]]


def test_repeat_reaches_every_trial(tmp_path):
    """Also one that is run by itself: its runs differ in block and seed, and the first is what a single one would be.

    A plan's own seed is that of its first block.
    """
    session = Session(tmp_path)
    made = trials(session, repeat=3)
    assert [run.inputs.seed for run in made.run(**PLANS["lag"], seed=40)] == [40, 41, 42]
    session.turns.clear()
    runs = made.run(**PLANS["lag"])
    assert isinstance(runs, Runs)
    assert [(run.inputs.seed, run.inputs.repetition) for run in runs] == [(1, 1), (2, 2), (3, 3)]
    assert len({run.id for run in runs}) == 3
    assert runs[0].id == trials(Session(tmp_path / "other")).run(**PLANS["lag"])[0].id
    assert [turn.block for turn in session.turns] == [1, 2, 3]


def test_each_block_runs_every_plan_once_in_an_order_that_is_drawn(tmp_path):
    """By the session's seed alone; each trial is told its turn."""
    session = Session(tmp_path / "a")
    found = trials(session, repeat=6, order=7).blocks(PLANS)
    assert {name: len(runs) for name, runs in found.items()} == dict.fromkeys(PLANS, 6)
    name_of = {record.id: name for name, runs in found.items() for record in runs}
    order = [name_of[asked] for (asked,) in session.asked]
    blocks = [tuple(order[at : at + 3]) for at in range(0, 18, 3)]
    assert {tuple(sorted(block)) for block in blocks} == {tuple(sorted(PLANS))}
    assert len(set(blocks)) > 2
    assert session.turns[:4] == [Turn(7, 1, 1, 3), Turn(7, 1, 2, 3), Turn(7, 1, 3, 3), Turn(7, 2, 1, 3)]
    for seed, same in ((7, True), (8, False)):
        again = Session(tmp_path / f"b{seed}")
        trials(again, repeat=2, order=seed).blocks(PLANS)
        assert (again.asked == session.asked[:6]) is same


def test_a_session_s_faults_reach_every_trial_and_differ_from_block_to_block(tmp_path):
    """A plan's own go before them, and a list is the same in each block; a duet is refused."""
    made = trials(Session(tmp_path), repeat=2, faults=Faults(5))
    one, other = made.run(**HEAVY)
    assert one.inputs.faults != other.inputs.faults
    assert [run.inputs.faults for run in made.run(**HEAVY, faults=one.inputs.faults)] == [one.inputs.faults] * 2
    assert made.run(**HEAVY, faults=Faults(6))[0].inputs.faults == other.inputs.faults
    assert made.run(**HEAVY, faults=None)[0].inputs.faults == ()
    with pytest.raises(InputError, match="duet: faults"):
        made.duet(HEAVY, HEAVY)


def test_a_session_that_is_cut_off_knows_what_it_was_asked_for(tmp_path):
    """All trials of the plans and sides that tests asked for, beside those that have a record."""
    made = trials(Session(tmp_path, fails_at=2), repeat=2)
    with pytest.raises(LabFault, match="power cut"):
        made.blocks(PLANS)
    assert (len(made.asked), len(made.done)) == (6, 1)
    with pytest.raises(LabFault, match="power cut"):
        made.duet(PLANS["lag"], PLANS["CPU"])
    assert (len(made.asked), len(made.done)) == (10, 1)


def test_what_can_not_be_used_is_refused_before_anything_runs(tmp_path):
    """The last plan's fault as well."""
    session = Session(tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        trials(session, repeat=2).blocks(PLANS | {"last": PLAN | {"policy": "nowhere"}})
    with pytest.raises(InputError, match="duet: profile_name: 'bursty'"):
        trials(session).duet(PLANS["lag"], PLANS["lag"] | {"profile": "bursty"})
    assert session.asked == []


def test_the_sides_of_a_duet_swap_from_block_to_block(tmp_path):
    """One execution has both; the first side's records come first whichever was put up first."""
    session = Session(tmp_path)
    lag, cpu = trials(session, repeat=3).duet(PLANS["lag"], PLANS["CPU"])
    assert [run.inputs.policy_name for run in (*lag, *cpu)] == ["lag-4500"] * 3 + ["cpu"] * 3
    firsts = [next(n for n, side in enumerate((lag, cpu)) if asked[0] in {run.id for run in side}) for asked in session.asked]
    assert firsts == [0, 1, 0]
    assert [len(asked) for asked in session.asked] == [2, 2, 2]
    assert [(run.inputs.side.name, run.inputs.seed) for run in lag] == [("a", 1), ("a", 2), ("a", 3)]


def test_a_duet_of_a_plan_with_itself_has_two_records(tmp_path):
    """A/A: the same inputs under two names, and neither is the trial by itself."""
    made = trials(Session(tmp_path))
    (one,), (other,) = made.duet(PLANS["lag"], PLANS["lag"])
    (alone,) = made.run(**PLANS["lag"])
    assert len({one.id, other.id, alone.id}) == 3
    assert one.inputs.side.other == other.inputs.side.other == alone.id
    assert one.inputs.policy.content == other.inputs.policy.content == alone.inputs.policy.content


def test_duets_that_are_compared_run_in_blocks_at_one_rate(tmp_path):
    """In an order that is drawn, at the lowest rate of any: A/A noise of another rate would say nothing."""
    pairs = {"light": (PLANS["lag"], PLANS["CPU"]), "A/A": (HEAVY, HEAVY)}

    def slow(a, b):
        return duet.sides(a, b, 0.5 if a.profile_name == "step-10x" else 1)

    session = Session(tmp_path)
    found = trials(session, repeat=4, order=3, carry=slow).duets(pairs)
    assert {run.inputs.side.rate for sides in found.values() for runs in sides for run in runs} == {0.5}
    assert {name: [len(runs) for runs in sides] for name, sides in found.items()} == {"light": [4, 4], "A/A": [4, 4]}
    name_of = {run.id: name for name, sides in found.items() for runs in sides for run in runs}
    order = [name_of[asked[0]] for asked in session.asked]
    blocks = {tuple(order[at : at + 2]) for at in range(0, 8, 2)}
    assert blocks == {("light", "A/A"), ("A/A", "light")}
    assert session.turns[:3] == [Turn(3, 1, 1, 2), Turn(3, 1, 2, 2), Turn(3, 2, 1, 2)]
    lag, cpu = found["light"]
    assert [run.inputs.policy_name for run in (lag[0], cpu[0], lag[1], cpu[1])] == ["lag-4500", "cpu"] * 2


def test_a_session_goes_on_where_it_was_interrupted(tmp_path):
    """Only what has no finished record runs; the attempt that failed stays, and the new one is beside it."""
    cut = Session(tmp_path, fails_at=5)
    with pytest.raises(LabFault, match="power cut"):
        trials(resumed(tmp_path, cut), repeat=2).blocks(PLANS)
    assert len(cut.asked) == 5
    rest = Session(tmp_path)
    found = trials(resumed(tmp_path, rest), repeat=2).blocks(PLANS)
    assert len(rest.asked) == 2
    (failed,) = cut.asked[4]
    assert [failed] in rest.asked
    names = {folder.name for folder in (tmp_path / "records").iterdir()}
    assert len(names) == 7
    assert {failed, f"{failed}.2"} <= names
    assert {record.name for runs in found.values() for record in runs} == names - {failed}
    last = Session(tmp_path)
    trials(resumed(tmp_path, last), repeat=2).blocks(PLANS)
    assert last.asked == []
    trials(resumed(tmp_path, last), repeat=3).blocks(PLANS)
    assert len(last.asked) == len(PLANS)  # more repeats run only what is new: hours of machine time can be spread
    Trials(scales.load("medium"), "binary", resumed(tmp_path, last)).blocks(PLANS)
    assert len(last.asked) == 2 * len(PLANS)  # a scale is part of the identity: none takes another's record for its own


def test_what_was_invalid_runs_again_in_the_next_session(tmp_path):
    """The attempt of before stays beside the new one, which is judged."""
    first = trials(Session(tmp_path), repeat=2).blocks(PLANS)
    disturbed, rest = first["lag"][1], Session(tmp_path)
    again = resumed(tmp_path, rest, lambda records: "steal" if disturbed.name in [one.name for one in records] else "")
    found = trials(again, repeat=2).blocks(PLANS)
    assert rest.asked == [[disturbed.id]]
    assert found["lag"][1].name == f"{disturbed.id}.2"
    assert [run.name for run in found["CPU"]] == [run.name for run in first["CPU"]]


def test_a_duet_goes_on_as_a_whole(tmp_path):
    """A side whose other was interrupted is run again with it."""
    with pytest.raises(LabFault):
        trials(resumed(tmp_path, Session(tmp_path, fails_at=2)), repeat=2).duet(PLANS["lag"], PLANS["CPU"])
    rest = Session(tmp_path)
    sides = trials(resumed(tmp_path, rest), repeat=2).duet(PLANS["lag"], PLANS["CPU"])
    assert len(rest.asked) == 1
    assert [[run.name for run in runs] for runs in sides] == [[runs[0].id, f"{runs[1].id}.2"] for runs in sides]


def test_stored_duets_are_found_at_the_rate_that_they_ran_at(tmp_path):
    """Judging on a machine of many cores finds what one of few has slowed down."""
    ran, _ = trials(Session(tmp_path), carry=lambda a, b: duet.carried(a, b, 3)).duet(HEAVY, HEAVY)
    assert ran[0].inputs.side.rate < 1
    there = trials(stored(tmp_path), carry=stored_rate(tmp_path))
    assert there.duet(HEAVY, HEAVY)[0][0].id == ran[0].id
    with pytest.raises(InputError, match="a stored trial"):
        there.duet(PLANS["lag"], PLANS["lag"])


@pytest.mark.parametrize(("reasons", "runs"), [([""], 1), (["steal", ""], 2), (["steal", "steal", ""], 2)])
def test_a_trial_is_repeated_once_where_it_is_invalid(reasons, runs):
    """The last result counts; a second that is invalid too is left at that, and stays invalid."""
    executed = []

    def execute(*asked):
        executed.append(asked)
        return len(executed)

    assert retried(execute, lambda result: reasons[result - 1])("a trial", 1) == runs
    assert executed == [("a trial", 1)] * runs


def test_a_plan_names_the_most_compressed_scale_that_serves_it(tmp_path):
    """A session at a slower one runs it at its own; the HPA's sync is the session's."""
    quick, real = (
        Trials(replace(scales.load(name), sync_s=5.0), "binary", Session(tmp_path / name)) for name in ("quick", "real")
    )
    (named,), (own,) = quick.run(**PLANS["lag"], scale="standard"), quick.run(**PLANS["lag"])
    assert (named.scale.name, own.scale.name, named.scale.sync_s) == ("standard", "quick", 5.0)
    assert real.run(**PLANS["lag"], scale="standard")[0].scale.name == "real"
