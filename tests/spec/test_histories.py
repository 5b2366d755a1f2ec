"""Short histories: one for each idea that is best read as a story."""

import random

import pytest
from spec.replication import cuts, transfers
from spec.replication.answers import answer
from spec.replication.endings import heard
from spec.replication.incarnations import renewed, went_back
from spec.replication.kinds import AddWins, Bag, Keyed, Set
from spec.replication.lattices import Greatest, Merged
from spec.replication.merges import merged
from spec.replication.publications import Published, published
from spec.replication.refusals import Refused, undone
from spec.replication.relations import Cursor
from spec.replication.repairs import alarms, repaired
from spec.replication.rules import Rule, without
from spec.replication.stores import created, dropping, hosting, opened, without_logs
from spec.replication.transactions import Delete, Insert, write
from spec.replication.vectors import Dot
from spec.replication.views import View


def store(name, kind, **views):
    return opened(created(name, {"r": kind, "s": kind}, views))


def does(site, *statements, now=0):
    return write(site, statements, now=now)[0]


def reads(reader, sender):
    cut = transfers.cut_for(sender, reader)
    return merged(heard(reader, cut.ended), cut)


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


def test_of_two_updates_the_later_stays_and_an_update_that_has_seen_the_other_always_does():
    a = does(store("a", Keyed()), Insert("r", 1, "ahead"), now=1000)
    b = does(reads(store("b", Keyed()), a), Insert("r", 1, "seen"), now=5)
    c = does(store("c", Keyed()), Insert("r", 1, "apart"), now=7)
    assert shown(reads(a, b)) == [(1, "seen")]
    assert shown(reads(reads(a, b), c)) == [(1, "apart")]


def test_an_insertion_that_a_deletion_has_not_seen_stays():
    a = does(store("a", AddWins()), Insert("r", 1))
    b = does(reads(store("b", AddWins()), a), Delete("r", 1))
    a = does(a, Insert("r", 1))
    assert shown(reads(b, a)) == shown(reads(a, b)) == [1]


def test_two_people_who_edit_two_columns_both_keep_their_edit():
    a = does(store("a", Merged()), Insert("r", 1, (("x", 1), ("y", 1))), now=90)
    b = does(reads(store("b", Merged()), a), Insert("r", 1, (("x", 2),)), now=10)
    a = does(a, Insert("r", 1, (("y", 2),)), now=20)
    assert shown(reads(b, a)) == shown(reads(a, b)) == [(1, (("x", 2), ("y", 2)))]
    with without(Rule.STAMPED):
        b = reads(store("b", Merged()), does(store("a", Merged()), Insert("r", 1, (("x", 1),)), now=90))
        assert shown(does(b, Insert("r", 1, (("x", 2),)), now=10)) == [(1, (("x", 1),))]


def test_a_lattice_value_is_joined():
    a = does(store("a", Greatest()), Insert("r", 1, 3))
    b = does(store("b", Greatest()), Insert("r", 1, 5))
    assert shown(reads(a, b)) == shown(reads(b, a)) == [(1, 5)]


def test_a_transfer_in_pages_is_one_commit_though_both_sides_write_between_pages():
    a = does(store("a", Bag()), *[Insert("r", key) for key in range(5)], Insert("s", 0))
    b = store("b", Bag())
    transfer, version = transfers.begun(b, "a"), b.version
    for _ in range(2):
        question = transfers.request(b, transfer, limit=2)
        page = answer(a, question)
        assert page.last is None
        transfer = transfers.staged(transfer, question, page)
        a, b = does(a, Delete("r", 0), Insert("s", 1)), does(b, Insert("s", 9))
        assert b.version == version + 1
        version = b.version
    question = transfers.request(b, transfer)
    cut = transfers.assembled(
        transfers.staged(transfer, question, answer(a, question)), answer(a, question).last
    )
    b = merged(b, cut)
    assert b.version == version + 1
    mine, theirs = b.relations["r"], a.relations["r"]
    assert (mine.rows, mine.vector, mine.digest) == (theirs.rows, theirs.vector, theirs.digest)
    assert [key for key, _ in shown(b, "s")] == [0, 1, 1, 9, 9]


def view_stores():
    view = View(("r", "s"), ("r", "s"))
    whole = opened(created("y", {"r": AddWins(), "s": AddWins()}, {"v": view}))
    return whole, *(opened(created(name, {"~r": AddWins(), "~s": AddWins()}, {"v": view})) for name in "uwx")


def test_a_derivation_rises_with_its_rows():
    # u never sees the tuple gone. But w does, over x, and must hear of the derivation again from u.
    y, u, w, x = view_stores()
    y = does(y, Insert("r", 1), Insert("s", 1))
    u = reads(u, y)
    w = reads(w, u)
    y = does(y, Delete("r", 1))
    w = reads(w, reads(x, y))
    y = does(y, Insert("r", 1))
    assert reads(w, reads(u, y)).views["v"].derivations.keys() == {(1, 1)}
    with without(Rule.RAISED):
        assert not reads(w, reads(u, y)).views["v"].derivations


def falling():
    # The tuple 1 has two rows. The later goes while the reader stands between their versions.
    y, _, w, _ = view_stores()
    y = does(y, Insert("r", 1), Insert("s", 1))
    other = does(store("o", AddWins()), Insert("r", 1))
    y = does(y, *[Insert(name, key) for key in (2, 3) for name in "rs"])
    y = reads(y, other)
    transfer, rows = transfers.begun(w, "y"), sum(len(y.relations[name].rows) for name in "rs")
    question = transfers.request(w, transfer, limit=rows + 1)
    page = answer(y, question)
    transfer = transfers.staged(transfer, question, page)
    assert page.last is None
    y = reads(y, does(reads(other, y), Delete("r", 2)))
    gone = opened(created("g", {"r": AddWins(), "s": AddWins()}))
    gone = reads(gone, other)
    y = reads(y, does(gone, Delete("r", 1)))
    question = transfers.request(w, transfer)
    last = answer(y, question)
    w = merged(w, transfers.assembled(transfers.staged(transfer, question, last), last.last))
    return w.views["v"].shown(w.relations), y.views["v"].shown(y.relations)


def test_the_version_of_a_derivation_never_falls():
    got, right = falling()
    assert got == right
    with without(Rule.RISING):
        got, right = falling()
        assert got != right


def test_what_a_reader_says_changes_nothing_and_never_fails():
    chance = random.Random(1)
    y = view_stores()[0]
    y = does(y, *[Insert(name, key) for key in range(5) for name in "rs"])
    before = repr(y)
    for _ in range(300):
        vector = {i: chance.randrange(-5, 2**70) for i in chance.sample(["y", "u", "?", ""], 2)}
        cursor = Cursor(chance.randrange(-3, 9), chance.randrange(9))
        position = chance.choice([None, (chance.randrange(9), (chance.randrange(9), chance.randrange(9)))])
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


def test_a_store_that_went_back_and_wrote_nothing_loses_nothing():
    a, b = rewound()
    assert went_back(a, transfers.request(b, transfers.begun(b, "a")))
    a = reads(renewed(a, "c"), b)
    assert shown(a) == shown(b) == [(2, None)]


def test_what_a_store_wrote_since_it_went_back_counts_as_written_by_its_next_incarnation():
    a, b = rewound()
    a = does(a, Insert("r", 3), Delete("r", 3), Insert("r", 4))
    assert went_back(a, transfers.request(b, transfers.begun(b, "a")))
    a = renewed(a, "c")
    assert a.relations["r"].vector == {"a": 1, "c": 2}
    assert a.relations["r"].log.keys() == {Dot("c", 1)}
    a, b = reads(a, b), reads(b, a)
    assert shown(a) == shown(b) == [(2, None), (4, None)]


def test_a_removal_since_then_is_told_under_the_next_incarnation():
    a, b = rewound()
    c = reads(store("x", Bag()), a)
    a = reads(renewed(does(a, Delete("r", 1)), "c"), b)
    assert a.relations["r"].vector == {"a": 2, "c": 1}
    assert shown(reads(c, a)) == shown(a) == [(2, None)]


def test_what_slips_through_is_found_by_digests_and_repaired():
    a, b = rewound()
    c = reads(store("c", Bag()), does(a, Insert("r", 7)))
    assert c.relations["r"].vector == b.relations["r"].vector
    assert [alarm.relation for alarm in alarms(c, transfers.cut_for(b, c))] == ["r"]
    c = repaired(c, "r", b)
    assert shown(c) == shown(b)
    assert not alarms(c, transfers.cut_for(b, c))


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


def test_a_partition_that_is_dropped_and_added_again_is_read_anew():
    a = does(store("a", Set()), Insert("r", 1))
    b = reads(store("b", Set()), a)
    b = hosting(dropping(b, ["r"]), "r", Set())
    assert shown(b) == []
    assert shown(reads(b, a)) == [1]
