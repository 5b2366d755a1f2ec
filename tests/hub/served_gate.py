"""A gate with many rows behind a server, without Spark; devices that come to it, and the memory of both.

python -m tests.hub.served_gate FOLDER ROWS
"""

import json
import sys
from pathlib import Path

from benchmarks.hub_first_sync import KINDS, PROGRAM, first_sync
from benchmarks.hub_process import forget_peak, memory

import everview as ev
from everview.hub.gate import Gate
from everview.server import Listener

CHUNK = 50_000
CACHE_KB = 1_000
"""So that what a device has in memory is no cache of its file, which grows up to 64 MB."""


class Here:
    """This process, in the place of a hub's."""

    def __init__(self, address):
        self.address = address

    def forget_peak(self):
        return forget_peak("self")

    def memory(self, what):
        return memory("self", what)


def main(folder, rows):
    program = ev.Program.parse(PROGRAM)
    sizes = {"first": 1, "few": rows // 2, "many": rows}
    gate = Gate(str(folder / "gate.db"), program, "hub", 1)
    for name, count in sizes.items():
        for start in range(0, count, CHUNK):
            ids = range(start, min(start + CHUNK, count))
            columns = [list(ids), [n % KINDS for n in ids], [f"label {n % 1009}" for n in ids]]
            gate.fill(program.relations[name], columns, 0)
    gate.start(0)
    with Listener(gate.replica) as listener:
        here, found = Here(listener.address), {}
        for name, count in sizes.items():
            found |= first_sync(folder / f"{name}.db", here, name, count, CACHE_KB)
    gate.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
