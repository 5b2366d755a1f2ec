"""Views without their inputs in a folder: who asks for them, who writes them, and what a lost file costs."""

import pytest
from tests.replication.folder.stores import files, opened, visit, write

from everview.replication.transports.folder import files as cut_files
from everview.replication.transports.folder import views


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
