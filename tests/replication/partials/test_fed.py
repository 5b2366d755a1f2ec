"""Aggregates over owners' rows at sites that hold no rows: what each owner's rows come to travels instead."""

import pytest
from tests.replication.partials.program import PROGRAM, VIEWS, moved, shown
from tests.replication.sites import talk

import everview as ev
from everview.replication.messages import Section
from everview.replication.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.replication.wire import decode, encode

# What is shown.


def test_it_shows_what_sites_with_rows_show_and_has_none(a, b, reader):
    a.insert(
        "votes", [("a", "pen", 3, 0.1), ("a", "pen", 3, 0.1), ("a", None, 5, 1e300), ("a", "ink", None, None)]
    )
    b.insert("votes", [("b", "pen", 7, 0.2), ("b", None, -5, -1e300), ("b", "cap", 1, 0.3)])
    b.insert("meters", [("b", 1, 2**63 - 1)])
    a.insert("meters", [("a", 1, 1), ("a", 2, 8)])
    assert reader.rows("total") == [(0, None, None)]
    a.sync(b)
    reader.sync(a)
    assert shown(reader) == shown(a) == shown(b)
    assert reader.rows("used") == [(1, None), (2, 8)]  # what does not fit is NULL, though each half fits
    assert moved(reader.sync(a)) == 0
    tables = reader._store.writer.connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert not [name for (name,) in tables if name.startswith("everview_r")]
    for site in (a, b):
        site.execute("DELETE FROM votes WHERE site = ?", (site.name,))
    a.delete("meters", [("a", 1)])
    talk(a, b)
    reader.sync(b)
    assert shown(reader) == shown(a)
    assert (reader.rows("tally"), reader.rows("total")) == ([], [(0, None, None)])
    assert reader.rows("used") == [(1, 2**63 - 1), (2, 8)]


def test_an_owner_feeds_and_its_deletes_are_right_for_every_aggregate(a, reader):
    a.insert("votes", [("a", "pen", n, n / 10) for n in range(1, 8)])
    for gone in ([7], [1], [3, 6], [5], [2], [4]):
        reader.sync(a)
        assert shown(reader) == shown(a)
        a.delete("votes", [("a", "pen", n, n / 10) for n in gone])
    reader.sync(a)
    assert shown(reader) == shown(a)
    assert reader.rows("best") == []


def test_sums_of_doubles_leave_no_trace(a, b, reader):
    a.insert("votes", [("a", "pen", 1, 1e16), ("a", "pen", 1, 1.0)])
    b.insert("votes", [("b", "pen", 1, -1e16)])
    talk(a, b)
    reader.sync(b)
    assert reader.rows("total") == a.rows("total") == [(3, 1.0, 1)]


def test_only_what_has_changed_travels(a, reader):
    a.insert("votes", [("a", f"item {n}", n, 0.5) for n in range(300)])
    first = reader.sync(a)
    a.insert("votes", [("a", "item 7", 1, 0.5)])
    second = reader.sync(a)
    assert second.received_rows < 20 < first.received_rows
    assert second.received_bytes < first.received_bytes / 2
    assert shown(reader) == shown(a)
    a.insert("notes", [("of no concern",)])
    assert reader.sync(a).received_rows == 0  # where its owner stands is no row
    assert shown(reader) == shown(a)


def test_bytes_grow_with_groups_and_not_with_rows(world):
    def first(count, groups):
        site = world.site("a", program=PROGRAM)
        site.insert("votes", [("a", f"item {n % groups}", n % 7, 0.5) for n in range(count)])
        return world.site("reader", program=PROGRAM, hosts={"tally"}).sync(site).received_bytes

    few, many, wide = first(100, 50), first(3_000, 50), first(3_000, 1_500)
    assert many < few * 1.5
    assert wide > many * 3


def test_watches_are_told_of_what_really_changed(a, b, reader):
    told = []
    a.insert("votes", [("a", "pen", 1, None), ("a", "ink", 1, None)])
    reader.sync(a)
    reader.watch("popular", lambda changes: told.append(sorted(changes)))
    b.insert("votes", [("b", "pen", 1, None)])
    b.sync(a)
    reader.sync(b)
    assert told == [[(("pen", 2), 1)]]
    a.delete("votes", [("a", "pen", 1, None)])
    a.insert("votes", [("a", "ink", 2, None)])
    a.sync(b)
    reader.sync(b)
    assert told[1:] == [[(("ink", 2), 1), (("pen", 2), -1)]]


# Ways.


def test_it_passes_through_others_that_hold_rows_or_only_the_view(world, a):
    holder = world.site("holder", program=PROGRAM, hosts={"votes"})
    relay = world.site("relay", program=PROGRAM, hosts={"tally"})
    last = world.site("last", program=PROGRAM, hosts={"tally", "best"})
    a.insert("votes", [("a", "pen", 1, 0.5)])
    for _ in range(2):
        holder.sync(a)
        relay.sync(holder)
        last.sync(relay)
    assert last.rows("tally") == relay.rows("tally") == a.rows("tally")
    assert last.rows("best") == []  # the relay does not have it
    last.sync(holder)
    assert last.rows("best") == a.rows("best")
    a.delete("votes", [("a", "pen", 1, 0.5)])
    holder.sync(a)
    relay.sync(holder)
    assert last.sync(relay).received_rows <= 4  # the entry that has gone
    assert last.rows("tally") == []


def test_a_feeder_that_has_skipped_a_state_does_not_mislead(world, a, reader):
    """The entry is as it was for the feeder, which never saw what the reader saw elsewhere."""
    holder = world.site("holder", program=PROGRAM)
    a.insert("votes", [("a", "pen", 1, None), ("a", "ink", 1, None)])
    holder.sync(a)
    reader.sync(holder)
    a.insert("votes", [("a", "pen", 5, None)])
    reader.sync(a)
    a.delete("votes", [("a", "pen", 5, None)])
    a.insert("votes", [("a", "ink", 2, None)])
    holder.sync(a)
    reader.sync(holder)
    assert shown(reader) == shown(a) == shown(holder)


def test_what_has_changed_is_not_taken_by_who_has_gone_elsewhere_meanwhile(world, a, reader):
    """The answer is for the state that the reader had when it asked."""
    holder, other = (world.site(name, program=PROGRAM) for name in ("holder", "other"))
    a.insert("votes", [("a", "pen", 1, None), ("a", "ink", 1, None)])
    holder.sync(a)
    reader.sync(holder)
    a.insert("votes", [("a", "pen", 5, None)])
    other.sync(a)
    a.delete("votes", [("a", "pen", 5, None)])
    a.insert("votes", [("a", "ink", 2, None)])
    holder.sync(a)
    exchange, before = reader.replica.exchange("memory:holder"), reader.rows("tally")
    message = exchange.open()
    while message is not None:
        answer = holder.replica.answer(message)
        if decode(answer).page is not None:
            reader.sync(other)
        message = exchange.receive(answer)
        assert reader.rows("tally") in (before, other.rows("tally"), holder.rows("tally"))
    reader.sync(holder)
    assert shown(reader) == shown(holder)


def test_a_state_that_has_become_older_on_its_way_is_not_taken(world, a, reader):
    holder = world.site("holder", program=PROGRAM)
    a.insert("votes", [("a", "pen", 1, None)])
    holder.sync(a)
    a.insert("votes", [("a", "pen", 2, None)])
    exchange, ahead = reader.replica.exchange("memory:holder"), False
    message = exchange.open()
    while message is not None:
        answer = holder.replica.answer(message)
        if decode(answer).page is not None:
            reader.sync(a)
            ahead = True
        message = exchange.receive(answer)
        assert not ahead or shown(reader) == shown(a)
    assert ahead


def test_an_older_state_is_not_taken(world, a, reader):
    behind = world.site("behind", program=PROGRAM)
    a.insert("votes", [("a", "pen", 1, None)])
    behind.sync(a)
    a.insert("votes", [("a", "pen", 2, None)])
    reader.sync(a)
    reader.sync(behind)
    assert shown(reader) == shown(a) != shown(behind)


def test_who_reads_from_two_gets_from_each_what_is_new(world, a, b, reader):
    for number in range(5):
        a.insert("votes", [("a", f"item {number}", number, None)])
        b.insert("votes", [("b", f"item {number}", -number, None)])
        reader.sync(a)
        reader.sync(b)
    talk(a, b)
    assert shown(reader) == shown(a)
    for site in (a, b):
        assert reader.sync(site).received_rows <= 40  # b's and a's are new to a and b, and come whole
    for site in (a, b):
        reader.sync(site)  # they agree with the reader now
        a.insert("votes", [("a", "item 1", 1, None)])
        talk(a, b)
        assert reader.sync(site).received_rows <= 4 * len(VIEWS)
        assert shown(reader) == shown(site)
    for site in (a, b):
        reader.sync(site)
        assert moved(reader.sync(site)) == 0


@pytest.mark.parametrize("page_rows", [1, 2, 7])
def test_pages_between_which_much_happens(world, page_rows):
    chance = world.random
    sites = [world.site(name, program=PROGRAM) for name in ("a", "b")]
    reader = world.site("reader", program=PROGRAM, hosts=VIEWS)
    for site in (*sites, reader):
        site._replica._page_rows = page_rows
    states = []

    def happen():
        site = chance.choice(sites)
        what = chance.random()
        if what < 0.7:
            rows = [row for row in site.rows("votes") if row[0] == site.name]
            if rows and chance.random() < 0.5:
                site.delete("votes", [chance.choice(rows)])
            site.insert("votes", [(site.name, f"item {chance.randrange(6)}", chance.randrange(9), 0.5)])
        elif what < 0.85:
            sites[0].sync(sites[1])
        else:
            site.replica.collect()
        states.extend(s.rows("tally") for s in sites)

    for _ in range(12):
        happen()
    for _ in range(12):
        sender = chance.choice(sites)
        exchange = reader.replica.exchange(sender.name)
        message = exchange.open()
        while message is not None:
            answer = sender.replica.answer(message)
            if chance.random() < 0.3:
                happen()
            message = exchange.receive(answer)
    talk(*sites)
    reader.sync(sites[0])
    assert shown(reader) == shown(sites[0])


def test_an_owner_that_is_to_be_told_whole_since_the_cut_began(world, a, b, reader):
    """Its older entries have been passed by then: the stream begins anew."""
    holder = world.site("holder", program=PROGRAM)
    b.insert("votes", [("b", f"item {n}", n, None) for n in range(3)])
    holder.sync(b)
    world.site("first", program=PROGRAM, hosts=VIEWS).sync(
        holder
    )  # from now on entries have commits of their own
    a.insert("votes", [("a", f"item {n}", n, None) for n in range(9)])
    holder.sync(a)
    reader.sync(b)
    holder._replica._page_rows = 2
    exchange = reader.replica.exchange("memory:holder")
    message, pages = exchange.open(), 0
    while message is not None:
        answer = holder.replica.answer(message)
        pages += decode(answer).page is not None
        if pages == 3:
            b.insert("votes", [("b", "item 0", 7, None)])
            holder.sync(b)
        message = exchange.receive(answer)
        assert all(row[1] <= 3 for row in reader.rows("tally"))
    reader.sync(holder)
    assert shown(reader) == shown(holder)


def test_an_entry_that_went_and_was_forgotten_since_the_cut_began(world, a, reader):
    a.insert("votes", [("a", f"item {n}", n, None) for n in range(9)])
    a._replica._page_rows = 2
    exchange = reader.replica.exchange("memory:a")
    message, pages = exchange.open(), 0
    while message is not None:
        answer = a.replica.answer(message)
        pages += decode(answer).page is not None
        if pages == 3:
            a.delete("votes", [("a", f"item {n}", n, None) for n in range(9) if n != 5])
            a.replica.collect()
        message = exchange.receive(answer)
        assert len(reader.rows("tally")) in (0, 1, 9)
    assert shown(reader) == shown(a)


def test_a_folder_carries_it(world, tmp_path):
    folder = tmp_path / "folder"
    a, b = (world.site(name, tmp_path / f"{name}.db", program=PROGRAM) for name in "ab")
    only = world.site("only", tmp_path / "only.db", program=PROGRAM, hosts={"tally"})

    def visit():
        return [site.sync(folder) for site in (a, b, only)]

    for number in (3, 4, 5):
        a.insert("votes", [("a", "pen", number, None)])
        b.insert("votes", [("b", "pen", -number, None), ("b", f"item {number}", 1, None)])
        for _ in range(4):
            visit()
        assert only.rows("tally") == a.rows("tally") == b.rows("tally")
    b.delete("votes", [("b", "item 4", 1, None)])
    for _ in range(2):
        reports = visit()
    assert only.rows("tally") == b.rows("tally")
    assert [moved(report) for report in visit()] == [0, 0, 0]
    assert reports[-1].received_rows < 20


# Why, and how.


def test_why_says_which_owners_have_rows_in_the_group(a, b, reader):
    a.insert("votes", [("a", "pen", 1, 0.5), ("a", "pen", 2, 0.5), ("a", "ink", 2, None)])
    b.insert("votes", [("b", "pen", 3, 0.25)])
    talk(a, b)
    reader.sync(a)
    why = reader.why("tally", ("pen", 3, 6, 1, 3, 1.25 / 3))
    assert str(why) == "t1·t2"
    assert [(w.relation, w.values, w.origin) for w in why.tuples()] == [
        ("tally", {"item": "pen"}, "a"),
        ("tally", {"item": "pen"}, "b"),
    ] or {w.origin for w in why.tuples()} == {"a", "b"}
    assert len(a.why("tally", ("pen", 3, 6, 1, 3, 1.25 / 3)).tuples()) == 3
    assert not reader.why("tally", ("pen", 4, 6, 1, 3, 1.25 / 3))
    (best,) = reader.why("best", ("b", "pen", 3)).tuples()
    assert (best.origin, best.values) == ("b", {"site": "b", "item": "pen", "n": 3})


def test_explain_says_how_and_why(world, a, reader):
    a.insert("votes", [("a", "pen", 1, 0.5)])
    reader.sync(a)
    text = reader.explain("tally")
    assert "merged from partial aggregates of other sites, because this site does not host votes" in text
    assert "any site feeds it that hosts votes, or receives it too" in text
    assert "entries of 1 owner: 1 in" in text
    other = world.site("other", program=PROGRAM, hosts={"kinds"})
    assert "because count of different values does not follow from those of each owner" in other.explain(
        "kinds"
    )
    other.sync(a)
    assert other.rows("kinds") == a.rows("kinds")


# Rights, and what no site sends.


def test_who_may_not_write_it_brings_nothing_and_who_may_not_read_it_gets_nothing(a, reader):
    a.insert("votes", [("a", "pen", 1, None)])
    for rights in (Rights(writes=frozenset(["votes"])), Rights(writes=frozenset())):
        MemoryTransport(reader.replica, "reader", rights).sync(a.replica)
        assert reader.rows("tally") == []
    MemoryTransport(a.replica, "a", Rights("reader", reads=frozenset(["best"]))).sync(reader.replica)
    assert (reader.rows("tally"), reader.rows("best")) == ([], a.rows("best"))
    MemoryTransport(a.replica, "a", Rights("reader", reads=frozenset(["tally"]), writes=frozenset())).sync(
        reader.replica
    )
    assert reader.rows("tally") == a.rows("tally")


def conversation(reader, sender, change):
    """A sync in which the sections that the sender sends are changed on the way."""
    exchange = reader.replica.exchange(sender.name)
    message = exchange.open()
    while message is not None:
        answer = decode(sender.replica.answer(message))
        if answer.page is not None:
            answer.page.sections[:] = [one for section in answer.page.sections for one in change(section)]
        message = exchange.receive(encode(answer))


def only(part, change):
    def changed(section):
        return change(section) if "#partial." in section.stream and section.part == part else [section]

    return changed


def replaced(section, column, cell):
    columns = list(section.columns)
    columns[column] = [cell] * section.count
    return [Section(section.stream, section.part, section.count, columns)]


@pytest.mark.parametrize(
    "change",
    [
        only(1, lambda section: replaced(section, 1, 3)),  # told in no known way
        only(1, lambda section: replaced(section, 2, 1)),  # of an input that there is not
        only(1, lambda section: replaced(section, 4, 0)),  # at no commit
        only(1, lambda section: replaced(section, 4, 2**62 + 1)),
        only(1, lambda section: replaced(section, 0, None)),  # of no owner
        only(1, lambda section: replaced(section, 0, 7)),
        only(2, lambda section: replaced(section, 2, "many")),
        only(2, lambda section: [Section(section.stream, 9, section.count, section.columns)]),
        only(2, lambda section: [Section(section.stream, 2, section.count, section.columns[1:])]),
    ],
)
def test_what_no_site_sends_is_refused_with_its_message(a, reader, change):
    a.insert("votes", [("a", "pen", 1, 0.5)])
    with pytest.raises((ev.SyncError, ev.DataError)):
        conversation(reader, a, change)
    assert shown(reader)["tally"] == []
    reader.sync(a)
    assert shown(reader) == shown(a)


def test_entries_of_owners_that_are_not_told_of_change_nothing(a, b, reader):
    b.insert("votes", [("b", "pen", 7, None)])
    reader.sync(b)
    a.insert("votes", [("a", "pen", 1, 0.5)])

    def forged(section):
        return [section, *replaced(section, 0, "b")]

    conversation(reader, a, only(2, forged))
    assert reader.rows("total") == [(2, 0.5, 7)]


def test_entries_that_are_neither_there_nor_gone_are_dropped_and_counted(a, reader):
    a.insert("votes", [("a", "pen", 1, 0.5)])
    conversation(reader, a, only(2, lambda section: [section, *replaced(section, -1, 2)]))
    assert shown(reader) == shown(a)
    assert reader.status()["replication"]["dropped_rows"] > 0
