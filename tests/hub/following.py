"""Spark's part in a stream, without Spark: it asks a reader for offsets, logs them, reads, and commits.

Ended at some point of a batch it begins again like Spark does: with a new reader, the last batch if that was
logged and not committed, and a new initial offset if there is no other.
"""

import json
import pickle
from collections import Counter

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from everview.hub.source import EverviewSource


class Follower:
    def __init__(self, folder, name, **options):
        self.options = {"store": str(folder), "name": name, **options}
        self.logged = []
        self.committed = 0
        self.batches = []
        self.begin()

    def begin(self):
        source = EverviewSource(self.options)
        self.reader = source.streamReader(source.schema())

    def start(self):
        return self.logged[self.committed - 1] if self.committed else said(self.reader.initialOffset())

    def step(self, ends=None, limit=None):
        """One batch, or what of it is "logged", "read" or "told" when it `ends`; whether there was any."""
        start = self.start()
        if len(self.logged) == self.committed:
            limit = limit or self.reader.getDefaultReadLimit()
            end = said(self.reader.latestOffset(start, limit))
            if end == start:
                return False
            self.logged.append(end)
        end = self.logged[-1]
        if ends == "logged":
            return self.begin() or True
        rows = read(self.reader, self.reader.partitions(start, end))
        if ends == "read":
            return self.begin() or True
        self.batches.append(rows)
        self.committed += 1
        if ends == "told":
            return self.begin() or True
        self.reader.commit(end)
        return True

    def run(self, chance=lambda: None, limit=None):
        while self.step(chance(), limit):
            pass
        return self

    def changes(self):
        """Refresh → the weights of its rows; each row once, in the order of the refreshes."""
        found = {}
        last = 0
        for rows in self.batches:
            for *row, weight, commit in rows:
                assert commit >= last
                told = found.setdefault(commit, Counter())
                assert repr(tuple(row)) not in told
                told[repr(tuple(row))] = weight
            last = max([last, *(row[-1] for row in rows)])
        return {commit: dict(told) for commit, told in found.items()}


def everything(follower):
    return follower.run(limit=ReadAllAvailable())


def said(offset):
    return json.loads(json.dumps(offset))


def read(reader, partitions):
    """The rows as tuples, read by copies of the reader as tasks have them."""
    rows = []
    for partition in partitions:
        assert isinstance(partition, InputPartition)
        task, piece = pickle.loads(pickle.dumps((reader, partition)))
        for batch in task.read(piece):
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows
