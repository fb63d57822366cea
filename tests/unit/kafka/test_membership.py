"""What changed in a group from one answer of its coordinator to the next."""

from hypothesis import given
from hypothesis import strategies as st

from lab.kafka.membership import ASSIGNED, Handover, Member, Roster

CLIENTS = st.dictionaries(st.sampled_from("123456"), st.sampled_from(["a", "b", ""]))
ANSWERS = st.lists(st.tuples(CLIENTS, st.lists(st.sampled_from("123456"), min_size=8, max_size=8)), max_size=8)


def members(clients, owners):
    """Members by their ids, and the owner of each partition; one that is no member owns nothing."""
    return [
        Member(identity, client, frozenset(number for number, owner in enumerate(owners) if owner == identity))
        for identity, client in clients.items()
    ]


@given(ANSWERS)
def test_the_changes_add_up_to_the_last_answer(answers):
    """Each partition is given up before another takes it, and ``owned`` is what the changes so far come to."""
    roster, owned = Roster(), {}
    for clients, owners in answers:
        there = members(clients, owners)
        for change in roster.update(there):
            held = owned.get(change.name, frozenset())
            if change.event == ASSIGNED:
                assert not set(change.partitions) & frozenset().union(*owned.values())
            owned[change.name] = held | set(change.partitions) if change.event == ASSIGNED else held - set(change.partitions)
            assert len(owned[change.name]) == change.owned
        assert len(set(roster.names.values())) == len(there)
        now = {roster.names[one.identity]: one.partitions for one in there if one.partitions}
        assert {name: held for name, held in owned.items() if held} == now


def test_a_member_is_known_by_its_client_id_while_no_other_has_it():
    """The second of that name is known by its member id, also when the first has gone."""
    roster = Roster()
    one, other = Member("1", "kgo", frozenset({0, 1})), Member("2", "kgo", frozenset({1}))
    assert roster.update([one]) == [Handover("kgo", "assigned", (0, 1), 2)]
    assert roster.update([Member("1", "kgo", frozenset({0})), other]) == [
        Handover("kgo", "revoked", (1,), 1),
        Handover("2", "assigned", (1,), 1),
    ]
    assert roster.update([other]) == [Handover("kgo", "revoked", (0,), 0)]
    assert roster.update([other, Member("3", "", frozenset())]) == [Handover("3", "assigned", (), 0)]
