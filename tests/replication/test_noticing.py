"""Whatever has to be in the store before it is told is noticed when it changes, and found there again."""

import pytest

import everview as ev
from everview.replication import state as states
from everview.replication.knowledge import Knowledge, stored_state
from everview.replication.membership import Membership
from everview.replication.messages import Cursor
from everview.replication.noticing import Essence
from everview.replication.state import Holding, Peer, Provisional, State, Told
from everview.replication.strangers import strangers

PROGRAM = ev.Program.parse("CREATE TABLE visit (id BIGINT, place TEXT);")

CHANGES = {
    "another length": lambda state: state.members.update(i={"r": {"g": Holding(2)}}),
    "another sponsor": lambda state: state.members.update(i={"r": {"g": Holding(1, "j")}}),
    "a member": lambda state: state.members.update(k={"r": {"g": Holding(1)}}),
    "a name": lambda state: state.names.update(i="other"),
    "a cursor": lambda state: state.cursors.update(j={"r": Cursor(8, 8)}),
    "a vector": lambda state: state.known["i"]["r"].vector.update(j=6),
    "a writer": lambda state: state.known["i"]["r"].vector.update(k=1),
    "of whom something is known": lambda state: state.known.update(k={"r": Told({})}),
    "of what something is known": lambda state: state.known["j"].update(q=Told({})),
    "what all have passed": lambda state: setattr(state.known["i"]["r"], "passed", 3),
    "who is expired": lambda state: state.expired.update(j=1),
    "a group": lambda state: state.joined.update(r="h"),
    "waiting": lambda state: state.provisional.update(q=Provisional("j", "g", {})),
    "a floor": lambda state: state.floors.update(r=2),
    "what was forgotten": lambda state: state.cancelled.update(r={"g": {"j": 1}}),
    "a row that was dropped": lambda state: setattr(state, "dropped", 1),
}


def state():
    return State(
        members={"i": {"r": {"g": Holding(1)}}},
        names={"i": "hub"},
        cursors={"j": {"r": Cursor(7, 7)}},
        known={"i": {"r": Told({"i": 4, "j": 5}, 1)}, "j": {"r": Told({"j": 5}, 1)}},
        joined={"r": "g"},
    )


@pytest.mark.parametrize("crowd", [0, 2048])
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed(what, crowd, monkeypatch):
    monkeypatch.setattr(states, "CROWD", crowd)
    now, saved = state(), Essence()
    saved.note(now, "i")
    now.known["i"]["r"].vector["i"] = 9  # its own last commit, and its clock, are told as they are
    now.known["i"]["r"].reading = 9
    assert saved.is_of(now, "i")
    CHANGES[what](now)
    assert not saved.is_of(now, "i")
    saved.note(now, "i")
    assert saved.is_of(now, "i")


UNNOTICED = {"steps", "ripe", "evolved"}
"""What counts with something that is noticed, may be forgotten, or is written where it changes."""

OTHERS = {
    "members": {"k": {}},
    "known": {"k": {"r": Told({})}},
    "cursors": {"k": {}},
    "peers": {"http://k": Peer("k", 0)},
}


def test_every_field_is_noticed_but_those_that_need_not_be():
    for field in State.__struct_fields__:
        now, saved = state(), Essence()
        saved.note(now, "i")
        value = getattr(now, field)
        if isinstance(value, dict):
            other = {**value, **OTHERS.get(field, {"k": "x"})}
        else:
            other = [*value, "k"] if isinstance(value, list) else type(value)(9)
        setattr(now, field, other)
        assert saved.is_of(now, "i") == (field in UNNOTICED), field


@pytest.mark.parametrize("crowd", [0, 2048])
def test_what_others_have_is_not_waited_for_in_a_crowd(crowd, monkeypatch):
    monkeypatch.setattr(states, "CROWD", crowd)
    now, saved = state(), Essence()
    saved.note(now, "i")
    now.known["j"]["r"].vector["j"] = 6
    assert saved.is_of(now, "i") == (crowd == 0)


@pytest.mark.parametrize("crowd", [0, 2048])
def test_each_change_of_the_list_reaches_the_store(crowd, monkeypatch):
    monkeypatch.setattr(states, "CROWD", crowd)
    with ev.Site.open(":memory:", PROGRAM, name="hub") as hub, ev.Site.open(":memory:", PROGRAM) as other:
        other.insert("visit", [(1, "x")])
        other.sync(hub)
        store = hub._store
        for change in (
            lambda found: found.names.update(k="newcomer"),
            lambda found: found.members.update(k={"visit": {"g": Holding(1)}}),
            lambda found: found.members.update(k={"visit": {"g": Holding(1, "j")}}),
        ):
            knowledge = hub.replica._knowledge
            with store.writing() as connection:
                knowledge.refresh(connection)
                change(knowledge.state)
                assert knowledge.changed
                knowledge.save(connection)
                assert not knowledge.changed
                assert stored_state(connection) == knowledge.state
            again = Knowledge(store)
            again.refresh(store.writer.connection)
            assert again.state.members == knowledge.state.members


def test_a_writer_is_a_stranger_until_it_is_known_and_again_to_a_new_incarnation():
    now = State(
        joined={"r": "g"},
        members={
            "b": {"r": {"h": Holding(1, "x")}},
            "c": {"r": {"g": Holding(1, "x")}},
            "d": {"r": {"h": Holding(1, "x")}},
        },
        known={"i": {"r": Told({"i": 1, "b": 2, "c": 3, "d": 4})}, "d": {"r": Told({})}},
    )
    membership = Membership(now, "i", {"r": ("r",)}, lambda _: ("r",), lambda: 0)
    assert strangers(membership, "r") == {"b"}
    now.known["b"] = {"q": Told({})}
    assert strangers(membership, "r") == {"b"}  # of another relation something is known
    now.known["b"]["r"] = Told({})
    assert strangers(membership, "r") == set()
    now.known["i"]["r"].vector["e"] = 5
    now.members["e"] = {"r": {"h": Holding(1, "x")}}
    assert strangers(membership, "r") == {"e"}
    now.known = {"i": now.known["i"]}
    assert strangers(membership, "r") == {"b", "d", "e"}
