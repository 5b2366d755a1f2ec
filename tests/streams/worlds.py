"""Worlds of pipelines on real files, with crashes between any two steps of SQLite.

A world has one device that keeps everything, or several: hollow ones that own partitions of the set and read
the same events, and one that merges their deltas. Whatever is repeated, lost, late, or cut off in the middle,
the results are those of a plain recount, each time everything has arrived.
"""

import functools
import sqlite3
from contextlib import contextmanager
from unittest import mock

from tests.streams.tweets import chunks, recount, results, rng_of, titan, tweets

from everview import streams
from everview.streams.pipelines.device import store


class Crash(BaseException):
    """The process dies here."""


class Fragile(sqlite3.Connection):
    """A connection whose process dies after so many statements, if it is told to."""

    left = None

    def _step(self):
        if Fragile.left is not None:
            Fragile.left -= 1
            if Fragile.left < 0:
                raise Crash

    def execute(self, sql, *parameters):
        if Fragile.left is not None and sql == "ROLLBACK":
            raise Crash  # the dead roll nothing back
        self._step()
        if sql == "PRAGMA synchronous = FULL":  # a process dies here, the power does not go
            sql = "PRAGMA synchronous = OFF"
        return super().execute(sql, *parameters)

    def executemany(self, sql, rows):
        self._step()
        return super().executemany(sql, rows)


@contextmanager
def fragile():
    """Make all connections of pipelines fragile."""
    whole = sqlite3.connect

    def connect(path, **options):
        return whole(path, factory=Fragile, **options)

    with mock.patch.object(store.sqlite3, "connect", connect):
        yield
    Fragile.left = None


class Host:
    """A device that dies and is opened again."""

    def __init__(self, rng, path, pipeline, **options):
        self._rng = rng
        self._path = path
        self._pipeline = pipeline
        self._options = options
        self.crashes = 0
        self.device = streams.open_device(path, pipeline, **options)

    def do(self, step):
        """Do a step, dying now and then on the way; then it is not known whether it was done."""
        if self._rng.random() < 0.3:
            Fragile.left = self._rng.randint(0, 40)
        try:
            return True, step(self.device)
        except Crash:
            self.crashes += 1
            Fragile.left = None
            self.device._store.connection.close()
            self.device = streams.open_device(self._path, self._pipeline, **self._options)
            return False, None
        finally:
            Fragile.left = None

    def surely(self, step):
        """Do a step until it is done."""
        while True:
            done, found = self.do(step)
            if done:
                return found


def push(chunk, number, device):
    device.push("tweets", chunk, producer="p", number=number)


def merge(delta, device):
    device.merge(streams.StageDelta.from_bytes(delta.to_bytes()))


def acknowledge(delta, device):
    device.acknowledge(delta)


def triggers(rng):
    kinds = (
        None,
        streams.when(lambda waiting: waiting.count >= 7),
        streams.when(lambda waiting: bool(waiting.read())),
        streams.every(3),
    )
    return rng.choice(kinds)


def alone(seed, folder):
    """One device that keeps all, any partitions, any triggers."""
    rng = rng_of(seed)
    now = [0.0]
    trigger, top_trigger = triggers(rng), triggers(rng)
    pipeline = titan(
        sets=rng.randint(1, 4),
        maps=rng.randint(1, 4),
        n=rng.randint(1, 6),
        trigger=trigger,
        top_trigger=top_trigger,
    )
    n = pipeline.by_name["top_words"].n
    events = tweets(rng, rng.randint(1, 25), vocabulary=rng.randint(1, 20))
    with fragile():
        host = Host(rng, folder / f"{seed}.db", pipeline, clock=lambda: now[0])
        came = []
        for number, chunk in enumerate(chunks(rng, events), 1):
            for _ in range(rng.randint(1, 2)):  # pushed again though it had arrived
                host.surely(functools.partial(push, chunk, number))
            came += chunk
            now[0] += rng.random()
            if rng.random() < 0.3:
                host.do(lambda device: device.tick())
            if trigger is None and top_trigger is None:
                assert results(host.device) == recount(came, n), seed
        settle(host, now)
        assert results(host.device) == recount(events, n), seed
        host.device.close()
    return host.crashes


def settle(host, now):
    """Let all triggers fire: those with a condition by hand, for their condition may never hold."""
    now[0] += 10
    host.surely(lambda device: device.tick())
    cascade = host.device._cascade
    with host.device._store.transaction():
        for name, state in cascade.states.items():
            if getattr(state, "deferred", False):
                change = state.fire()
                cascade._note(name, waiting=0)
                if change is not None:
                    cascade.run({name: change}, now[0])


def apart(seed, folder):
    """Hollow devices that own partitions of the set, and one that merges."""
    rng = rng_of(seed)
    workers, sets = rng.randint(1, 3), rng.randint(1, 5)
    pipeline = titan(sets=sets, maps=rng.randint(1, 3))
    events = tweets(rng, rng.randint(1, 20), vocabulary=rng.randint(1, 15))
    with fragile():
        owners = [rng.randrange(workers) for _ in range(sets)]
        hosts = [
            Host(
                rng,
                folder / f"{seed}-{worker}.db",
                pipeline,
                hollow=True,
                owns={"tweet_set": [part for part, owner in enumerate(owners) if owner == worker]},
            )
            for worker in range(workers)
        ]
        primary = Host(rng, folder / f"{seed}-all.db", pipeline)
        todo = {host: list(enumerate(chunks(rng, events), 1)) for host in hosts}
        network = []
        while any(todo.values()):
            host = rng.choice([host for host, left in todo.items() if left])
            match rng.randrange(4):
                case 0 | 1:
                    number, chunk = todo[host][0]
                    done, _ = host.do(functools.partial(push, chunk, number))
                    if done and rng.random() < 0.8:
                        todo[host].pop(0)
                case 2:
                    network += host.do(lambda device: device.deltas())[1] or []
                case _ if network:
                    delta = rng.choice(network)  # any one, at any time, any number of times
                    primary.do(functools.partial(merge, delta))
                    if rng.random() < 0.3:
                        network.remove(delta)  # lost
        for host in hosts:
            for delta in host.surely(lambda device: device.deltas()):
                primary.surely(functools.partial(merge, delta))
                host.surely(functools.partial(acknowledge, delta))
            assert host.surely(lambda device: device.deltas()) == []
        assert results(primary.device) == recount(events), seed
        for host in (*hosts, primary):
            host.device.close()
    return sum(host.crashes for host in (*hosts, primary))
