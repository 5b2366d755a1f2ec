"""Views that are received, when nobody is left in their group who could feed them."""

import pytest
from tests.replication.sites import World

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE n (a BIGINT, b TEXT);
    CREATE TABLE s (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW v AS SELECT a FROM n UNION ALL SELECT a FROM s;
""")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def site(world):
    def opened(name, *hosts, path=":memory:"):
        return world.site(name, path, program=PROGRAM, hosts=set(hosts) or None)

    return opened


def sync_all(*pairs):
    """These meet, one pair after the other, until nothing moves between any of them."""
    for _ in range(6):
        reports = [one.sync(other) for one, other in pairs]
        if not any(report.sent_rows + report.received_rows for report in reports):
            return
    raise AssertionError("they do not come to rest")


def group(site):
    """The group of the view, where it is received."""
    (name,) = (name for stream, name in site.replica.status()["groups"].items() if "#" in stream)
    return name


def test_a_view_is_fed_again_by_the_one_site_that_fed_it_and_was_given_up(site):
    """Who has come back is in no group before somebody asks, and was asked for what is new in its old one."""
    base, view = site("base"), site("view", "v")
    base.insert("n", [(1, "x")])
    view.sync(base)
    view.replica.expire(base.replica.incarnation)
    base.insert("n", [(2, "x")])
    base.delete("n", [(1, "x")])
    sync_all((view, base))
    assert view.rows("v") == base.rows("v") == [(2,)]


def test_a_row_reaches_the_view_of_a_site_that_also_hosts_its_relation(site):
    """base joins from founder, and so is given up with it; both return, and found anew what view lacks."""
    base, view, founder = site("base"), site("view", "n", "v"), site("founder")
    founder.sync(view)
    base.insert("n", [(None, "a")])
    view.replica.expire(founder.replica.incarnation)
    sync_all((base, founder), (base, view), (base, founder))
    assert view.rows("n") == [(None, "a")]
    assert view.rows("v") == [(None,)]


def test_a_view_does_not_show_what_its_feeder_lost_with_a_backup(site, tmp_path):
    path = tmp_path / "base.db"
    base, view = site("base", path=path), site("view", "v")
    base.insert("n", [(1, "x")])
    view.sync(base)
    base.close()
    image = path.read_bytes()
    base = site("base", path=path)
    base.insert("n", [(2, "x")])
    view.sync(base)
    assert view.rows("v") == [(1,), (2,)]
    base.close()
    path.write_bytes(image)
    base = site("base", path=path)
    base.insert("n", [(3, "x")])
    sync_all((view, base))
    assert view.rows("v") == base.rows("v") == [(1,), (3,)]
    base.close()


def test_a_view_that_is_fed_by_a_view_follows_it(site):
    base, near, far = site("base"), site("near", "v"), site("far", "v")
    base.insert("n", [(1, "x")])
    near.sync(base)
    far.sync(near)
    near.replica.expire(base.replica.incarnation)
    base.insert("n", [(2, "x")])
    sync_all((near, base), (far, near))
    assert far.rows("v") == near.rows("v") == [(1,), (2,)]
    assert group(far) == group(near)


def test_a_view_in_a_folder_is_fed_again(site, tmp_path):
    base, view, folder = site("base"), site("view", "v"), str(tmp_path)
    base.insert("n", [(1, "x")])
    for _ in range(3):
        base.sync(folder)
        view.sync(folder)
    view.replica.expire(base.replica.incarnation)
    base.insert("n", [(2, "x")])
    for _ in range(5):
        base.sync(folder)
        view.sync(folder)
    assert view.rows("v") == base.rows("v") == [(1,), (2,)]


def test_a_view_does_not_go_where_nobody_is_left_to_feed_it(site):
    """old has not heard that its feeder is back in another group, of a greater name."""
    base, new, old = site("base"), site("new", "v"), site("old", "v")
    base.insert("n", [(1, "x")])
    new.sync(base)
    old.sync(base)
    new.replica.expire(base.replica.incarnation)
    new.sync(base)
    assert group(new) > group(old)
    joined = group(new)
    new.replica.hear(old.replica.tell(None), b"", "")
    assert group(new) == joined
    base.insert("n", [(2, "x")])
    sync_all((old, new), (new, base))
    assert old.rows("v") == new.rows("v") == [(1,), (2,)]


def test_a_view_stays_in_its_group_while_somebody_there_can_feed_it(site):
    one, two, view = site("one"), site("two"), site("view", "v")
    one.insert("n", [(1, "x")])
    two.sync(one)
    view.sync(one)
    view.sync(two)
    before = group(view)
    view.replica.expire(one.replica.incarnation)
    one.insert("n", [(2, "x")])
    sync_all((view, two), (one, two))
    assert group(view) == before
    assert view.rows("v") == [(1,), (2,)]


def test_who_has_only_some_of_the_inputs_does_not_feed_a_view(site):
    """half is left in the view's group, and cannot make the view."""
    base, half, view = site("base"), site("half", "s"), site("view", "v")
    base.insert("s", [(1, 1)])
    half.sync(base)
    view.sync(base)
    view.replica.expire(base.replica.incarnation)
    base.insert("s", [(2, 2)])
    sync_all((view, base), (half, base))
    assert view.rows("v") == base.rows("v") == [(1,), (2,)]


def test_a_copy_of_a_view_is_not_bound_to_where_other_views_are(site, tmp_path):
    """Nothing is written where a view is received: its copy goes to whoever is there to feed it."""
    base, other = site("base"), site("other", "v")
    view = site("view", "v", path=tmp_path / "view.db")
    base.insert("n", [(1, "x")])
    for one in (other, view):
        one.sync(base)
    view.sync(other)
    view.close()
    (tmp_path / "copy.db").write_bytes((tmp_path / "view.db").read_bytes())
    copy, elsewhere = site("copy", "v", path=tmp_path / "copy.db"), site("elsewhere")
    elsewhere.insert("n", [(7, "y")])
    copy.sync(elsewhere)
    assert copy.rows("v") == [(7,)]
    copy.close()


@pytest.mark.parametrize("order", ["near far", "far near"])
@pytest.mark.parametrize("met", [True, False])
def test_a_view_that_came_with_a_file_does_not_wait_for_its_writer(site, tmp_path, order, met):
    """Its group goes into that of near, and who has only the view does not hear of that; or it is gone."""
    bases = {name: site(name) for name in order.split()}
    near, far = bases["near"], bases["far"]
    relay, guest, last = (site(name, "v") for name in ("relay", "guest", "last"))
    near.insert("n", [(1, "x")])
    far.insert("n", [(2, "x")])
    relay.sync(near)
    site("asks", "v").sync(tmp_path / "stick")
    far.sync(tmp_path / "stick")
    guest.sync(tmp_path / "stick")
    assert guest.rows("v") == [(2,)]
    assert guest.status()["replication"]["provisional"]
    if met:
        far.sync(near)
    sync_all((relay, near), (guest, relay), (last, guest))
    assert near.rows("v") == guest.rows("v") == last.rows("v") == ([(1,), (2,)] if met else [(1,)])
    assert not guest.status()["replication"]["provisional"]
    assert group(guest) == group(relay)


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("first", ["near", "guest"])
def test_nor_does_a_relation_and_what_its_writer_has_deleted_is_dead_where_they_meet(
    site, tmp_path, first, forgotten
):
    """It may be all that is left of the writer, in whose group nobody holds back for its sake."""
    near, far, guest = site("near"), site("far"), site("guest")
    near.sync(site("other"))
    far.insert("n", [(2, "x"), (3, "x")])
    far.sync(tmp_path / "stick")
    guest.sync(tmp_path / "stick")
    assert guest.status()["replication"]["provisional"]
    guest.insert("n", [(4, "guest")])
    if forgotten:
        far.delete("n", [(3, "x")])
        assert far.replica.collect() == 1
    sync_all(*([(guest, near)] if first == "guest" else [(near, guest), (near, guest)]))
    assert not guest.status()["replication"]["provisional"]
    assert guest.rows("n") == near.rows("n") == [(2, "x"), (3, "x"), (4, "guest")]
    sync_all((far, near), (guest, near), (far, near), (guest, near))
    rows = [(2, "x"), (4, "guest")] if forgotten else [(2, "x"), (3, "x"), (4, "guest")]
    assert guest.rows("n") == near.rows("n") == far.rows("n") == rows
