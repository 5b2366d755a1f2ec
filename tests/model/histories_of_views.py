"""Small histories of views that have heard of more than is left, and of views that feed views."""

from tests.model.ground import Ground
from tests.model.histories_of_groups import copied
from tests.model.site import Site

X = (0, 0)
BASE, VIEW = "RW", ["v"]


def _ground(shortcuts, **hosts):
    ground = Ground(0, shortcuts)
    ground.sites = [Site(ground, name, streams) for name, streams in hosts.items()]
    ground.meet_all(ground.sites)
    return ground, *ground.sites


def _sync(ground, *pairs, rounds=2):
    for _ in range(rounds):
        for one, other in pairs:
            ground.pull(one, other)
            ground.pull(other, one)


def _ends(ground, *pairs):
    """Neighbours sync until nothing moves, and all are as they must be."""
    for here, near in pairs:
        ground.link(here, near)
    ground.settle()
    ground.compare()


def ended_stay(shortcuts):
    """b tells w of x and nobody else, and is put back to before. No relation has x; w must not show it."""
    ground, _, b, w = _ground(shortcuts, a=BASE, b=BASE, w=VIEW)
    backup = b.backup()
    b.write([("insert", "W", X)])
    ground.pull(w, b)
    b.restore(backup)
    if not w.rows("v"):
        raise RuntimeError("the history does not set out as told")
    _ends(ground, (0, set()), (1, {0}), (2, {0, 1}))


def settled_for_good(shortcuts):
    """The same, and d has x from b: w finds it there. Then d, which never wrote, is put back as well."""
    ground, a, b, d, w = _ground(shortcuts, a=BASE, b=BASE, d=BASE, w=VIEW)
    of_b, of_d = b.backup(), d.backup()
    b.write([("insert", "W", X)])
    ground.pull(w, b)
    ground.pull(d, b)
    b.restore(of_b)
    _sync(ground, (a, b), rounds=1)
    ground.pull(d, b)
    ground.pull(w, d)
    if not w.rows("v") or not w.settled:
        raise RuntimeError("the history does not set out as told")
    d.restore(of_d)
    b.restore(of_b)
    _ends(ground, (0, set()), (1, {0}), (2, {0}), (3, {0}))


def anybody_feeds(shortcuts):
    """b tells u of x, and is put back. w, which a feeds, and u know only each other: as often as w has joined
    anew from a, it would have x again from u.
    """
    ground, _, b, _, u = _ground(shortcuts, a=BASE, b=BASE, w=VIEW, u=VIEW)
    backup = b.backup()
    b.write([("insert", "W", X)])
    ground.pull(u, b)
    b.restore(backup)
    _ends(ground, (0, set()), (1, {0}), (2, {0}), (3, {2}))


def gone_over_stay(shortcuts):
    """o inserts x, and is copied before it has met anybody. The copy goes to a, which feeds w; o founds a
    group of a greater name. a and the copy have rows of a stranger, and go there. w, which is in the group
    that they have left, hears of it from both, and follows.
    """
    ground, a, w = _ground(shortcuts, a=BASE, w=VIEW)
    o = Site(ground, "o", BASE)
    o.write([("insert", "W", X)])
    twin = copied(ground, o)
    _sync(ground, (twin, a), (w, a))
    for relation in BASE:
        o.found(relation)
    if not a.groups["W"] < o.groups["W"] or not w.rows("v"):
        raise RuntimeError("the history does not set out as told")
    o.write([("delete", "W", X)])
    ground.sites += [o, twin]
    _ends(ground, (0, set()), (1, {0}), (2, {0}), (3, {0, 1}))


def hear_it_from_them(shortcuts):
    """o inserts x, and is copied before it has met anybody. w is fed by the copy; o goes to z's group, which
    has a greater name, and the copy after it. w meets only z, and hears from it where the copy is.
    """
    ground = Ground(0, shortcuts)
    o, z, w = Site(ground, "o", BASE), Site(ground, "z", BASE), Site(ground, "w", VIEW)
    for site in (z, w):
        site.begin()
        site.end()
    o.write([("insert", "W", X)])
    twin = copied(ground, o)
    ground.pull(w, twin)
    ground.pull(o, z)
    if not twin.groups["W"] < z.groups["W"] or not w.rows("v"):
        raise RuntimeError("the history does not set out as told")
    z.write([("insert", "W", (1, 1))])
    ground.sites = [o, z, w, twin]
    _ends(ground, (0, set()), (1, {0}), (2, {1}), (3, {0, 1}))


def revived_unseen(shortcuts):
    """x comes and goes; u, which w feeds, forgets it, and w does not. x comes again: w has its derivation."""
    ground, a, w, u = _ground(shortcuts, a=BASE, w=VIEW, u=VIEW)
    a.write([("insert", "R", X)])
    _sync(ground, (a, w), (w, u))
    a.write([("delete", "R", X)])
    _sync(ground, (a, w), (w, u), rounds=3)
    u.collect()
    if u.tables["v"] or not w.tables["v"]:
        raise RuntimeError("the history does not set out as told")
    a.write([("insert", "R", X)])
    _ends(ground, (0, set()), (1, {0}), (2, {1}))


OF_VIEWS = {
    "ended stay": ended_stay,
    "settled for good": settled_for_good,
    "anybody feeds": anybody_feeds,
    "gone over stay": gone_over_stay,
    "hear it from them": hear_it_from_them,
    "revived unseen": revived_unseen,
}
