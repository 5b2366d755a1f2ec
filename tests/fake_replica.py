"""A replica of a grow-only set, in memory: everything transports ask of one, and nothing of a store.

It keeps the rules that transports must not break: cuts are applied whole, and pages are staged and resumed.
"""

import json
import secrets
import threading

from everview.errors import SyncError, WireError
from everview.replication.transports.report import Progress, SyncReport

PAGE = 100


def decoded(data):
    try:
        message = json.loads(data)
        message["site"], message["program"]
    except (ValueError, TypeError, KeyError):
        raise WireError("these bytes are no message", where="frame") from None
    return message


class FakeReplica:
    def __init__(self, name="", *, program="p"):
        self.name = name
        self.program = program
        self.incarnation = secrets.token_hex(8)
        self.rows = {}  # row → version
        self.head = 0
        self.cursors = {}
        self.staged = {}
        self.asked = []
        self._commit = threading.Condition()

    # As a site

    def insert(self, rows):
        return self._apply(rows)

    def all_rows(self):
        return sorted(self.rows)

    def _apply(self, rows):
        with self._commit:
            news = [row for row in rows if row not in self.rows]
            if news:
                self.head += 1
                self.rows.update(dict.fromkeys(news, self.head))
                self._commit.notify_all()
            return len(news)

    def wait(self, head, timeout):
        with self._commit:
            return self._commit.wait_for(lambda: self.head > head, timeout)

    # Pages

    def page(self, since, start):
        with self._commit:
            rows = sorted((v, row) for row, v in self.rows.items() if v > since)
            some = [row for _, row in rows[start : start + PAGE]]
            done = start + PAGE >= len(rows)
            return {"since": since, "head": self.head, "start": start, "rows": some, "done": done}

    def stage(self, site, page):
        """Stage a page; apply the cut when it is complete. Return how many rows were news."""
        staged = self.staged.setdefault(site, [])
        if page["start"] != len(staged):
            return 0
        staged += page["rows"]
        if not page["done"]:
            return 0
        del self.staged[site]
        self.cursors[site] = max(self.cursors.get(site, 0), page["head"])
        return self._apply(staged)

    def message(self, **parts):
        return json.dumps({"site": self.incarnation, "program": self.program, **parts}).encode()

    # The dialling side, and the listening side

    def exchange(self, peer, *, on_progress=None):
        return FakeExchange(self, peer, on_progress)

    def answer(self, data, rights):
        message = decoded(data)
        self.asked.append(rights)
        if message["program"] != self.program:
            return self.message(refusal="another program")
        if message.get("page"):
            self.stage(message["site"], message["page"])
        site = message["site"]
        have = [self.cursors.get(site, 0), len(self.staged.get(site, []))]
        return self.message(page=self.page(*message["ask"]), have=have)

    def respond(self, data, rights):
        return self.answer(data, rights)

    def extent(self, data):
        page = decoded(data).get("page")
        return (len(page["rows"]), page["head"]) if page else (0, 0)


class FakeExchange:
    def __init__(self, replica, peer, on_progress):
        self.replica, self.peer, self.on_progress = replica, peer, on_progress
        self.report = SyncReport()
        self.site = None
        self.asked = False

    def _send(self, page, ask):
        data = self.replica.message(page=page, ask=ask)
        rows = len(page["rows"]) if page else 0
        self._move(SyncReport(sent_rows=rows, sent_bytes=len(data)))
        return data

    def _move(self, more):
        self.report += more
        if self.on_progress:
            self.on_progress(Progress.of(self.peer, "moving", self.report))

    def open(self):
        known = self.replica.known_peers = getattr(self.replica, "known_peers", {})
        self.site = known.get(self.peer)
        return self._send(None, self._ask())

    def _ask(self):
        return [self.replica.cursors.get(self.site, 0), len(self.replica.staged.get(self.site, []))]

    def receive(self, data):
        message = decoded(data)
        if "refusal" in message:
            raise SyncError(f"{self.peer} refused: {message['refusal']}", peer=self.peer)
        first = self.site != message["site"]
        self.site = self.replica.known_peers[self.peer] = message["site"]
        news = 0 if first and self._ask() != [0, 0] else self.replica.stage(self.site, message["page"])
        self._move(SyncReport(received_rows=news, received_bytes=len(data)))
        theirs, staged = message["have"]
        mine = self.replica.page(theirs, staged)
        done = message["page"]["done"] and not first
        if done and theirs >= self.replica.head:
            return None
        return self._send(mine if theirs < self.replica.head else None, self._ask())
