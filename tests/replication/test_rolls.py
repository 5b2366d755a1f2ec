"""Rolls: what a message leaves out is what its reader has, so that it tells the same as if it had all."""

import logging

import pytest
from tests.server.test_metrics import PROGRAM

import everview as ev
from everview.replication import rolls
from everview.replication.arriving import Outcome
from everview.replication.conversation import Conversation
from everview.replication.gossip import tidings_of
from everview.replication.messages import Gossip
from everview.replication.replica import Replica
from everview.replication.rolls import MEMBERS, Rolls, relation_of
from everview.replication.state import Holding, State, Told
from everview.replication.telling import Teller
from everview.replication.wire import decode, encode
from everview.testing.simulation import Simulation


@pytest.fixture
def crowded(monkeypatch):
    """Every site that knows of another's vector is in a crowd."""
    monkeypatch.setattr("everview.replication.state.CROWD", 0)
    monkeypatch.setattr("everview.replication.gossip.SHARE", 1)


def listed(state):
    return {
        (incarnation, stream, group): (held.length, held.sponsor)
        for incarnation, streams in state.members.items()
        for stream, groups in streams.items()
        for group, held in groups.items()
    }


@pytest.mark.parametrize("seed", range(40, 46))
@pytest.mark.parametrize("crowd", [False, True])
def test_in_random_worlds_nothing_is_lost_by_leaving_it_out(seed, crowd, request, monkeypatch, caplog):
    """Whatever a message leaves out is what its sender knew when it wrote it."""
    if crowd:
        request.getfixturevalue("crowded")
    caplog.set_level(logging.ERROR, "everview")
    written, counts = {}, {"whole": 0, "omitted": 0, "not understood": 0, "of no use": 0}
    gossip, tidings = Teller._gossip, Conversation._tidings

    def written_down(self, register, reader=None):
        found, state = gossip(self, register, reader), self._knowledge.state
        known = {
            (site, whole) for site in state.known.keys() - state.expired.keys() for whole in state.known[site]
        }
        written[self._knowledge.incarnation, frozenset(found.rolls.items())] = (listed(state), known)
        return found

    def compared(self, message):
        found = tidings(self, message)
        if message.gossip is not None:
            counts["omitted" if MEMBERS in message.gossip.omitted else "whole"] += 1
            counts["not understood"] += found is None
            held = {relation for _, relation in self._knowledge.membership.wholes()}
            counts["of no use"] += not held.issuperset(message.gossip.omitted[1:])
        if message.gossip is not None and found is not None:
            members, known = written[message.sites[0], frozenset(message.gossip.rolls.items())]
            assert dict(found.members) == members
            told = {(site, whole) for site, wholes in found.known.items() for whole in wholes}
            assert told <= known
            assert all(relation_of(whole) not in held for _, whole in known - told)
            assert found.known.keys() >= found.new_known.keys()
        return found

    monkeypatch.setattr(Teller, "_gossip", written_down)
    monkeypatch.setattr(Conversation, "_tidings", compared)
    Simulation(seed).run()
    assert min(counts["whole"], counts["omitted"]) > 5


@pytest.fixture
def settled():
    """Two sites that have the same roll, and know it."""
    with (
        ev.Site.open(":memory:", PROGRAM, name="a") as a,
        ev.Site.open(":memory:", PROGRAM, name="b") as b,
    ):
        a.insert("visit", [(1, "x")])
        for _ in range(3):
            a.sync(b)
        yield a, b


def spied(monkeypatch):
    """What is said, as messages, in order."""
    said = []
    answer = Replica.respond

    def respond(self, data, rights):
        said.append(decode(data))
        found = answer(self, data, rights)
        said.append(decode(found))
        return found

    monkeypatch.setattr(Replica, "respond", respond)
    return said


def test_who_has_nothing_to_tell_asks_once(settled, monkeypatch):
    a, b = settled
    said = spied(monkeypatch)
    report = a.sync(b)
    assert len(said) == 2
    assert all(message.gossip.omitted for message in said)
    assert report.sent_rows == report.received_rows == 0
    said.clear()
    a.insert("visit", [(2, "y")])
    a.sync(b)
    assert len(said) == 4
    assert b.rows("visit") == [(1, "x"), (2, "y")]
    said.clear()
    b.insert("visit", [(3, "z")])
    a.sync(b)
    assert len(said) == 4  # b is told that it has come
    assert a.rows("visit") == b.rows("visit")


def test_what_was_forgotten_is_told_to_who_has_nothing_to_be_told(settled):
    """A floor is no row, and moves nobody's head."""
    a, b = settled
    a.delete("visit", [(1, "x")])
    for _ in range(3):
        a.sync(b)
    assert a.replica.collect() == 1
    assert a.replica._knowledge.state.floors["visit"] == 2
    a.sync(b)
    assert b.replica._knowledge.state.floors["visit"] == 2


def test_a_roll_that_is_not_known_is_asked_for_again(settled, monkeypatch):
    """As after a restart: the peer thinks that it is known here."""
    a, b = settled
    b.replica._rolls = Rolls()
    b.replica._knowledge.state.members["stranger"] = {"visit": {"g": Holding(2)}}  # so its own is another
    a.insert("visit", [(2, "y")])
    said = spied(monkeypatch)
    a.sync(b)
    assert b.rows("visit") == [(1, "x"), (2, "y")]
    assert said[0].gossip.omitted
    assert said[1].page is None
    assert MEMBERS not in said[1].gossip.omitted
    assert "stranger" in a.replica._knowledge.state.members


def test_a_page_with_a_roll_that_is_not_known_is_not_taken(settled):
    a, b = settled
    a.insert("visit", [(2, "y")])
    message = decode(b.replica.respond(encode(a.replica.ask("b"))))
    given = a.replica.tell(a.replica.serve(message), message.sites[0])
    assert given.gossip.omitted == [MEMBERS, "visit"]
    assert given.page.sections
    b.replica._rolls = Rolls()
    b.replica._knowledge.state.members["stranger"] = {"visit": {"g": Holding(2)}}
    assert b.replica.hear(given, encode(given), "").outcome is Outcome.GAP
    assert b.rows("visit") == [(1, "x")]


def naming(digests, *omitted):
    """Gossip that leaves these parts out."""
    return Gossip([], [], {}, {}, {}, {}, {}, dict(digests), list(omitted))


def test_a_site_remembers_a_few_of_its_rolls_and_the_last_that_others_named(monkeypatch):
    monkeypatch.setattr(rolls, "_NAMED", 2)
    kept, state = Rolls(), State()
    digests = []
    for number in range(12):
        state.members[f"i{number}"] = {"r": {"g": Holding(1, "s")}}
        state.known[f"i{number}"] = {"r": Told({})}
        digests.append(kept.own(state).digests)
        assert kept.own(state).digests == digests[-1]
    last = kept.own(state)
    for part in (MEMBERS, "r"):
        assert len({digest[part] for digest in digests}) == 12
        found = [kept.understand(naming(digest, part), last) is not None for digest in digests]
        assert found == [False] * 4 + [True] * 8
    for name in ("x", "y", "z"):
        kept.name(name, last.digests)
    assert [kept.shared(last, name) for name in ("x", "y", "z", None)] == [[], ["", "r"], ["", "r"], []]
    kept.name("y", {**last.digests, MEMBERS: b"another"})
    assert kept.shared(last, "y") == ["r"]
    kept.name("y", {**last.digests, "r": b"another"})
    assert kept.shared(last, "y") == [MEMBERS]
    kept.name("y", {MEMBERS: last.digests[MEMBERS], "q": b"another"})
    assert kept.shared(last, "y") == [MEMBERS, "r"]  # who knows nothing of it has no use for it


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.members.update(i={"r": {"g": Holding(2)}}),
        lambda state: state.members.update(i={"r": {"g": Holding(1, "j")}}),
        lambda state: state.members.update(i={"r": {"g": Holding(1), "h": Holding(1)}}),
        lambda state: state.known["i"].update(q=Told({})),
        lambda state: state.known.update(j={"r": Told({})}),
        lambda state: state.expired.update(i=1),
        lambda state: setattr(state, "known", {"j": {"r": Told({})}}),  # as many as before
    ],
)
def test_a_roll_is_another_when_anything_in_it_is(change):
    state = State(members={"i": {"r": {"g": Holding(1)}}}, known={"i": {"r": Told({"i": 1})}})
    kept = Rolls()
    before = kept.own(state)
    state.known["i"]["r"].vector["i"] = 5  # that is no part of it
    assert kept.own(state) is before
    change(state)
    assert kept.own(state).digests != before.digests


def test_of_what_a_site_does_not_host_nothing_is_told_but_the_members(monkeypatch):
    """Its roll lacks the relation; the others' part of it is left out, and the rest is the same."""
    program = ev.Program.parse("CREATE TABLE a (x BIGINT); CREATE TABLE b (x BIGINT);")
    with (
        ev.Site.open(":memory:", program, name="hub") as hub,
        ev.Site.open(":memory:", program, name="one", hosts={"a"}) as one,
        ev.Site.open(":memory:", program, name="two") as two,
    ):
        two.insert("b", [(1,)])
        for _ in range(3):
            two.sync(hub)
            one.sync(hub)
        said = spied(monkeypatch)
        one.sync(hub)
        assert [sorted(message.gossip.rolls) for message in said] == [["", "a"], ["", "a", "b"]]
        assert [sorted(message.gossip.omitted) for message in said] == [["", "a"], ["", "a", "b"]]


def test_who_begins_to_host_does_not_understand_what_was_left_out():
    state = State(members={"i": {"r": {"g": Holding(1)}}}, known={"i": {"r": Told({})}})
    theirs, mine = Rolls(), Rolls()
    told = naming(theirs.own(state).digests, "r")
    assert mine.understand(told, mine.own(State())) is not None
    assert mine.understand(told, mine.own(State(known={"j": {"r": Told({})}}))) is None


def test_a_message_without_gossip_tells_nothing(settled):
    _, b = settled
    message = decode(b.replica.answer(b"nonsense"))
    assert message.gossip is None
    assert tidings_of(message).members == tidings_of(message).known == {}
