"""What an exchange costs where little or nothing has changed, whatever number of stores there ever were."""

import sqlite3

import pytest
from tests.replication.folder.stores import assert_equal, erase, opened, write

from everview.engines.sqlite.rows import identity
from everview.replication.transports.folder.files import Files

EVER_SEEN = 200


def meet(one, other):
    """Bytes of each request with its answer, and the rows that moved."""
    talk, sizes = one.replica.exchange(other.name), []
    message = talk.open()
    while message is not None:
        answer = other.replica.answer(message)
        sizes.append(len(message) + len(answer))
        message = talk.receive(answer)
    return sizes, talk.report.sent_rows + talk.report.received_rows


@pytest.fixture
def pair():
    """Two stores that have met, of which one has been copied or put back many times."""
    old, other = opened("old"), opened("other")
    for number in range(EVER_SEEN):
        old.insert("s", [(number, "x")])
        with old.replica.writing.transaction():
            identity.renew(old._store.writer.connection, old._store)
            old.replica.writing.commit.grown = True
    other.sync(old)
    other.sync(old)
    assert len({one for seen in Files(other.replica).seen().values() for one in seen}) == EVER_SEEN
    return old, other


def test_an_empty_sync_is_small(pair):
    for one, other in (pair, pair[::-1]):
        one.sync(other)
        sizes, rows = meet(one, other)
        assert (len(sizes), rows) == (1, 0)
        assert sum(sizes) <= 300


def test_news_of_the_dialler_go_with_its_second_message(pair):
    old, other = pair
    meet(other, old)
    write(other, 1000)
    sizes, rows = meet(other, old)
    assert (len(sizes), rows) == (2, 4)
    assert_equal(old, other)
    erase(other, 1000)
    write(old, 2000)
    meet(other, old)
    assert_equal(old, other)


def test_a_listener_that_went_back_is_told_all_that_it_lacks():
    """News that are told at once begin later than what it has read now, so it would miss removals."""
    one, other = opened("one"), opened("other")
    write(one, *range(10))
    one.sync(other)
    one.sync(other)
    saved, connection = sqlite3.connect(":memory:"), other._store.writer.connection
    connection.backup(saved)
    erase(one, 1, 2, 3)
    one.sync(other)
    saved.backup(connection)
    other._store.ledger.forget()
    write(one, 100)
    for _ in range(2):
        meet(one, other)
    assert_equal(one, other)
