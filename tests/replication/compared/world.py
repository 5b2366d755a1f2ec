"""A history that model sites and real ones live step by step; after every step those that acted are compared.

Rules that the store alone has are kept out of it: it collects without waiting for an hour, and never tidies
up by itself; before it dies or is copied a minute passes, so that it has written what others said of their
clocks; and all is over long before anybody has been away for 90 days. Before a site acts its clock ticks on
both sides, for a model site reads its clock with a commit, and a store whenever it speaks.
"""

import logging
import random
from enum import Enum

from msgspec.structs import replace
from tests.model.ground import Ground
from tests.model.sync import push, receive, request, serve
from tests.replication.compared.pair import ModelSite, RealSite, of_model, of_store

from everview.errors import SyncError
from everview.replication.arriving import Outcome
from everview.replication.wire import decode, encode

MOST = 6
"""So many sites at most."""

MINUTE = 64
"""More than a minute, in steps."""

LIMIT = 50
"""No pull of so few rows takes more messages."""


class Asks(Enum):
    """What a reader does after an answer."""

    NO = "no"
    ON = "on"
    """It asks for the next page of the cut."""
    ANEW = "anew"
    """It has left its group, or has taken a new incarnation, and asks as what it is now."""


class DifferentError(AssertionError):
    """The store does not do what the model does."""


class Compared(Ground):
    """Sites of the model, and beside each the real one."""

    def __init__(self, folder, shortcuts=frozenset(), *, page_rows=1000, views=False, seed=0):
        super().__init__(seed, shortcuts)
        self.folder, self.page_rows, self.views = folder, page_rows, views
        self.limit = page_rows
        self.chance = random.Random(f"{seed}/tags")
        self.step = 0
        self.now = 1_800_000_000
        self.born = {}
        self.real = []
        self.kept = {}
        self.rewound = {}
        self.files = []
        self.published = {}

    # What the model asks for.

    def incarnation(self, name):
        self.born[name] = self.born.get(name, 0) + 1
        return f"{name}.{self.born[name]:02}"

    def check(self, site):
        """The model is right by its own tests."""

    # Steps.

    def is_over(self):
        """Whether a site that must return waits in the store, and is free in the model, or the other way.

        The store counts who was only listed in its former group until that says that it went elsewhere; in
        the model, which has no word for that, those do not count. What follows is another history.
        """
        return any(
            site._is_free(relation) != self._knows_nobody(site, relation)
            for site in self.sites
            for relation in site.bound
        )

    def _knows_nobody(self, site, relation):
        former = (relation, site.former[relation])
        return not any(
            length % 2 and holder[1:] == former and holder[0] != site.inc
            for holder, length in site.members.items()
        )

    def happen(self, what, *details):
        """One step, and the comparison of who acted."""
        self.step += 1
        self.now += 4
        acted = getattr(self, what)(*details)
        for number in acted or ():
            self.counts[what] += 1
            self.compare_at(number, f"{what} {details}")

    def compare_at(self, number, what):
        model, real = of_model(self.sites[number]), of_store(self.real[number])
        for part in model:
            if model[part] != real[part]:
                raise DifferentError(
                    f"step {self.step}, {what}: {part} of {self.sites[number].name} is\n"
                    f"  {model[part]} in the model,\n  {real[part]} in the store"
                )

    def tick(self, *numbers):
        """What waits for its time comes, and clocks are read: a model site reads its own with a commit."""
        for number in numbers:
            self.sites[number].tick()
            self.real[number].replica.tick()

    def newcomer(self, name, hosts, skew):
        self.sites.append(ModelSite(self, name, hosts, skew=skew))
        self.real.append(RealSite(self, name, hosts, skew))
        return (len(self.sites) - 1,)

    def write(self, number, operations):
        site = self.sites[number]
        operations = [o for o in operations if o[1] in site.hosts]
        if not operations:
            return ()
        self.tick(number)
        site.write(operations)
        self.real[number].write(operations)
        return (number,)

    def collect(self, number):
        self.tick(number)
        self.sites[number].collect()
        self.real[number].replica.collect()
        return (number,)

    def wait(self, seconds):
        self.now += seconds
        self.tick(*range(len(self.sites)))
        return range(len(self.sites))

    def crash(self, number):
        self.save(number)
        self.sites[number].stages.clear()
        self.real[number].stop()
        self.real[number].open()
        self.tick(number)
        return (number,)

    # Files that go back, copies, and who is given up.

    def save(self, number):
        """A store writes what others have told of their clocks once a minute: now it has."""
        self.now += MINUTE
        self.tick(number)
        self.real[number].replica.expire("")

    def backup(self, number):
        if number in self.rewound:
            return ()
        self.save(number)
        self.kept[number] = self.sites[number].backup()
        self.real[number].keep()
        return (number,)

    def restore(self, number):
        """Opening notices that the file went back."""
        site, real = self.sites[number], self.real[number]
        if number not in self.kept or number in self.rewound or self._is_shown(number):
            return ()
        site.restore(self.kept[number])
        before = self.real[number].kept.incarnation
        real.put_back("moved")
        if real.incarnation == before:  # the new file has the inode that the old one had
            real.replica.renew()
        self.tick(number)
        return (number,)

    def _is_shown(self, number):
        """Whether a view may show what the backup lacks: no base would know of it any more."""
        site, backup = self.sites[number], self.kept[number]
        heads = [
            at[0]
            for other in self.sites
            for (inc, stream), at in other.cursors.items()
            if inc == site.inc and stream in other.received
        ]
        return site.inc != backup["inc"] or max(heads, default=0) > backup["head"]

    def rewind(self, number):
        """The file goes back and opening does not notice: only if everybody else would."""
        site, real, backup = self.sites[number], self.real[number], self.kept.get(number)
        if backup is None or number in self.rewound or self._is_shown(number):
            return ()
        if backup["head"] >= site.head or not site.joined:
            return ()
        others = [n for n in range(len(self.sites)) if n != number]
        streams = [*site.bases, *site.received]
        ahead = all(
            self.sites[n].cursors.get((site.inc, stream), (0, 0))[0] > backup["head"]
            for n in others
            for stream in streams
        )
        if not ahead or self.rewound:
            return ()
        site.load(backup)
        real.put_back("unnoticed")
        self.rewound[number] = (site.inc, set(others))
        self.tick(number)
        return (number,)

    def copy(self, number, name):
        if number in self.rewound or len(self.sites) >= MOST:
            return ()
        self.save(number)
        site, real = self.sites[number], self.real[number]
        twin = ModelSite(self, name, site.hosts, skew=site.skew)
        twin.load(site.backup())
        self.born[name] = 0
        if "keep incarnation" not in self.shortcuts:
            twin.renew()
        self.sites.append(twin)
        self.real.append(RealSite(self, name, site.hosts, site.skew, image=real.image()))
        self.tick(len(self.sites) - 1)
        return (len(self.sites) - 1,)

    def expire(self, number, victim):
        if number == victim or self.rewound:
            return ()
        self.tick(number)
        inc = self.sites[victim].inc
        self.sites[number].expire(inc)
        self.real[number].replica.expire(inc)
        self._lose_sponsors(self.sites[number])
        return (number,)

    def _lose_sponsors(self, site):
        """Who waits for a sponsor that was given up waits no longer; in the model when it hears of anyone."""
        for stream, (sponsor, _) in list(site.provisional.items()):
            if sponsor in site.expired_at:
                site.leave(stream)

    # Files in a folder.

    def publish(self, number, whole):
        """A batch of everything, or of what is new since the last."""
        if number in self.rewound:
            return ()
        self.tick(number)
        site, real = self.sites[number], self.real[number]
        inc, ours, theirs = self.published.get(number, ("", 0, 0))
        if whole or inc != site.inc:
            ours = theirs = 0
        for relation in site.bases:
            site.found(relation)
        page = push(site, ours)
        self.files.append((number, page, list(real.replica.batch(theirs))))
        self.published[number] = (site.inc, site.head, real.head)
        return (number,)

    def find(self, number, pick):
        if not self.files or number in self.rewound:
            return ()
        sender, page, pages = self.files[pick % len(self.files)]
        if sender == number:
            return ()
        self.tick(number)
        receive(self.sites[number], page)
        self.real[number].replica.take(pages)
        return (number,)

    # Pulling.

    def fetch(self, reader, sender):
        """One site reads another, with as many messages as it takes."""
        if not self._may_meet(reader, sender):
            return ()
        self.tick(reader, sender)
        self._pull(reader, sender)
        return reader, sender

    def sync(self, one, other):
        """A whole exchange of the store, both ways; then each reads the other as the model does.

        In its last message a site tells what it has by now; so in the model they read once more. Of two that
        meet for the first time either may found for a view, as they happen to talk: these only read.
        """
        if not self._may_meet(one, other):
            return ()
        self.tick(one, other)
        if not self.rewound and self._have_joined(one, other):
            self._exchange(self.real[one], self.real[other])
        for reader, sender in ((one, other), (other, one)) * 2:
            self._pull(reader, sender)
        return one, other

    def _exchange(self, one, other):
        """Both ways in one conversation; it may end without a result where one of the two has to return."""
        exchange = one.replica.exchange(other.name)
        data = exchange.open()
        try:
            while data is not None:
                data = exchange.receive(other.replica.answer(data))
        except SyncError as error:
            if not error.retry:
                raise
            self.count("exchanges given up")

    def _have_joined(self, *numbers):
        sites = [self.sites[number] for number in numbers]
        return not self.views or all(site.joined >= site.hosts for site in sites)

    def _may_meet(self, one, other):
        """Not who was put back unnoticed, and who has never met it."""
        for number in list(self.rewound):
            if self.rewound[number][0] != self.sites[number].inc:
                del self.rewound[number]
        return one != other and all(
            here not in self.rewound or there in self.rewound[here][1]
            for here, there in ((one, other), (other, one))
        )

    def _pull(self, reader, sender):
        """`Ground.pull`, on both sides at once.

        A cut may have more pages on one side than on the other: who has it all waits. Every request tells
        what the reader has and knows by then; so after a cut of several pages both ask once more, and have
        told the same.
        """
        left = several = told = answered = False
        model = real = Asks.ANEW
        for _ in range(LIMIT):
            one, other = self.sites[reader], self.sites[sender]
            waits = {model, real} == {Asks.NO, Asks.ON}
            if not waits or model is Asks.ON:
                held = set(other.joined)
                model, answered = self._ask_model(one, other)
                left |= not held <= other.joined
            if not waits or real is Asks.ON:
                real = self._ask(reader, sender, lost=not answered)
            if Asks.ANEW in (model, real):
                several = told = False
            several |= Asks.ON in (model, real)
            if model is real is Asks.NO:
                if told or not several:
                    break
                told = True
        else:
            raise DifferentError(f"{self.sites[reader].name} never stops to ask")
        self.sites[reader].stages.pop(self.sites[sender].inc, None)
        if left:
            self._pull(sender, reader)

    def _ask_model(self, one, other):
        """One request of a model site; return whether it asks again, and whether there was an answer."""
        before, asked = set(one.joined), request(one, other)
        # A store tells in every message the groups of the views that it computes, the model in pages.
        asked.groups |= {view: group for view in one.circuits if (group := one.group(view)) is not None}
        page = serve(other, asked, self.limit)
        if page is None:
            return Asks.NO, False
        receive(one, page)
        if not before <= one.joined:
            return Asks.ANEW, True
        return (Asks.ON if other.inc in one.stages else Asks.NO), True

    def _ask(self, reader, sender, *, lost):
        """One message there and one back; return whether the reader asks again.

        An answer without streams is lost where the model gives none. One without a page says that the sender
        does not know the roll by which it was told of members: then it is told in full.
        """
        one, other, name = self.real[reader].replica, self.real[sender].replica, self.real[sender].name
        for _ in range(LIMIT):
            answer = other.answer(encode(one.ask(name, incarnation=other.incarnation)))
            message = decode(answer)
            if lost and (message.page is None or not message.page.froms):
                return Asks.NO
            if message.request is not None:  # who is read only says what it wants, and does not ask for it
                message = replace(message, request=replace(message.request, sender=""))
            applied = one.hear(one.understood(message), answer, name)
            if message.page is not None and (applied is None or applied.outcome is not Outcome.GAP):
                break
        else:
            raise DifferentError(f"{name} never answers {self.real[reader].name}")
        if applied is None:
            return Asks.ON
        return Asks.ANEW if applied.outcome in (Outcome.LEFT, Outcome.REWOUND) else Asks.NO


def quiet():
    """Histories are full of what the protocol warns of."""
    logging.getLogger("everview").setLevel(logging.ERROR)
