"""What worlds found, each as the shortest history."""

from spec.replication import transfers
from spec.replication.answers import answer
from spec.replication.endings import given_up, heard
from spec.replication.folders import folded, increment, mark
from spec.replication.incarnations import renewed, went_back
from spec.replication.kinds import Bag, Set
from spec.replication.merges import merged
from spec.replication.partitions import rehosted
from spec.replication.repairs import repaired
from spec.replication.stores import created, opened
from spec.replication.transactions import Delete, Insert, write
from spec.replication.views import View

JOIN = View(("r", "s"), ("r", "s"))


def store(name, kind, prefix="", **views):
    return opened(created(name, {prefix + "r": kind, prefix + "s": kind}, views))


def does(site, *statements):
    return write(site, statements)[0]


def reads(reader, sender):
    cut = transfers.cut_for(sender, reader)
    return merged(heard(reader, cut.ended), cut)


def test_a_request_names_the_incarnation_that_its_cursors_belong_to():
    a = does(store("a", Bag()), Insert("r", 1))
    b = reads(store("b", Bag()), does(a, Insert("r", 2)))
    question = transfers.request(b, transfers.begun(b, "a"))
    assert not went_back(renewed(opened(a), "c"), question)
    assert went_back(a, question)


def test_a_transfer_that_began_earlier_tells_of_the_latest_cursor_too():
    a = does(store("a", Bag()), Insert("r", 1))
    backup, b = a, store("b", Bag())
    transfer = transfers.begun(b, "a")
    a = does(a, Insert("r", 2))
    b = reads(b, a)
    rewound = does(opened(backup), Insert("r", 3))
    assert went_back(rewound, transfers.request(b, transfer))


def test_a_store_that_drops_what_it_wrote_does_not_use_its_numbers_again():
    a = does(store("a", Bag()), Insert("r", 1))
    b = reads(store("b", Bag()), a)
    a = rehosted(rehosted(a, Bag(), {"s"}, "c"), Bag(), {"r", "s"}, "d")
    a = does(a, Insert("r", 2))
    assert not went_back(a, transfers.request(b, transfers.begun(b, a.incarnation)))
    a, b = reads(a, b), reads(b, a)
    assert a.relations["r"].shown() == b.relations["r"].shown() == [(1, None), (2, None)]


def test_what_is_heard_of_a_lost_store_stays_though_the_cut_does_not_fit():
    lost = does(store("lost", Set()), Insert("r", 1))
    base = does(store("base", Set(), v=JOIN), Insert("s", 1))
    view = reads(reads(store("view", Set(), "~", v=JOIN), lost), base)
    base = given_up(base, "lost", ["r", "s"])
    cut = transfers.cut_for(base, view)
    emptied = heard(view, cut.ended)
    assert merged(emptied, cut) is None
    assert emptied.relations["~r"].vector == {}
    assert reads(emptied, base).relations["~r"].vector == base.relations["r"].vector


def test_two_increments_fold_into_a_snapshot():
    a = store("a", Bag())
    marks = [mark(a)]
    a = does(a, Insert("r", 1), Insert("r", 2))
    files, marks = [increment(a, marks[0])], [*marks, mark(a)]
    a = does(a, Delete("r", 1))
    files.append(increment(a, marks[1]))
    later = does(reads(store("b", Bag()), a), Insert("r", 3))
    got = merged(later, folded(*files))
    assert got is None or got.relations["r"].rows == later.relations["r"].rows
    assert merged(store("c", Bag()), folded(*files)).relations["r"].rows == a.relations["r"].rows


def test_after_a_repair_a_dot_may_name_another_row_and_views_are_derived_anew():
    a = does(store("a", Bag(), v=JOIN), Insert("r", 1), Insert("s", 1))
    b = does(store("a", Bag(), v=JOIN), Insert("r", 2), Insert("s", 1))
    b = repaired(b, "r", a)
    assert [d.key for d in b.views["v"].derivations.values()] == [1]


def test_a_page_is_from_one_incarnation():
    a = does(store("a", Bag()), Insert("r", 1), Insert("r", 2))
    b = store("b", Bag())
    transfer = transfers.begun(b, "a")
    question = transfers.request(b, transfer, limit=1)
    transfer = transfers.staged(transfer, question, answer(a, question))
    question = transfers.request(b, transfer, limit=1)
    try:
        transfers.staged(transfer, question, answer(renewed(opened(a), "c"), question))
    except transfers.Abandoned:
        return
    raise AssertionError
