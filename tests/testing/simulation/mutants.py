"""The real code, each time with one rule left out."""

from everview.engines.sqlite.carrying import Carrying
from everview.engines.sqlite.lineage import Lineage
from everview.engines.sqlite.published import Published
from everview.planner.exchange import Exchange
from everview.replication import applying, arriving, renewal, serving
from everview.replication.applying import Cut
from everview.replication.belonging import Belonging
from everview.replication.membership import Membership
from everview.replication.replica import Replica
from everview.replication.rights import ALL


def views_not_propagated(patch):
    """Rows that arrive are stored, and the views are not told."""
    carry = Carrying.carry

    def quiet(self):
        engine, propagate = self.engine, self.engine.propagate
        engine.propagate = lambda connection, changed, _, *, shrinks: engine._clear(connection, changed)
        try:
            carry(self)
        finally:
            engine.propagate = propagate

    patch(Carrying, "carry", quiet)


def covered_rows_accepted(patch):
    """A row that was collected here comes back."""
    arrival = applying.Arrival

    def careless(rows, version, covered=False, **options):
        return arrival(rows, version, False, **options)

    patch(applying, "Arrival", careless)


def copies_not_noticed(patch):
    """A store that was copied or put back goes on under its old incarnation."""
    patch(Lineage, "look", lambda self, connection: None)


def tags_not_checked(patch):
    """A store that went back in time is not told so."""
    patch(arriving, "knows_another_us", lambda *_: False)
    patch(renewal, "knows_another_us", lambda *_: False)
    patch(Replica, "_rewound", lambda self: None)


def own_rows_only(patch):
    """What came from others is not passed on."""
    patch(serving, "_unseen", lambda rows, part, vector: [row for row in rows if row[-2] == 0])


def collected_at_once(patch):
    """What is dead here is forgotten, whoever has not heard of it."""

    def hasty(self, relation):
        told = self.own(relation)
        return dict(told.vector), told.reading

    patch(Membership, "stable", hasty)


def dropped_and_advanced(patch):
    """Rows that their sender may not write are dropped, and the cursor goes on."""
    look = Cut.look

    def lax(self):
        rights, self.rights = self.rights, ALL
        try:
            return look(self)
        finally:
            self.rights = rights

    patch(Cut, "look", lax)
    patch(Cut, "_is_wanted", lambda self, section, streams: self.rights.may_write(section.stream))
    request = Replica._request
    patch(Replica, "_request", lambda self, *args: request(self, *args[:-1], ALL))


def pages_at_once(patch):
    """Each page is applied as it comes, as if it were all."""
    import msgspec

    take = Replica._take_page

    def eager(self, message, *rest):
        page = msgspec.structs.replace(message.page, after=b"", reached=b"", done=True)
        return take(self, msgspec.structs.replace(message, page=page), *rest)

    patch(Replica, "_take_page", eager)


def published_floor_stays(patch):
    """Rows of a published view that have gone are forgotten, and who has not heard of it reads on."""

    def careless(self, connection, keep=None):
        return connection.execute(f"DELETE FROM {self.table.name} WHERE w = 0").rowcount

    patch(Published, "collect", careless)


def published_epoch_stays(patch):
    """An authority that was put back from a backup goes on in the epoch that it had."""
    renew = Published.renew

    def first(self, connection, epoch):
        if not self.stands(connection).epoch:
            renew(self, connection, epoch)

    patch(Published, "renew", first)


def published_wholes_merged(patch):
    """The whole of a published view is joined with what the reader had."""
    take = Published.take
    patch(Published, "take", lambda self, connection, told: take(self, connection, told._replace(whole=0)))


def computed_from_the_hidden(patch):
    """A view is computed from a relation that is received whole for another."""
    real = Exchange._away

    def away(self, name):
        shown, self.hosts = self.hosts, self.hosts | self.held
        try:
            return real(self, name)
        finally:
            self.hosts = shown

    patch(Exchange, "_away", away)


def the_hidden_founds(patch):
    """Who has a relation unseen, and was given nothing of it, founds a group for it."""
    found = Belonging.found

    def eager(self, streams):
        hidden, self.hidden = self.hidden, ()
        found(self, streams)
        self.hidden = hidden

    patch(Belonging, "found", eager)


MUTANTS = {
    views_not_propagated: (),
    covered_rows_accepted: ("storm",),
    copies_not_noticed: ("copy", "restore"),
    tags_not_checked: ("rewind",),
    own_rows_only: (),
    collected_at_once: ("collect", "partition"),
    dropped_and_advanced: ("rights",),
    pages_at_once: (),
    published_floor_stays: ("collect",),
    published_epoch_stays: ("restore", "rewind"),
    published_wholes_merged: ("collect", "restore"),
    computed_from_the_hidden: (),
    the_hidden_founds: (),
}
"""Mutant → the faults under which it is looked for."""

FIRST = {
    covered_rows_accepted: 363,
    published_floor_stays: 131,
    published_epoch_stays: 7,
    published_wholes_merged: 68,
    computed_from_the_hidden: 2135,
    the_hidden_founds: 158,
}
"""Mutant → the world with which the search begins; every fourth has a published view."""
