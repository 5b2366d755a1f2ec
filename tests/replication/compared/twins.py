"""Twins: each site's store by the specification. It follows what the site does, and is compared with it."""

from collections import Counter

from spec.replication.endings import given_up, heard
from spec.replication.incarnations import renewed
from spec.replication.kinds import Keyed, Set
from spec.replication.lattices import Joined, Merged
from spec.replication.merges import merged
from spec.replication.stores import created, opened, without_logs
from spec.replication.transactions import Delete, Forget, Insert, write
from spec.replication.transfers import cut_for
from spec.replication.views import View
from tests.replication.compared.kinds import KINDS

from everview.engines.sqlite.rows.ledger import SITES
from everview.testing.worlds import steps as do
from everview.testing.worlds.actions import happen
from everview.testing.worlds.network import sync
from everview.testing.worlds.world import World

BOTH = ("r", "s")


class Differs(AssertionError):  # noqa: N818 - it names what was found
    """A store is not what the rule says."""


class Real(World):
    """Real sites, whose own oracle says nothing here."""

    def check(self, site):
        """Leave it to the twins."""

    def is_sound(self, relation):
        return False


def read(reader, sender):
    """Return a store that has read all that another has; of a view those tell who can derive it."""
    if "~r" in reader.relations and "v" not in sender.views:
        return reader
    cut = cut_for(sender, reader)
    known = heard(reader, cut)
    return merged(known, cut) or known


class Twins:
    """The twins of a world's sites. Rows and numbers of both sides are matched when they are written."""

    def __init__(self, world, kinds):
        self.world, self.kinds = world, {name: KINDS[kind] for name, kind in zip(BOTH, kinds, strict=True)}
        is_whole = any(isinstance(kind.kind, Joined) for kind in self.kinds.values())
        self.named = () if is_whole else BOTH
        self.stores, self.kept, self.folder = {}, {}, {False: {}, True: {}}
        self.dots, self.rows, self.numbers, self.packets = {}, {}, {}, {}
        for name, site in world.sites.items():
            self.stores[name] = self.created(site)

    def created(self, site):
        """An empty store, of a site that hosts everything, relations, or the view alone."""
        hosts = {*BOTH, "v"} if site.hosts is None else set(site.hosts)
        held = {name: self.kinds[name].kind for name in BOTH if name in hosts}
        views = {}
        if "v" in hosts:
            for name in {*BOTH} - hosts:
                held[f"~{name}" if self.named else name] = self.kinds[name].kind
        if self.named and len(held) == len(BOTH):
            views["v"] = View(BOTH, BOTH)
        return opened(created(site.incarnation, held, views))

    # What happens.

    def do(self, step):
        """Let a step happen on both sides; return whom it may have changed."""
        world, stores = self.world, self.stores
        process = world.sites[step.site].store if getattr(step, "site", "") in world.sites else None
        match step:
            case do.Sync():
                self.sync(step)
                return {step.site, step.peer}
            case do.Deliver() if world.network.packets:
                at = step.pick % len(world.network.packets)
                packet = world.network.packets[at]
                happen(step, world)
                sender = self.packets[packet.dialog, packet.number, packet.back]
                self.either(packet.to, stores[packet.to], read(stores[packet.to], sender))
                self.note_packets()
                return {packet.to}
            case _:
                happen(step, world)
        site = world.sites.get(getattr(step, "site", ""))
        if site is None:
            return set()
        match step:
            case do.Write():
                self.write(site, step)
            case do.Dial():
                self.note_packets()
            case do.Visit():
                self.visit(site)
            case do.Forget():
                stores[site.name] = without_logs(stores[site.name], stores[site.name].relations)
            case do.Backup():
                self.kept[site.name] = stores[site.name]
            case do.Restore() if site.store is not process:
                self.reborn(site, self.kept[site.name])
            case do.Copy() if step.name in world.sites and step.name not in stores:
                self.reborn(world.sites[step.name], stores[site.name])
                return {site.name, step.name}
        return {site.name}

    def reborn(self, site, store):
        """A file that was copied or put back, under the incarnation that its site has taken."""
        is_another = store.incarnation != site.incarnation
        twin = renewed(opened(store), site.incarnation) if is_another else opened(store)
        ended = {one.incarnation for one in site.replica.endings.told(site.connection, 0)}
        if store.incarnation in ended - {lost for lost, _ in store.ended}:
            twin = given_up(twin, store.incarnation, BOTH)
        self.stores[site.name] = twin

    def visit(self, site):
        """Read what all have left in the folder; of a view they do once one of its hosts has been there."""
        for is_view, files in self.folder.items():
            if bool(site.hollow) is is_view:
                for writer, store in files.items():
                    if writer != site.incarnation:
                        self.stores[site.name] = read(self.stores[site.name], store)
            if not is_view or site.hollow or files:
                files[site.incarnation] = self.stores[site.name]

    def write(self, site, step):
        store, bag = self.stores[site.name], KINDS["bag"].kind
        ages = dict(site.connection.execute(f"SELECT incarnation, number FROM {SITES}").fetchall())
        bag.age = lambda dot: (ages[dot.incarnation], dot.number)
        statements, held = [], [name for name in BOTH if name in store.relations]
        for verb, name, row in step.operations:
            if site.may_write(name):
                key, value = self.kinds[name].split(row)
                statements.append(Insert(name, key, value) if verb == "insert" else Delete(name, key))
        now = site.store.clock.last
        after, _ = write(store, statements, now=now)
        gone = [Forget(name, key) for name in held for key in self.forgotten(site, name, after)]
        self.stores[site.name] = after = write(store, [*statements, *gone], now=now)[0] if gone else after
        for name in held:
            self.match(site, name, store.relations[name], after.relations[name])

    def forgotten(self, site, name, after):
        """The deleted tuples of a set of which the site has forgotten that; when, it decides for itself."""
        twin = after.relations[name]
        if not isinstance(twin.kind, Set):
            return []
        here = {self.dots.get((dot, name)) for dot in site.live(name)}
        kept = {row[0] for row in site.live(name).values()}
        return [
            key
            for key, group in twin.groups().items()
            if not twin.kind.winners(group) and key not in kept and not group.keys() & here
        ]

    def match(self, site, name, before, after):
        """Match the rows and the number of a commit."""
        me, kind = site.incarnation, self.kinds[name]
        ours, theirs = {}, {}
        for dot, cells in sorted(site.live(name).items()):
            if self.dots.get((dot, name)) not in before.rows:
                ours.setdefault(cells, []).append(dot)
        for dot in sorted(after.rows.keys() - before.rows.keys()):
            self.rows[name, dot] = after.rows[dot]
            theirs.setdefault(kind.of_rule(after.rows[dot]), []).append(dot)
        for row, dots in theirs.items():
            self.dots |= {(dot, name): one for dot, one in zip(ours.get(row, ()), dots, strict=False)}
        if before.vector != after.vector:
            self.numbers[name, me, after.vector[me]] = site.vector(name).get(me, 0)

    def sync(self, step):
        """A whole exchange reads in both directions; of one that is cut off, each may have been done."""
        world, stores = self.world, self.stores
        if step.site not in world.sites or step.peer not in world.sites or step.site == step.peer:
            return
        site, peer = world.sites[step.site], world.sites[step.peer]
        whole = sync(world, site, peer, messages=step.messages, victim=step.victim, crash=step.crash)
        here, there = stores[site.name], stores[peer.name]
        if whole:
            stores[site.name] = read(here, there)
            stores[peer.name] = read(there, stores[site.name])
        else:
            self.either(site.name, here, read(here, there))
            self.either(peer.name, there, read(there, here), read(there, stores[site.name]))

    def either(self, name, *stores):
        """Take the first of these that the site can be."""
        for store in stores:
            self.stores[name] = store
            if not self.differences(name):
                return
        self.stores[name] = stores[0]

    def note_packets(self):
        """Remember what senders had when they wrote what is on its way."""
        for one in self.world.network.packets:
            self.packets.setdefault((one.dialog, one.number, one.back), self.stores[one.sender])

    # What must be alike.

    def compare(self, name):
        """Raise Differs where a site is not what its twin is."""
        if name in self.world.sites and (found := self.differences(name)):
            raise Differs(f"{name}: {found}")

    def differences(self, name):
        """Rows, vectors, what is shown, what has lost, and the view."""
        site, store = self.world.sites[name], self.stores[name]
        held = {**{one: one for one in site.shares}, **{one: f"~{of}" for one, of in site.hollow.items()}}
        found = [] if site.incarnation == store.incarnation else ["incarnations"]
        found += [] if {*held.values()} == store.relations.keys() else [f"holds {held}, {[*store.relations]}"]
        for stream, twin in held.items() if not found else ():
            found += self.relation(site, stream, twin.removeprefix("~"), store.relations[twin])
        if "v" in site.views() and not found:
            shown, said = site.rows("v"), self.view(store)
            found += [] if shown == said else [f"v is {shown}, and not {said}"]
        return found

    def relation(self, site, stream, name, twin):
        kind = self.kinds[name]
        vector = {who: self.numbers[name, who, number] for who, number in twin.vector.items()}
        if site.vector(stream) != vector:
            return [f"{stream} has seen {site.vector(stream)}, and not {vector}"]
        live = {self.dots.get((dot, name), dot): cells for dot, cells in site.live(stream).items()}
        if live.keys() != twin.rows.keys():
            return [f"{stream} holds {live}, and not {twin.rows}"]
        if stream != name:
            return []
        rows = {dot: kind.of_rule(row) for dot, row in twin.rows.items()}
        if live != rows:
            return [f"{name} holds {live}, and not {rows}"]
        if not site.may_write(name):
            return []
        shown = Counter(map(kind.shown, twin.shown()))
        if site.rows(name) != shown:
            return [f"{name} shows {site.rows(name)}, and not {shown}"]
        return self.conflicts(site, name, twin, shown)

    def conflicts(self, site, name, twin, shown):
        """Of a keyed relation the rows with another value than is shown."""
        relation = site.program.relations[name]
        if not isinstance(twin.kind, Keyed | Merged):
            return []
        width = len(relation.schema)
        lost = sorted(row[:width] for row in site._reading.conflicts(relation, inside=False))
        rows = sorted(self.kinds[name].of_rule(row)[:width] for row in twin.rows.values())
        beaten = [row for row in rows if row not in shown]
        if isinstance(twin.kind, Merged):  # of these only those that their writers changed
            return [f"{name} lists {lost}, of {beaten}"] if Counter(lost) - Counter(beaten) else []
        return [] if lost == beaten else [f"{name} lists {lost}, and not {beaten}"]

    def view(self, store):
        """The join: derivations all of whose rows are shown, or a join of relations that are held whole."""
        if not self.named:
            rows = [[self.kinds[n].shown(item) for item in store.relations[n].shown()] for n in BOTH]
            return Counter((*r, *s[1:]) for r in rows[0] for s in rows[1] if r[0] == s[0])
        shown = store.views["v"].shown(store.relations)
        kinds = [(name, self.kinds[name]) for name in BOTH]
        pairs = [
            [kind.named(self.rows[name, dot]) for (name, kind), dot in zip(kinds, both, strict=True)]
            for both in shown
        ]
        return Counter((*r, *s[1:]) for r, s in pairs)
