"""Opening a store: a new epoch begins, and what a crash left half done is removed.

Who opens a store makes its next record at once, of the same state and the next epoch. So a driver that was
paused and has lost its lease without knowing finds its next record's number taken: it cannot commit.

Then nothing is in flight, for the lease is ours: a write without its mark was never acknowledged, and one
that is in a refresh need not be kept. Runs that no record names are the vacuum's.
"""

from __future__ import annotations

import time

import msgspec

from everview.hub import lease
from everview.hub.files import Files
from everview.hub.inbox import Inbox
from everview.hub.record import FOLDER as RECORDS
from everview.hub.record import Record, commit, latest
from everview.hub.runs import FOLDER as RUNS

__all__ = ["begin_epoch", "recover"]


def begin_epoch(files: Files, program: str, name: str = "") -> Record:
    """The state of the store, made the next record by us; StoreError when another hub is doing the same."""
    record = latest(files, program)
    ours = msgspec.structs.replace(
        record,
        number=record.number + 1,
        epoch=record.epoch + 1,
        made_us=time.time_ns() // 1000,
        name=name,
    )
    commit(files, ours)
    return ours


def recover(files: Files, record: Record, name: str = "") -> Inbox:
    """Remove what is of no refresh and of no acknowledged write; the inbox with what is left."""
    for folder in (RECORDS, RUNS, lease.FOLDER):
        files.sweep(folder)
    inbox = Inbox(files, record.arrived, name)
    inbox.forget(record.arrived)
    inbox.forget_unfinished()
    return inbox
