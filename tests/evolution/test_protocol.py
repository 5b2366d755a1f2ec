"""What a program declares travels with the first message that its peer does not understand."""

import msgspec
import pytest
from tests.replication.stores import Peer

import everview as ev
from everview.errors import WireError
from everview.language.evolution import Shape
from everview.replication.protocol.listener import OTHER_PROGRAM
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.messages import Message
from everview.server.listener import Listener

DECLARED = {"r": Shape("keyed; key a", (("a", "BIGINT", False), ("b", "DECIMAL(9,2)", True)))}
PLAIN = Message(b"12345678", [b"87654321"], ["one"])


def test_there_and_back():
    message = msgspec.structs.replace(PLAIN, shapes=DECLARED)
    found, columns = decode(encode(message))
    assert (found, columns) == (message, [])
    assert isinstance(found.shapes["r"], Shape)
    assert decode(encode(PLAIN))[0].shapes is None


@pytest.mark.parametrize(
    "wrong",
    [{"r": ("set",)}, {"r": ("set", (("a", "BIGINT"),))}, {"r": ("set", (("a", "BIGINT", 1),))}, {"r": 5}],
)
def test_what_is_malformed_is_refused(wrong):
    with pytest.raises(WireError) as caught:
        decode(encode(msgspec.structs.replace(PLAIN, shapes=wrong)))
    assert caught.value.where == "header"


def test_who_gets_a_message_of_an_unknown_program_says_what_its_own_declares():
    one = Peer("one", program=ev.Program.parse("CREATE TABLE r (a BIGINT);"))
    two = Peer("two", program=ev.Program.parse("CREATE TABLE r (a BIGINT, b TEXT);"))
    exchange = one.replica.exchange("two")
    refused = two.replica.answer(exchange.open())
    answer, _ = decode(refused)
    assert answer.refusal.code == OTHER_PROGRAM
    assert answer.shapes["r"].columns == (("a", "BIGINT", True), ("b", "TEXT", True))
    introduced = exchange.receive(refused)
    assert decode(introduced)[0].shapes["r"].columns == (("a", "BIGINT", True),)
    assert decode(two.replica.answer(introduced))[0].refusal is None


def test_over_http(tmp_path):
    old = ev.Program.parse("CREATE TABLE r (a BIGINT);")
    new = ev.Program.parse("CREATE TABLE s (n BIGINT); CREATE TABLE r (a BIGINT);")
    with (
        ev.Site.open(":memory:", old, name="old") as here,
        ev.Site.open(":memory:", new, name="new") as there,
    ):
        here.insert("r", [(1,)])
        there.insert("r", [(2,)])
        with Listener(there.replica) as listener:
            report = here.sync(listener.address)
            assert (report.sent_rows, report.received_rows) == (1, 1)
            again = here.sync(listener.address)
            assert (again.sent_rows, again.received_rows) == (0, 0)
        assert here.rows("r") == there.rows("r") == [(1,), (2,)]
