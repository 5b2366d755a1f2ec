"""Windowed processors, under the name that users know: `everview.windowed`.

A processor is an asynchronous function over a replayable source. It updates a local state, moves from window
to window, and may await the value of any window that it has closed: the join of what all had when they
closed it.
"""

from everview.streams.windows.coding import Codec
from everview.streams.windows.context import Context
from everview.streams.windows.group import Group
from everview.streams.windows.ledger import Ledger
from everview.streams.windows.processor import Handler, Processor
from everview.streams.windows.reading import Emitted, Windows
from everview.streams.windows.records import RowChange
from everview.streams.windows.relations import RELATIONS
from everview.streams.windows.runner import Runner, State, run
from everview.streams.windows.sources.base import Source
from everview.streams.windows.sources.changes import Changes
from everview.streams.windows.sources.lines import JsonLines
from everview.streams.windows.sources.memory import Listed
from everview.streams.windows.sources.parquet import ParquetRows
from everview.streams.windows.sources.replicated import Replicated
from everview.streams.windows.supervisor import Supervisor

__all__ = [
    "RELATIONS",
    "Changes",
    "Codec",
    "Context",
    "Emitted",
    "Group",
    "Handler",
    "JsonLines",
    "Ledger",
    "Listed",
    "ParquetRows",
    "Processor",
    "Replicated",
    "RowChange",
    "Runner",
    "Source",
    "State",
    "Supervisor",
    "Windows",
    "run",
]
