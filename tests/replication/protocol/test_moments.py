"""What a store commits between a question and its answer is told whole, or not yet."""

import pytest
from tests.replication.stores import Peer


@pytest.fixture
def pair():
    return Peer("a"), Peer("b")


def both(sender, number):
    """One transaction that writes two relations."""
    with sender.writing.transaction():
        for name in "sk":
            relation = sender.program.relations[name]
            row = (number, "x") if name == "s" else (number, "x", 0.5)
            sender.writing.insert(relation, [row])


def halves(reader):
    """The transactions that a reader has seen in part."""
    return {row[0] for row in reader.rows("s")} ^ {row[0] for row in reader.rows("k")}


def talk(dialler, listener, between):
    """An exchange; `between` is called with the number of each message that has come before its answer."""
    exchange, seen = dialler.replica.exchange(listener.name), []
    message, count = exchange.open(), 0
    while message is not None:
        count += 1
        between(count)
        message = exchange.receive(listener.replica.answer(message))
        seen.append((halves(dialler), halves(listener)))
    return count, seen


@pytest.mark.parametrize(("dials", "at"), [(True, 1), (True, 2), (False, 1), (False, 2), (False, 3)])
def test_a_transaction_between_question_and_answer_is_seen_whole(pair, dials, at):
    sender, reader = pair
    sender.insert("s", [(0, "x")])  # the news name one relation
    sender.insert("k", [(0, "x", 0.5)])
    sender.sync(reader)
    sender.insert("s", [(1, "x")])

    def between(count):
        if count == at:
            both(sender, 2)

    dialler, listener = (sender, reader) if dials else (reader, sender)
    count, seen = talk(dialler, listener, between)
    assert count >= at
    assert all(here <= {1} and there <= {1} for here, there in seen)
    sender.sync(reader)
    assert reader.rows("k") == sender.rows("k") == [(0, "x", 0.5), (2, "x", 0.5)]
    assert reader.rows("s") == sender.rows("s") == [(0, "x"), (1, "x"), (2, "x")]
