"""Protocol 3: what a program declares, in the header of a message."""

import msgspec
import pytest
from tests.replication.wire.samples import everything

import everview as ev
from everview.errors import WireError
from everview.language.evolution import Shape
from everview.replication.messages import OTHER_PROGRAM, Versions
from everview.replication.wire import decode, encode
from everview.server.listener import Listener

DECLARED = Versions(
    {"r": Shape("keyed; key a", (("a", "BIGINT", False), ("b", "DECIMAL(9,2)", True)))},
    {"everview_published#v": "0f"},
    {"v#0.1a2b3c4d": ["r", "s"]},
)


def test_there_and_back():
    message = msgspec.structs.replace(everything(), versions=DECLARED)
    data = encode(message)
    assert data[4] == 3
    found = decode(data)
    assert found.versions == DECLARED
    assert isinstance(found.versions.relations["r"], Shape)
    assert encode(found) == data
    assert encode(everything())[4] == 2  # and nothing is said of it otherwise
    assert decode(encode(everything())).versions is None


@pytest.mark.parametrize(
    "wrong",
    [
        Versions({"r": ("set",)}, {}, {}),
        Versions({"r": ("set", (("a", "BIGINT"),))}, {}, {}),
        Versions({"r": ("set", (("a", "BIGINT", 1),))}, {}, {}),
        Versions({}, {"v": 5}, {}),
        Versions({}, {}, {"v": "r"}),
        Versions({}, {}, {"v": [5]}),
    ],
)
def test_what_is_malformed_is_refused(wrong):
    with pytest.raises(WireError) as caught:
        decode(encode(msgspec.structs.replace(everything(), versions=wrong)))
    assert caught.value.where == "header"


def test_who_gets_a_message_of_an_unknown_program_says_what_its_own_declares():
    one = ev.Site.open(":memory:", ev.Program.parse("CREATE TABLE r (a BIGINT);"), name="one")
    two = ev.Site.open(":memory:", ev.Program.parse("CREATE TABLE r (a BIGINT, b TEXT);"), name="two")
    first = encode(one.replica.ask("two"))
    assert first[4] == 2
    answer = decode(two.replica.answer(first))
    assert answer.refusal.code == OTHER_PROGRAM
    assert "another program" in answer.refusal.text
    assert answer.versions.relations["r"].columns == (("a", "BIGINT", True), ("b", "TEXT", True))
    assert one.replica.must_introduce(answer)
    again = encode(one.replica.ask("two", incarnation=answer.sites[0]))
    assert again[4] == 3
    assert decode(two.replica.answer(again)).refusal is None
    for site in (one, two):
        site.close()


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
