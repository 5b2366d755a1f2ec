"""Small histories of bags: what is forgotten in pairs, in groups that do not know each other yet."""

from itertools import pairwise

from tests.model.ground import Ground
from tests.model.histories_of_groups import X, Y, copied, sync, two_groups
from tests.model.site import Site
from tests.model.sync import push, request, serve


def who_was_asked(shortcuts):
    """All are put back: a to after it had forgotten that x came and went, b and c to before x went. Whichever
    asks the other first, and whether or not b and c have founded before: x stays dead.
    """
    for order in ("ab", "ba", "bca", "cba"):
        ground, a, b, c = two_groups(shortcuts, "abc", "", "B")
        a.write([("insert", "B", X)])
        for other in (b, c):
            sync(ground, a, other)
        backups = {site: site.backup() for site in (b, c)}
        a.write([("delete", "B", X)])
        for _ in range(2):
            for other in (b, c):
                sync(ground, a, other)
        a.collect()
        if a.tables["B"]:
            raise RuntimeError("the history does not set out as told")
        for site, backup in {**backups, a: a.backup()}.items():
            site.restore(backup)
        names = {site.name: site for site in (a, b, c)}
        for reader, sender in pairwise(order):
            ground.pull(names[reader], names[sender])
        ground.links = {i: set(range(3)) - {i} for i in range(3)}
        ground.settle()
        ground.compare()


def forget_unheard(shortcuts):
    """a has z's row, and that z has deleted it. z goes back to between the two unnoticed, deletes the row
    once more, and forgets the pair. Its second deletion counts like any other, and nobody would hear of it.
    """
    ground, z = two_groups(shortcuts, "z", "", "B")
    a = Site(ground, "a", "B")
    ground.sites.append(a)
    a.write([("insert", "B", X)])
    z.write([("insert", "B", X)])
    backup = z.backup()
    z.write([("delete", "B", X)])
    sync(ground, a, z)
    z.load(backup)
    z.write([("delete", "B", X)])
    z.collect()
    if a.rows("B")[X] != 1:
        raise RuntimeError("the history does not set out as told")
    sync(ground, a, z)
    ground.links = {0: {1}, 1: {0}}
    ground.settle()
    ground.compare()


def told_to_newcomers(shortcuts):
    """o inserts x twice, and takes both from z's group to that of c and e; it is put back to before it had
    met anybody, deletes x, and goes to z, which has nobody left to ask, and forgets the pair. m hears of that
    from z, and brings it to e; c, whose group has taken in z's, hears of it from e alone.
    """
    ground, c, e, z = two_groups(shortcuts, "ce", "z", "B")
    o, m = (Site(ground, name, "B") for name in "om")
    ground.sites += [o, m]
    o.write([("insert", "B", X)])
    backup = o.backup()
    o.write([("insert", "B", X)])
    for other in (z, c):
        ground.pull(o, other)
        ground.pull(other, o)
    o.restore(backup)
    o.write([("delete", "B", X)])
    sync(ground, o, z)
    z.collect()
    if len(z.tables["B"]) != 1 or c.groups == z.groups:
        raise RuntimeError("the history does not set out as told")
    ground.pull(m, z)
    ground.pull(m, e)
    ground.pull(e, m)
    sync(ground, c, e)
    ground.links = {i: set(range(5)) - {i} for i in range(5)}
    ground.settle()
    ground.compare()


def one_by_one(shortcuts):
    """o's transactions write to a bag and to another relation, and a has them; o is put back to before it had
    met anybody, and goes to b. a is put back, too, and has nobody left; it has more of what o once was than o
    itself. So o is to come to it, for the sake of the bag.
    """
    ground, b, a = two_groups(shortcuts, "b", "a", "BW")
    ground.whole = True
    o = Site(ground, "o", "BW")
    o.write([("insert", relation, ("t", 0)) for relation in "BW"])
    first, backup = o.inc, o.backup()
    o.write([("insert", relation, ("t", 1)) for relation in "BW"])
    sync(ground, o, a)
    o.restore(backup)
    sync(ground, o, b)
    a.restore(a.backup())
    a.expire(first)
    ground.pull(a, o)
    if "B" not in a.joined or o.rows("B") == a.rows("B"):
        raise RuntimeError("the history does not set out as told")
    ground.pull(o, a)
    ground.sites = [a, o, b]
    ground.links = {i: set(range(3)) - {i} for i in range(3)}
    ground.settle()
    ground.compare()
    _leave_together(shortcuts)


def _leave_together(shortcuts):
    """z has forgotten that x came and went; a is put back to before x went. Both give the other up, found and
    write: for the bag a joins anew from z, and by the names z would come to a.
    """
    ground, z, a = two_groups(shortcuts, "za", "", "BW")
    ground.whole = True
    z.write([("insert", "B", X)])
    sync(ground, z, a)
    backup = a.backup()
    z.write([("delete", "B", X)])
    sync(ground, z, a)
    z.collect()
    for site, before, other in ((a, backup, z.inc), (z, z.backup(), a.inc)):
        site.restore(before)
        site.expire(other)
        for relation in "BW":
            site.found(relation)
        site.write([("insert", relation, ("t", site.name)) for relation in "BW"])
    if z.rows("B")[X] or z.groups["B"] < a.groups["B"]:
        raise RuntimeError("the history does not set out as told")
    ground.pull(a, z)
    ground.links = {0: {1}, 1: {0}}
    ground.settle()
    ground.compare()


def names_decide(shortcuts):
    """o inserts x, is copied before it has met anybody, and so is the copy: c has o's row, d knows of c. d
    and o delete x and forget the pair; c writes y. o and c have rows of each other's, and c's group has the
    smaller name: but only o has forgotten anything, so c comes to it.
    """
    ground = Ground(0, shortcuts)
    o = Site(ground, "o", "B")
    o.write([("insert", "B", X)])
    c = copied(ground, o)
    c.tick()
    d = copied(ground, c)
    ground.sites = [o, c, d]
    ground.pull(o, d)
    c.found("B")
    d.write([("delete", "B", X)])
    sync(ground, o, d)
    o.collect()
    c.write([("insert", "B", Y)])
    if o.tables["B"] or c.groups["B"] > o.groups["B"]:
        raise RuntimeError("the history does not set out as told")
    ground.heal()


def any_word(shortcuts):
    """o asks, and the answer is lost: a, before it wrote anything; or its copy, which is in a's group. Then o
    deletes x, founds alone, and forgets the pair. a, to which the copy brought x, has heard of o, but not as
    of a member; o, whose group has the greater name, must not join from there.
    """
    for early in (True, False):
        ground = Ground(0, shortcuts)
        a, o = (Site(ground, name, "B") for name in "ao")
        for site in (a, o):
            site.begin()
            site.end()
        if early:
            serve(a, request(o, a), ground.limit)
        o.write([("insert", "B", X)])
        twin = copied(ground, o)
        sync(ground, twin, a)
        if not early:
            serve(twin, request(o, twin), ground.limit)
            sync(ground, twin, a)
        o.write([("delete", "B", X)])
        o.found("B")
        push(o, 0)
        o.collect()
        if o.tables["B"] or not a.groups["B"] < o.groups["B"] or not a.rows("B")[X]:
            raise RuntimeError("the history does not set out as told")
        ground.sites = [a, o, twin]
        ground.heal()


OF_BAGS = {
    "any word": any_word,
    "names decide": names_decide,
    "one by one": one_by_one,
    "who was asked": who_was_asked,
    "forget unheard": forget_unheard,
    "told to newcomers": told_to_newcomers,
}
