"""The real code, each time with one rule left out; beside it the kind of worlds that notice."""

from dataclasses import replace as with_

from everview.engines.sqlite.rows import lineage, serving, taking
from everview.engines.sqlite.rows.ledger import PARTITIONS, REMOVED
from everview.replication.cuts import applying
from everview.replication.protocol.identity import Identity
from everview.replication.protocol.offers import Offers
from everview.replication.protocol.refusals import Refusals
from everview.replication.protocol.replica import Replica
from everview.replication.rights.rights import Rights
from everview.testing.worlds import actions


def changes_between_messages_are_passed_over(patch):
    """A cut ends although something has changed since it was said what has."""
    patch(Offers, "_missed", lambda *_: None)


def forgotten_removals_are_not_missed(patch):
    """A store forgets removals, and goes on as if its log were whole."""

    def careless(connection, partition, keep):
        connection.execute(f"DELETE FROM {REMOVED} WHERE partition = ?", (partition,))
        return 0

    patch(actions, "forget_log", careless)


def removals_of_rows_never_held_are_dropped(patch):
    def only_held(self, held):
        number, version = self._part.partition.number, self._commit.version
        into = f"INSERT OR IGNORE INTO {REMOVED} (partition, version, dot, term)"
        self._connection.execute(f"{into} SELECT ?, ?, dot, term FROM ({held})", (number, version))

    patch(taking.Taking, "_log", only_held)


def rows_that_were_seen_are_taken_again(patch):
    add = taking.Taking.add
    patch(taking.Taking, "add", lambda self, rows: add(self, with_(rows, is_new=True)))


def a_gap_in_the_log_is_not_noted(patch):
    finish = taking.Taking.finish

    def careless(self):
        number = self._part.partition.number
        floor = self._connection.execute(
            f"SELECT floor FROM {PARTITIONS} WHERE number = ?", (number,)
        ).fetchone()
        digest = finish(self)
        self._connection.execute(f"UPDATE {PARTITIONS} SET floor = ? WHERE number = ?", (*floor, number))
        return digest

    patch(taking.Taking, "finish", careless)


def removals_are_not_told(patch):
    told = serving.removals_for

    def silent(*given):
        found = told(*given)
        return serving.Removals(found.mode) if found.mode is serving.Mode.SINCE else found

    patch(serving, "removals_for", silent)


def copies_go_unnoticed(patch):
    patch(lineage.Lineage, "strange", lambda *_: None)


def tags_are_not_checked(patch):
    patch(serving, "is_foreign", lambda *_: False)


def digests_are_not_kept(patch):
    patch(taking, "change_digest", lambda *_: None)


def half_a_cut_is_applied(patch):
    """A page is taken for a cut, and what is staged is forgotten."""
    patch(applying, "_rows", lambda *given: applying._rows_in(*given[:1], *given[1:5], *given[7:]))


HONEST = [
    changes_between_messages_are_passed_over,
    forgotten_removals_are_not_missed,
    removals_of_rows_never_held_are_dropped,
    rows_that_were_seen_are_taken_again,
    a_gap_in_the_log_is_not_noted,
    removals_are_not_told,
    copies_go_unnoticed,
    tags_are_not_checked,
    digests_are_not_kept,
]


def refusals_of_readers_are_stored(patch):
    hear = Refusals.hear
    patch(Refusals, "hear", lambda self, message, named, _: hear(self, message, named, lambda _: True))


def all_is_taken_from_anybody(patch):
    patch(Replica, "may_take", lambda *_: True)


def what_is_said_of_one_relation_counts_for_all(patch):
    rewound = Identity.rewound
    every = "SELECT stream, value FROM everview_partitions WHERE stream <> ''"
    patch(Identity, "rewound", lambda self, c, _: rewound(self, c, c.execute(every).fetchall()))


def whatever_is_said_of_it_a_store_takes_another_name(patch):
    patch(Identity, "_born", property(lambda _: set(), lambda *_: None))


def readers_are_believed(patch):
    """What a token may not write is asked for, and taken."""
    patch(Rights, "may_write", lambda *_: True)


LYING = [
    refusals_of_readers_are_stored,
    all_is_taken_from_anybody,
    what_is_said_of_one_relation_counts_for_all,
    readers_are_believed,
]
