"""The random messages of the long target reach every layer, and find a decoder that is wrong."""

import pytest
from tests.long import wire

from everview.replication.wire import codec, columns, frame, header


def test_every_layer_refuses_something_and_some_messages_pass():
    before = wire.ENDS.copy()
    for seed in range(4000):
        wire.case(seed)
    ends = wire.ENDS - before
    assert set(ends) == {"frame", "header", "section", "column", "value", "accepted"}
    assert min(ends.values()) >= 40, ends


def cases(count=20_000):
    for seed in range(count):
        wire.case(seed)


def test_places_in_a_dictionary_that_nobody_checks_are_found(monkeypatch):
    monkeypatch.setattr(columns, "_pick", lambda values, places: [values[place] for place in places])
    with pytest.raises(IndexError):
        cases()


def test_memory_that_stays_is_found(monkeypatch):
    kept = []
    plain = header.read_header
    monkeypatch.setattr(codec, "read_header", lambda *given: kept.append(plain(*given)) or kept[-1])
    monkeypatch.setattr(wire, "GROWTH", wire.Growth())
    with pytest.raises(AssertionError, match="more blocks are held"):
        cases()


def test_an_error_of_the_decompressor_is_found(monkeypatch):
    monkeypatch.setattr(frame.zlib, "error", KeyError)
    with pytest.raises(Exception, match="decompress"):
        cases()
