"""Sites that run different versions of a program share what both know, and nothing is forgotten too early."""

import pytest
from tests.evolution.world import run
from tests.site.checks import assert_fresh

import everview as ev
from everview.replication.protocol.replica import Replica

R = "CREATE TABLE r (a BIGINT NOT NULL, b TEXT);"
WIDE = "CREATE TABLE r (a BIGINT NOT NULL, b TEXT, c BIGINT);"
S = "CREATE TABLE s (n BIGINT NOT NULL);"
K = "CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);"
SOME = "CREATE MATERIALIZED VIEW some AS SELECT b FROM r WHERE a > 0;"
OTHER = "CREATE MATERIALIZED VIEW other AS SELECT b FROM r WHERE a < 100;"


class Fleet:
    """Sites by name, and their files."""

    def __init__(self, folder):
        self.folder, self.sites = folder, {}

    def open(self, name, text, hosts=None):
        self.sites[name] = ev.Site.open(
            self.folder / f"{name}.db", ev.Program.parse(text), name=name, hosts=hosts
        )
        return self.sites[name]

    def migrate(self, name, text, hosts=None):
        self.sites[name].close()
        path, program = self.folder / f"{name}.db", ev.Program.parse(text)
        ev.Site.migrate(path, program, hosts=hosts)
        self.sites[name] = ev.Site.open(path, program)
        return self.sites[name]


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path)
    yield fleet
    for site in fleet.sites.values():
        site.close()


@pytest.mark.parametrize("seed", range(5))
def test_random_worlds(seed, tmp_path):
    run(seed, tmp_path)


def test_what_both_declare_goes_both_ways(fleet):
    old, new = fleet.open("old", R + K), fleet.open("new", R + K + S + SOME)
    old.insert("r", [(1, "x")])
    new.insert("r", [(2, "y")])
    new.insert("k", [(1, "one")])
    new.insert("s", [(9,)])
    assert old.sync(new).received_rows == 2
    assert old.rows("r") == new.rows("r") == [(1, "x"), (2, "y")]
    assert old.rows("k") == [(1, "one")]
    assert new.rows("some") == [("x",), ("y",)]
    again = old.sync(new)
    assert (again.sent_rows, again.received_rows) == (0, 0)
    old.delete("r", [(2, "y")])
    new.sync(old)
    assert new.rows("some") == [("x",)]
    assert_fresh(new)


def test_what_is_new_comes_when_the_site_goes_over(fleet):
    old, new = fleet.open("old", R), fleet.open("new", R + S)
    new.insert("s", [(1,), (2,)])
    old.sync(new)
    old = fleet.migrate("old", R + S)
    assert old.sync(new).received_rows == 2
    assert old.rows("s") == [(1,), (2,)]


def test_a_wider_relation_takes_and_does_not_give(fleet, caplog):
    old, new = fleet.open("old", R + K), fleet.open("new", R + K)
    old.insert("r", [(1, "x")])
    new.sync(old)
    new = fleet.migrate("new", WIDE + K)
    new.insert("r", [(2, "y", 5)])
    new.delete("r", [(1, "x", None)])
    new.insert("k", [(1, "one")])
    old.insert("r", [(3, "z")])
    old.sync(new)
    assert new.rows("r") == [(2, "y", 5), (3, "z", None)]
    assert old.rows("r") == [(1, "x"), (3, "z")]  # what it would be told it could not keep
    assert old.rows("k") == [(1, "one")]
    assert [r.message for r in caplog.records if "new runs a later program, in which r has" in r.message]
    old = fleet.migrate("old", WIDE + K)
    assert old.sync(new).received_rows == 3  # a row, one that went, and how long that tuple is; not all of it
    assert old.rows("r") == new.rows("r") == [(2, "y", 5), (3, "z", None)]


@pytest.mark.parametrize("widens", [True, False])
def test_a_sender_that_goes_over_between_two_pages(fleet, monkeypatch, widens):
    """What it had reached is a place in tables that are others now."""
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 40)
    narrow, wide = "CREATE TABLE n (a BIGINT NOT NULL);", "CREATE TABLE n (a BIGINT NOT NULL, b TEXT);"
    sender, reader = fleet.open("sender", narrow), fleet.open("reader", wide if widens else narrow + S)
    rows = [(n,) for n in range(1000, 1040)]
    sender.insert("n", rows)
    talk = reader.replica.exchange("sender")
    message = talk.open()
    while reader.status()["replication"]["staged_pages"] < 3:
        message = talk.receive(sender.replica.answer(message))
    sender = fleet.migrate("sender", wide if widens else S + narrow)
    reader.sync(sender)
    assert [row[0] for row in reader.rows("n")] == [n for (n,) in rows]
    assert reader.status()["replication"]["staged_pages"] == 0


def test_rows_of_several_pages_are_widened(fleet, monkeypatch):
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 40)
    old, new = fleet.open("old", R + K), fleet.open("new", WIDE + K)
    old.insert("r", [(n, "x") for n in range(50)])
    new.insert("k", [(n, "y") for n in range(50)])
    new.sync(old)
    assert new.rows("r") == [(n, "x", None) for n in range(50)]
    assert old.rows("k") == new.rows("k")
    assert len(new.rows("k")) == 50


def test_what_an_old_site_writes_over_a_key_is_the_last_write(fleet):
    old, new = fleet.open("old", K), fleet.open("new", K)
    new.insert("k", [(1, "one")])
    old.sync(new)
    wide = "CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT, more TEXT);"
    new = fleet.migrate("new", wide)
    new.insert("k", [(1, "one", "more"), (2, "two", "more")])
    old.insert("k", [(1, "uno")])
    new.sync(old)
    assert new.rows("k") == [(1, "uno", None), (2, "two", "more")]


def test_by_a_folder_too(fleet, tmp_path):
    stick = tmp_path / "stick"
    old, new = fleet.open("old", R), fleet.open("new", R + S)
    old.insert("r", [(1, "x")])
    new.insert("r", [(2, "y")])
    new.insert("s", [(3,)])
    for _ in range(3):
        old.sync(stick)
        new.sync(stick)
    old.sync(stick)
    assert old.rows("r") == new.rows("r") == [(1, "x"), (2, "y")]
    old = fleet.migrate("old", R + S)
    for _ in range(2):
        old.sync(stick)
        new.sync(stick)
    old.sync(stick)
    assert old.rows("s") == [(3,)]


def test_who_finds_only_files_of_a_site_that_went_over(fleet, tmp_path):
    stick = tmp_path / "stick"
    one = fleet.open("one", R)
    one.insert("r", [(1, "x")])
    one.sync(stick)
    one = fleet.migrate("one", R + S)
    one.insert("s", [(1,)])
    one.sync(stick)
    late = fleet.open("late", R + S)
    late.sync(stick)
    assert (late.rows("r"), late.rows("s")) == ([(1, "x")], [(1,)])


def test_a_wider_relation_in_a_folder(fleet, tmp_path):
    stick = tmp_path / "stick"
    old, new = fleet.open("old", R + K), fleet.open("new", R + K)
    old.insert("r", [(1, "x")])
    new.sync(old)
    new = fleet.migrate("new", WIDE + K)
    new.insert("r", [(2, "y", 5)])
    new.insert("k", [(1, "one")])
    for _ in range(2):
        old.sync(stick)
        new.sync(stick)
    old.insert("r", [(3, "z")])
    old.sync(stick)
    new.sync(stick)
    assert old.rows("k") == [(1, "one")]
    assert old.rows("r") == [(1, "x"), (3, "z")]
    assert new.rows("r") == [(1, "x", None), (2, "y", 5), (3, "z", None)]
    old.sync(stick)
    assert old.sync(stick).received_bytes == 0  # what it cannot take is no reason to read files again
    old = fleet.migrate("old", WIDE + K)
    for site in (old, new, old):
        site.sync(stick)
    assert old.rows("r") == new.rows("r")


def test_published_views_are_exchanged_where_they_say_the_same(fleet):
    def text(limit, more=""):
        view = f"CREATE MATERIALIZED VIEW top WITH (authority = 'boss') AS SELECT b FROM r WHERE a > {limit};"
        return R + view + more

    boss = fleet.open("boss", text(0))
    same, another = (
        fleet.open("same", text(0, S), hosts={"top"}),
        fleet.open("another", text(5), hosts={"top"}),
    )
    boss.insert("r", [(1, "x"), (9, "y")])
    same.sync(boss)
    another.sync(boss)
    assert same.rows("top") == [("x",), ("y",)]
    assert another.rows("top") == []
    boss = fleet.migrate("boss", text(5))
    another.sync(boss)
    same.sync(boss)
    assert another.rows("top") == [("y",)]
    assert same.rows("top") == [("x",), ("y",)]  # as it was
    same = fleet.migrate("same", text(5, S))
    assert same.rows("top") == []
    same.sync(another)
    assert same.rows("top") == [("y",)]


def test_programs_that_have_nothing_in_common_are_refused(fleet):
    one, other = fleet.open("one", R), fleet.open("other", S)
    with pytest.raises(ev.SyncError, match="another program, which has no relation in common") as caught:
        one.sync(other)
    assert not caught.value.retry


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE r (a BIGINT, b TEXT);",
        "CREATE TABLE r (a BIGINT NOT NULL, b BIGINT);",
        "CREATE TABLE r (a BIGINT NOT NULL, c TEXT);",
        "CREATE TABLE r (a BIGINT NOT NULL, b TEXT) WITH (semantics = 'bag');",
        "CREATE TABLE r (a BIGINT NOT NULL, b TEXT, c TEXT NOT NULL);",
        "CREATE TABLE r (a BIGINT PRIMARY KEY, b TEXT);",
    ],
)
def test_a_relation_of_the_same_name_that_is_another_is_refused(fleet, text):
    one, other = fleet.open("one", R + S), fleet.open("other", text + S)
    one.insert("s", [(1,)])
    with pytest.raises(ev.SyncError, match="in which r is another relation"):
        other.sync(one)
    assert other.rows("s") == []
