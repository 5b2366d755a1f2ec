"""Many sites: messages have a few vectors and mention the rest, and nothing else is different."""

import logging

import pytest
from tests.server.test_metrics import PROGRAM

import everview as ev
from everview.replication import gossip, state
from everview.replication.gossip import told_in_full
from everview.replication.replica import Replica
from everview.replication.rolls import roll_of
from everview.replication.state import Holding, State, Told, dump, dump_listed, dump_others, is_crowded, load
from everview.replication.wire import decode
from everview.testing.simulation import Simulation


@pytest.fixture
def crowded(monkeypatch):
    """Every site that knows of another's vector is in a crowd."""
    monkeypatch.setattr(state, "CROWD", 0)
    monkeypatch.setattr(gossip, "SHARE", 1)


@pytest.mark.parametrize("seed", range(8))
def test_random_worlds_agree_in_a_crowd(crowded, seed, caplog):
    caplog.set_level(logging.ERROR, "everview")
    Simulation(seed).run()


def sites(count):
    return [ev.Site.open(":memory:", PROGRAM, name=f"s{n}") for n in range(count)]


def test_a_message_has_all_members_and_few_vectors(crowded, monkeypatch):
    hub, *others = sites(8)
    for number, site in enumerate(others):
        site.insert("visit", [(number, "x")])
    for _ in range(2):
        for site in others:
            site.sync(hub)
    sent = []
    respond = Replica.respond
    monkeypatch.setattr(
        Replica, "respond", lambda self, data, rights: sent.append(respond(self, data, rights)) or sent[-1]
    )
    heard, whole = set(), []
    for number in range(170):
        if number == 150:
            others.append(sites(1)[0])
            others[-1].sync(hub)
            sent.clear()
        others[0].sync(hub)
        for told in map(decode, sent):
            named, full = told.sites, {known.site for known in told.gossip.known if known.vector}
            assert 0 in full  # the sender's own
            assert len(full) <= 2
            heard |= {named[place] for place in full if number < 150}
            if told.gossip.omitted:
                assert not told.gossip.members
                assert {known.site for known in told.gossip.known} == full
            else:
                whole.append(number)
                assert {member.site for member in told.gossip.members} == set(range(9))
                assert len({known.site for known in told.gossip.known}) == 9
        sent.clear()
    assert len(heard) == 8  # each has its turn
    assert whole  # for who does not know of the newcomer yet,
    assert set(whole) == {150}  # and nobody else
    for site in (hub, *others):
        site.close()


def test_what_is_dead_is_forgotten_in_a_crowd_too(crowded):
    """By the hub and by every device, once each has been told of all."""
    hub, *others = sites(5)
    for number, site in enumerate(others):
        site.insert("visit", [(number, "x")])
        site.sync(hub)
    others[0].sync(hub)
    others[0].delete("visit", [(n, "x") for n in range(4)])
    for _ in range(40):
        for site in others:
            site.sync(hub)
    assert [site.replica.collect() for site in (hub, *others)] == [4] * 5
    for site in (hub, *others):
        assert site.rows("visit") == []
        site.close()


def test_a_mention_alone_makes_nothing_stable(crowded):
    hub, *others = sites(4)
    for site in others:
        site.insert("visit", [(1, site.name)])
        site.sync(hub)
    newcomer = sites(1)[0]
    newcomer.sync(hub)
    known = newcomer.replica._knowledge.state.known
    brief = [told for incarnation in known for told in known[incarnation].values() if not told.vector]
    assert brief  # some were only mentioned
    assert newcomer.replica._knowledge.membership.stable("visit") == ({}, 0)
    for site in (hub, newcomer, *others):
        site.close()


def test_what_others_have_is_stored_apart_and_found_again(crowded, tmp_path):
    with ev.Site.open(tmp_path / "hub.db", PROGRAM, name="hub") as hub:
        for site in sites(3):
            site.insert("visit", [(1, site.name)])
            site.sync(hub)
            site.close()
        known = hub.replica._knowledge.state.known
        assert len(known) == 4
    with ev.Site.open(tmp_path / "hub.db", PROGRAM) as hub:
        again = hub.replica._knowledge.state.known
        assert {site: set(wholes) for site, wholes in again.items()} == {s: set(w) for s, w in known.items()}
        for incarnation, wholes in known.items():
            for whole, told in wholes.items():
                assert again[incarnation][whole].reading <= told.reading


def test_a_state_is_what_it_was_after_it_was_stored():
    many = {f"i{n}": {"r": Told({f"i{m}": m for m in range(60)}, n)} for n in range(60)}
    for known in (many, {"i0": many["i0"], "i1": many["i1"]}):
        before = State(known=known, names={"i0": "hub"}, members={"i0": {"r": {"g": Holding(1, "i0")}}})
        assert load(dump(before, "i0"), dump_others(before, "i0"), dump_listed(before)) == before
        assert (load(dump(before, "i0")) != before) == is_crowded(before, "i0")
    # As it was stored once: the others are there as well, without their vectors.
    brief = {site: {"r": Told({}, 99)} for site in many} | {"i0": many["i0"]}
    found = load(dump(State(known=brief), ""), dump_others(State(known=many), "i0"))
    assert found.known["i1"]["r"] == Told(many["i1"]["r"].vector, 99)


def test_others_are_told_of_in_turn():
    many = {f"i{n:02}": {"r": Told({f"i{m:02}": m for m in range(50)}, n)} for n in range(5)}
    state = State(known=many, expired={"i03": 1})
    turns, last = [], ""
    for _ in range(3):
        turns.append(told_in_full(state, roll_of(state), "i00", last))
        last = turns[-1][-1]
    assert turns == [["i01", "i02"], ["i04", "i01"], ["i02", "i04"]]  # 128 entries at most
    many["i02"]["r"].vector.update({f"j{m}": m for m in range(200)})
    assert told_in_full(state, roll_of(state), "i00", "i01") == ["i02"]  # but always one
    alone = State(known={"i00": many["i00"]})
    assert told_in_full(alone, roll_of(alone), "i00", "") == []
