"""Views without their inputs in a folder: who asks for them, who writes them, and what a lost file costs."""

import pytest
from tests.replication.folder.stores import files, opened, visit, write

from everview.replication.transports.folder import files as cut_files
from everview.replication.transports.folder import views
from everview.site import Site


@pytest.fixture
def stick(tmp_path):
    return tmp_path / "stick"


def screens(number):
    return [opened(f"screen{one}", hosts={"v"}) for one in range(number)]


def told(folder):
    return [path for path in files(folder) if path.parent.parent.name.startswith(views.PREFIX)]


def test_a_view_comes_and_goes_by_a_stick(stick):
    (screen,), a, b = screens(1), opened("a"), opened("b")
    a.insert("s", [(1, "x"), (2, "x")])
    b.insert("k", [(1, "b"), (3, "b")])
    assert told(stick) == []
    visit(stick, a, b, screen, a, screen)
    assert screen.rows("v") == a.rows("v") == [(1, "b")]
    a.delete("s", [(1, "x")])
    a.insert("s", [(3, "x")])
    visit(stick, a, screen)
    assert screen.rows("v") == a.rows("v") == [(3, "b")]
    visit(stick, b, a, screen)
    before = files(stick)
    for report in visit(stick, screen, a, b, screen):
        assert (report.sent_rows, report.received_rows, report.skipped) == (0, 0, ())
    assert files(stick) == before


def test_nobody_writes_what_nobody_wants(stick):
    a, b = opened("a"), opened("b")
    write(a, 1)
    visit(stick, a, b, a)
    assert not list(stick.glob(f"{views.PREFIX}*"))


def test_who_holds_the_same_need_not_write_it_again(stick):
    screen, other = screens(2)
    a, b = opened("a"), opened("b")
    write(a, *range(5))
    visit(stick, screen, a, b, screen, other)
    assert {path.parent.name for path in told(stick)} == {a.replica.incarnation}
    assert other.rows("v") == a.rows("v") == b.rows("v") != []


def test_a_screen_carries_what_it_was_given_elsewhere(stick):
    screen, other = screens(2)
    a = opened("a")
    write(a, 1, 2)
    screen.sync(a)
    visit(stick, screen, other)
    assert other.rows("v") == a.rows("v") != []


def test_pages_are_small(stick, monkeypatch):
    monkeypatch.setattr(cut_files, "PAGE_CELLS", 20)
    (screen,), a = screens(1), opened("a")
    write(a, *range(100))
    visit(stick, screen, a, screen)
    assert len(screen.rows("v")) == 100


def test_a_site_that_holds_a_part_and_a_view_keeps_its_cursor_for_exchanges(stick):
    mixed, a = opened("mixed", hosts={"k", "v"}), opened("a")
    write(a, 1)
    mixed.sync(a)
    write(a, 2)
    (stick).mkdir()
    visit(stick, a, mixed)  # relations alone: nobody had asked for the view
    mixed.sync(a)
    assert mixed.rows("v") == a.rows("v")
    mixed.insert("k", [(1, "mixed")])
    visit(stick, mixed, a, mixed)
    assert mixed.rows("v") == a.rows("v")


def test_a_lost_store_is_given_up_by_a_stick(stick):
    (screen,), a, lost = screens(1), opened("a"), opened("lost")
    lost.insert("s", [(1, "x")])
    lost.insert("k", [(1, "b"), (2, "b")])
    a.sync(lost)
    lost.insert("s", [(2, "x")])
    screen.sync(lost)
    visit(stick, screen, a, screen)
    assert screen.rows("v") == [(1, "b"), (2, "b")]
    other = opened("other", hosts={"v"})
    visit(stick, other)
    assert other.rows("v") == [(1, "b"), (2, "b")]
    a.give_up("lost")
    visit(stick, a, screen, other, screen)
    assert screen.rows("v") == other.rows("v") == a.rows("v") == [(1, "b")]
    before = files(stick)
    visit(stick, a, screen, other)
    assert files(stick) == before
    newcomer = opened("newcomer", hosts={"v"})
    visit(stick, newcomer)
    assert newcomer.rows("v") == [(1, "b")]


def test_it_is_given_up_by_a_site_without_inputs_and_its_files_begin_anew(stick):
    screen, other = screens(2)
    lost = opened("lost")
    lost.insert("s", [(1, "x")])
    lost.insert("k", [(1, "b")])
    screen.sync(lost)
    visit(stick, screen, other)
    assert other.rows("v") == [(1, "b")]
    screen.give_up("lost")
    visit(stick, screen, other)
    assert screen.rows("v") == other.rows("v") == []
    a = opened("a")
    a.insert("s", [(3, "x")])
    a.insert("k", [(3, "b")])
    screen.sync(a)
    visit(stick, screen, other)
    assert screen.rows("v") == other.rows("v") == [(3, "b")]


def test_what_a_store_wrote_as_another_is_cleared(stick, tmp_path):
    (screen,), path = screens(1), tmp_path / "a.db"
    a = opened("a", path)
    a.insert("s", [(1, "x")])
    a.insert("k", [(1, "b")])
    visit(stick, screen, a)
    former = a.replica.incarnation
    assert {one.parent.name for one in told(stick)} == {former}
    a.backup(tmp_path / "backup.db")
    a.close()
    Site.restore(tmp_path / "backup.db", path, replace=True).close()
    a = opened("a", path)
    assert a.replica.incarnation != former
    visit(stick, a)
    assert {one.parent.name for one in told(stick)} == {former}  # nobody else tells it
    a.insert("s", [(2, "x")])
    visit(stick, a)
    assert {one.parent.name for one in told(stick)} == {a.replica.incarnation}
    visit(stick, screen)
    assert screen.rows("v") == [(1, "b")]
    late = opened("late", hosts={"v"})
    visit(stick, late)
    assert late.rows("v") == [(1, "b")]
    a.close()
