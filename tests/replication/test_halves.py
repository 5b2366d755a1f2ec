"""What `status` says where a transaction may arrive in halves."""

import random
import re

import pytest
from tests.replication.sites import World

import everview as ev
from everview.cli.peers import print_replication

PROGRAM = ev.Program.parse("""
    CREATE TABLE sighting (id BIGINT PRIMARY KEY, sector BIGINT);
    CREATE TABLE sector (id BIGINT NOT NULL);
    CREATE TABLE note (id BIGINT NOT NULL, text TEXT NOT NULL);
    CREATE MATERIALIZED VIEW placed AS
        SELECT s.id, c.id AS sector FROM sighting s JOIN sector c ON s.sector = c.id;
    CREATE MATERIALIZED VIEW noted AS SELECT id FROM note WHERE text <> '';
""")
ALL = None
SEEDS = 12


@pytest.fixture
def site():
    world = World()
    return lambda name, hosts=ALL: world.site(name, program=PROGRAM, hosts=hosts)


def halves(site):
    return [
        (one["name"], one["passes"], one["lacks"], one["read"])
        for one in site.status()["replication"]["halves"]
    ]


def write(site, number):
    with site.transaction() as both:
        both.insert("sighting", [(number, number)])
        both.insert("sector", [(number,)])


def ids(site, relation):
    return {row[0] for row in site.rows(relation)}


def test_the_reader_of_one_that_hosts_half_is_told(site):
    writer, half, reader = site("writer"), site("half", {"sighting", "note"}), site("reader")
    write(writer, 1)
    half.sync(writer)
    reader.sync(half)
    assert (ids(reader, "sighting"), ids(reader, "sector")) == ({1}, set())
    assert halves(reader) == [("half", ["note", "sighting"], ["sector"], True)]
    assert halves(half) == []  # it has all that it hosts, from one that has it
    half.sync(writer)  # by which the writer hears of the reader
    assert halves(writer) == [("half", ["note", "sighting"], ["sector"], True)]


def test_who_reads_from_such_a_reader_is_told_of_the_way(site):
    writer, half = site("writer"), site("half", {"sighting"})
    middle, last = site("middle"), site("last")
    write(writer, 1)
    half.sync(writer)
    half.sync(middle)
    last.sync(middle)
    assert (ids(last, "sighting"), ids(last, "sector")) == ({1}, set())
    assert [name for name, *_ in halves(middle)] == ["half"]
    # That the writer hosts more than half passes on nobody knows.
    way = (["sighting"], ["note", "sector"], False)
    assert halves(last) == [("writer", *way), ("half", *way)]


def test_one_that_joined_from_who_has_everything_is_known_to_lack_the_rest(site):
    base, half, last, other = site("base"), site("half", {"sighting"}), site("last"), site("other")
    half.sync(base)
    other.sync(base)
    last.sync(base)
    assert halves(last) == [("half", ["sighting"], ["note", "sector"], False)]


def test_many_that_pass_on_the_same_are_one_line(site, capsys):
    base, reader = site("base"), site("reader")
    for number in range(5):
        site(f"half-{number}", {"sighting"}).sync(base)
    rest = site("rest", {"sector", "note"})
    rest.sync(base)
    reader.sync(base)
    reader.sync(rest)
    print_replication(reader.status()["replication"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "halves" in line]
    start = "in part:            halves of a transaction may arrive separately: "
    many, one = (re.sub(r" \(\S+\)", "", line).removeprefix(start) for line in lines)
    others = "half-0, half-1, half-2 and 2 more, by way of others,"
    assert many == f"{others} pass on sighting, but not note, sector"
    assert one == "rest passes on note, sector, but not sighting"


def test_a_view_that_is_received_is_a_half_too(site):
    writer, half, reader = site("writer"), site("half", {"placed"}), site("reader", {"placed", "note"})
    write(writer, 1)
    half.sync(writer)
    reader.sync(half)
    assert halves(reader) == [("half", ["placed"], ["note"], True)]
    full = site("full", {"sighting", "sector"})  # which makes the view from what it hosts
    full.sync(writer)
    reader.sync(full)
    assert ("full", ["placed"], ["note"], True) in halves(reader)


def test_nothing_is_said_where_all_host_everything(site):
    sites = [site(f"s{number}") for number in range(4)]
    chance = random.Random(7)
    for step in range(40):
        one, other = chance.sample(sites, 2)
        write(one, step)
        one.sync(other)
        assert not any(map(halves, sites))


def test_nothing_is_said_in_a_folder_where_all_host_everything(site, tmp_path):
    sites = [site(f"s{number}") for number in range(4)]
    chance = random.Random(8)
    for step in range(40):
        one = chance.choice(sites)
        write(one, step)
        one.sync(tmp_path / f"stick-{chance.randrange(2)}")
        assert not any(map(halves, sites))


def test_nothing_is_said_of_one_that_has_only_views_of_what_is_hosted_here(site):
    writer, viewer, reader = site("writer"), site("viewer", {"placed", "noted"}), site("reader")
    write(writer, 1)
    for _ in range(2):
        viewer.sync(writer)
        viewer.sync(reader)
        reader.sync(writer)
        assert halves(reader) == halves(writer) == []


def test_nothing_is_said_where_nobody_else_writes_both(site):
    hub, one, other = site("hub"), site("one", {"sighting"}), site("other", {"sector", "note"})
    write(hub, 1)
    for _ in range(2):
        one.sync(hub)
        other.sync(hub)
    assert halves(hub) == halves(one) == halves(other) == []
    late = site("late")
    late.sync(hub)
    assert {name for name, *_ in halves(hub)} == {"one", "other"}  # which late may meet, too


def test_one_that_was_given_up_passes_nothing_on(site):
    writer, half, reader = site("writer"), site("half", {"sighting"}), site("reader")
    half.sync(writer)
    reader.sync(half)
    reader.sync(writer)
    assert halves(reader)
    reader.expire("half")
    assert halves(reader) == []


def test_whoever_sees_half_of_a_transaction_is_told(site):
    parts = (ALL, ALL, ALL, {"sighting"}, {"sector", "note"}, {"placed"}, {"sighting", "note"})
    seen = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        sites = [site(f"s{number}", part) for number, part in enumerate(parts)]
        for step in range(30):
            if chance.random() < 0.4:
                write(chance.choice(sites[:3]), step)
            one, other = chance.sample(sites, 2)
            one.sync(other)
            for reader in sites[:3]:
                if ids(reader, "sighting") != ids(reader, "sector"):
                    seen += 1
                    assert halves(reader), (seed, step)
    assert seen > 10 * SEEDS
