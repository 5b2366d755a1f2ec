"""Short histories: one for each idea that is best read as a story."""

import random

import pytest
from spec.replication import cuts, transfers
from spec.replication.answers import answer
from spec.replication.endings import heard
from spec.replication.incarnations import renewed, went_back
from spec.replication.kinds import AddWins, Bag, Keyed, Set
from spec.replication.lattices import Merged
from spec.replication.merges import merged
from spec.replication.publications import Published, published
from spec.replication.refusals import Refused, undone
from spec.replication.relations import Cursor
from spec.replication.repairs import repaired
from spec.replication.rules import Rule, without
from spec.replication.stores import created, opened, without_logs
from spec.replication.transactions import Delete, Insert, write
from spec.replication.vectors import Dot
from spec.replication.views import View


def store(name, kind, **views):
    return opened(created(name, {"r": kind, "s": kind}, views))


def does(site, *statements, now=0):
    return write(site, statements, now=now)[0]


def reads(reader, sender):
    cut = transfers.cut_for(sender, reader)
    return merged(heard(reader, cut), cut)


def shown(site, name="r"):
    return site.relations[name].shown()


def test_a_removal_needs_no_tombstone():
    a = does(store("a", Bag()), Insert("r", 1), Insert("r", 2))
    b = reads(store("b", Bag()), a)
    a = does(a, Delete("r", 1))
    b = reads(b, without_logs(a, ["r"]))
    assert shown(b) == [(2, None)]
    assert b.relations["r"].vector == {"a": 3}
    assert b.relations["r"].rows.keys() == {Dot("a", 2)}


def test_two_people_who_edit_two_columns_both_keep_their_edit():
    a = does(store("a", Merged()), Insert("r", 1, (("x", 1), ("y", 1))), now=90)
    b = does(reads(store("b", Merged()), a), Insert("r", 1, (("x", 2),)), now=10)
    a = does(a, Insert("r", 1, (("y", 2),)), now=20)
    assert shown(reads(b, a)) == shown(reads(a, b)) == [(1, (("x", 2), ("y", 2)))]
    with without(Rule.STAMPED):
        b = reads(store("b", Merged()), does(store("a", Merged()), Insert("r", 1, (("x", 1),)), now=90))
        assert shown(does(b, Insert("r", 1, (("x", 2),)), now=10)) == [(1, (("x", 1),))]


def view_stores():
    view = View(("r", "s"), ("r", "s"))
    whole = opened(created("y", {"r": AddWins(), "s": AddWins()}, {"v": view}))
    return whole, *(opened(created(name, {"~r": AddWins(), "~s": AddWins()}, {"v": view})) for name in "uwx")


def test_what_a_reader_says_changes_nothing_and_never_fails():
    chance = random.Random(1)
    y = view_stores()[0]
    y = does(y, *[Insert(name, key) for key in range(5) for name in "rs"])
    before = repr(y)
    for _ in range(300):
        vector = {i: chance.randrange(-5, 2**70) for i in chance.sample(["y", "u", "?", ""], 2)}
        cursor = Cursor(chance.randrange(-3, 9), chance.randrange(9))
        monomial = tuple(Dot(chance.choice("y?"), chance.randrange(9)) for _ in range(chance.choice([1, 2])))
        position = chance.choice([None, (chance.randrange(9), monomial)])
        asks = {
            n: cuts.Ask(vector, chance.choice([{}, vector]), cursor)
            for n in chance.sample(["r", "~s", "?"], 2)
        }
        question = cuts.Request(
            "?", "y", asks, {"v": cuts.ViewAsk(cursor, position)}, chance.choice([None, 0, 3]), cursor
        )
        answer(y, question)
        assert repr(y) == before


def test_a_reader_that_lies_about_our_numbers_is_judged_only_if_it_may_write():
    a = does(store("a", Set()), Insert("r", 1))
    lie = cuts.Request("?", "a", {"r": cuts.Ask({"a": 99})})
    assert went_back(a, lie)  # so a server asks this only of messages of writers
    assert answer(a, lie).sender == "a"


def rewound():
    a = does(store("a", Bag()), Insert("r", 1))
    backup, b = a, reads(store("b", Bag()), a)
    a = does(a, Insert("r", 2), Delete("r", 1))
    return opened(backup), reads(b, a)


def test_what_a_store_wrote_since_it_went_back_counts_as_written_by_its_next_incarnation():
    a, b = rewound()
    a = does(a, Insert("r", 3), Delete("r", 3), Insert("r", 4))
    assert went_back(a, transfers.request(b, transfers.begun(b, "a")))
    a = renewed(a, "c")
    assert a.relations["r"].vector == {"a": 1, "c": 2}
    assert a.relations["r"].log.keys() == {Dot("c", 1)}
    a, b = reads(a, b), reads(b, a)
    assert shown(a) == shown(b) == [(2, None), (4, None)]


def test_a_repair_from_a_peer_that_has_seen_less_is_refused():
    a = does(store("a", Bag()), Insert("r", 1))
    b = reads(store("b", Bag()), a)
    assert repaired(does(a, Delete("r", 1)), "r", b) is None


@pytest.mark.parametrize("kind", [Set(), Keyed(), AddWins(), Merged()], ids=lambda kind: type(kind).__name__)
def test_a_refused_write_is_undone_everywhere(kind):
    value = (("x", 1),) if isinstance(kind, Merged) else "old"
    server = does(store("server", kind), Insert("r", 1, value))
    client = reads(store("client", kind), server)
    other = (("x", 2),) if isinstance(kind, Merged) else "new"
    client = does(client, Delete("r", 1), Insert("r", 2, other))
    refused = Refused(frozenset({"client"}), frozenset({"client"}))
    server, written = undone(server, reads(server, client), "client", refused)
    assert written
    client = reads(client, server)
    assert shown(client) == shown(server) == shown(does(store("alone", kind), Insert("r", 1, value)))
    assert client.relations["r"].rows == server.relations["r"].rows


def test_an_epoch_without_rows_is_an_epoch():
    def shows():
        owner, reader = opened(created("a", {"p": Published()})), created("r", {"p": Published()})
        backup = published(owner, "p", "o", {"x": 1})[0]
        reader = reads(reader, published(backup, "p", "o", {"x": 1, "y": 2})[0])
        again = published(renewed(opened(backup), "b"), "p", "o", {})[0]
        return shown(reads(reader, again), "p")

    assert shows() == []
    with without(Rule.MARKED):
        assert shows() == [("o", "y", 2)]


def test_an_owner_that_has_published_since_it_went_back_publishes_anew_when_it_meets_its_past():
    before, reader = opened(created("b", {"p": Published()})), created("r", {"p": Published()})
    reader = reads(reader, published(before, "p", "o", {"x": 1})[0])
    again = published(renewed(before, "a"), "p", "o", {"y": 2})[0]
    again = reads(again, reader)
    assert shown(again, "p") == [("o", "x", 1)]
    reader = reads(reader, published(again, "p", "o", {"y": 2})[0])
    assert shown(reader, "p") == [("o", "y", 2)]
