"""A site that has to meet somebody before it exchanges anything with others: it says so, and whom."""

import shutil

import pytest

import everview as ev
from everview.cli.peers import print_replication
from everview.doctor import examine

PROGRAM = ev.Program.parse("CREATE TABLE r (n BIGINT);")


@pytest.fixture
def site(tmp_path):
    opened = []

    def call(name):
        opened.append(ev.Site.open(tmp_path / f"{name}.db", PROGRAM, name=name))
        return opened[-1]

    yield call
    for one in opened:
        one.close()


@pytest.fixture
def strangers(site):
    """Two sites that are in sync, and have never met the others."""
    x, y = site("x"), site("y")
    x.insert("r", [(3,)])
    x.sync(y)
    return x, y


def moved(report):
    return report.sent_rows, report.received_rows


def test_who_took_a_file_that_did_not_list_it_waits_for_its_writer_or_whoever_answers(
    site, strangers, tmp_path, capsys
):
    writer, reader, (x, _) = site("writer"), site("reader"), strangers
    writer.insert("r", [(1,)])
    writer.sync(tmp_path / "stick")
    reader.insert("r", [(2,)])
    reader.sync(tmp_path / "stick")
    x.sync(tmp_path / "another")

    report = reader.sync(tmp_path / "another")  # a file of another group, which cannot answer
    assert report.received_rows == 0
    assert "waits for writer" in report.held_up
    assert "everview expire" in report.held_up
    assert reader.status()["replication"]["waits_for"] == {"r": ["writer"]}
    print_replication(reader.status()["replication"])
    assert (
        "waits for:          writer, or whoever else answers, to be listed for r\n" in capsys.readouterr().out
    )
    told = [one.text for one in examine(tmp_path / "reader.db") if one.level == "warning"]
    assert told == ["r: files of other groups are not taken before this site has met writer or another"]

    assert reader.sync(x).held_up == ""
    assert reader.status()["replication"]["waits_for"] == {}
    assert reader.rows("r") == x.rows("r") == [(1,), (2,), (3,)]
    assert x.sync(writer).held_up == ""
    assert writer.rows("r") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("dials", ["reader", "x"])
def test_who_answers_it_gets_no_half_of_it(site, strangers, tmp_path, dials):
    """Rows are counted where they were taken, whoever dials."""
    writer, reader, (x, _) = site("writer"), site("reader"), strangers
    writer.insert("r", [(1,)])
    writer.sync(tmp_path / "stick")
    reader.insert("r", [(2,)])
    reader.sync(tmp_path / "stick")
    one, other = (reader, x) if dials == "reader" else (x, reader)
    counted = [0, 0]
    for _ in range(2):
        report = one.sync(other)
        counted = [n + m for n, m in zip(counted, moved(report), strict=True)]
    assert report.held_up == ""
    assert counted == ([2, 1] if dials == "reader" else [1, 2])
    assert reader.rows("r") == x.rows("r") == [(1,), (2,), (3,)]


def test_a_restored_store_names_those_whom_it_has_to_return_to(site, strangers, tmp_path):
    a, b, (x, _) = site("a"), site("b"), strangers
    a.insert("r", [(1,)])
    a.sync(b)
    a.backup(tmp_path / "backup")
    a.insert("r", [(2,)])
    a.sync(b)
    a.close()
    with ev.Site.restore(tmp_path / "backup", tmp_path / "a.db", replace=True) as again:
        again.insert("r", [(9,)])
        with pytest.raises(ev.SyncError, match=r"waits for b, .* sync with b, or give it up") as caught:
            again.sync(x)
        assert caught.value.retry
        report = x.sync(again)
        assert moved(report) == (0, 0)
        assert "a has not taken what was sent" in report.held_up
        assert again.status()["replication"]["waits_for"] == {"r": ["b"]}
    told = [one for one in examine(tmp_path / "a.db") if "before this site has met b" in one.text]
    assert [one.level for one in told] == ["warning"]
    with ev.Site.open(tmp_path / "a.db") as again:
        again.sync(b)
        assert again.sync(x).held_up == ""
        assert again.rows("r") == x.rows("r") == [(1,), (2,), (3,), (9,)]


def test_two_that_wait_both_say_so(site, tmp_path):
    """Neither serves anything: what they have in common is what they ask each other for."""
    for name in ("a", "c"):
        one, other = site(name), site(f"{name}'s friend")
        one.insert("r", [(ord(name),)])
        one.sync(other)
        one.backup(tmp_path / f"{name}.backup")
        one.close()
    a, c = (ev.Site.restore(tmp_path / f"{n}.backup", tmp_path / f"{n}.db", replace=True) for n in "ac")
    with a, c:
        for here, there, friend in ((a, c, "a's friend"), (c, a, "c's friend")):
            try:
                said = here.sync(there).held_up
            except ev.SyncError as error:
                said = str(error)
            assert f"waits for {friend}" in said


def test_what_is_given_up_is_not_waited_for(site, strangers, tmp_path):
    a, b, (x, _) = site("a"), site("b"), strangers
    a.insert("r", [(1,)])
    a.sync(b)
    a.backup(tmp_path / "backup")
    a.close()
    with ev.Site.restore(tmp_path / "backup", tmp_path / "a.db", replace=True) as again:
        again.expire("b")
        assert again.status()["replication"]["waits_for"] == {}
        assert again.sync(x).held_up == ""
        assert again.rows("r") == x.rows("r") == [(1,), (3,)]


def test_reports_are_added():
    report = ev.SyncReport(held_up="x waits") + ev.SyncReport() + ev.SyncReport(held_up="x waits")
    assert report.held_up == "x waits"


@pytest.mark.parametrize("peer", [None, 3, b"x", "a\0b"])
def test_what_is_no_peer(strangers, peer):
    with pytest.raises(ev.SyncError, match="is no"):
        strangers[0].sync(peer)


def test_copies_of_all_stores_are_told_whom_they_wait_for_and_agree_when_the_originals_are_given_up(tmp_path):
    for name in "ab":
        ev.Site.open(tmp_path / f"{name}.db", PROGRAM, name=name).close()
    with ev.Site.open(tmp_path / "a.db") as a, ev.Site.open(tmp_path / "b.db") as b:
        originals = {site.status()["incarnation"] for site in (a, b)}
        a.insert("r", [(1,)])
        a.sync(b)
    (tmp_path / "new").mkdir()
    for name in "ab":
        shutil.copy(tmp_path / f"{name}.db", tmp_path / "new")
    with ev.Site.open(tmp_path / "new" / "a.db") as a, ev.Site.open(tmp_path / "new" / "b.db") as b:
        a.insert("r", [(2,)])
        waits = a.sync(b).held_up
        assert all(one[:8] in waits for one in originals)
        for one in originals:
            a.expire(one[:8])
        b.sync(a)
        assert not b.sync(a).held_up
        assert a.rows("r") == b.rows("r") == [(1,), (2,)]


def test_a_copy_at_a_folder_says_whom_it_waits_for(site, tmp_path):
    stick = tmp_path / "stick"
    a, b, c = (site(name) for name in "abc")
    for n, one in enumerate((a, b, c)):
        one.insert("r", [(n,)])
    for one in (a, b, c, a, b, c, a, b, c):
        one.sync(stick)
    assert c.rows("r") == [(0,), (1,), (2,)]
    a.insert("r", [(9,)])
    a.sync(stick)
    c.close()
    shutil.copy(tmp_path / "c.db", tmp_path / "copy.db")
    copy = site("copy")
    for _ in range(2):
        before = copy.rows("r")
        report = copy.sync(stick)
        # Files come in the order of their stores' ids. If a's is first it is taken whole, and c's not at all.
        assert copy.rows("r") in (before, [(0,), (1,), (2,), (9,)])
        assert (report.received_rows, report.skipped_files) == (len(copy.rows("r")) - len(before), 0)
        assert "this site waits for " in report.held_up
    for one in (a, b, copy):
        report = one.sync(stick)
    assert report.held_up == ""
    assert copy.rows("r") == [(0,), (1,), (2,), (9,)]


def test_newcomers_at_a_folder_take_no_file_for_damaged(site, tmp_path):
    sites = [site(name) for name in "abc"]
    for n, one in enumerate(sites):
        one.insert("r", [(n,)])
    for one in (*sites, *sites, *sites):
        assert one.sync(tmp_path / "stick").skipped_files == 0
    assert [one.rows("r") for one in sites] == [[(0,), (1,), (2,)]] * 3
