"""Histories of versions that wait for their time at a site that returns."""

from tests.model.ground import Ground, WrongError
from tests.model.site import Site

X, Y = (0, 0), (1, 1)


def _waiting(shortcuts, names):
    """Sites whose clocks are ahead, and n; c has written x, which waits at n, and has given n up."""
    ground = Ground(0, shortcuts)
    ground.sites = [Site(ground, name, "K", skew=500) for name in names]
    n = Site(ground, "n", "K")
    ground.sites.append(n)
    ground.meet_all(ground.sites)
    c = ground.sites[0]
    c.write([("insert", "K", X)])
    ground.pull(n, c)
    if n.rows("K") or not n.tables["K"]:
        raise RuntimeError("the history does not set out as told")
    c.expire(n.inc)
    return ground, *ground.sites


def waiting_stays(shortcuts):
    """c deletes x and forgets that. By the floor, n's clock passes x, which still waits there."""
    ground, c, n = _waiting(shortcuts, "c")
    c.write([("delete", "K", X)])
    c.collect()
    if c.tables["K"]:
        raise RuntimeError("the history does not set out as told")
    ground.pull(n, c)
    ground.check(n)


def waiting_is_gone(shortcuts):
    """By a delete of y, which all have passed, n's clock passes x too; and x, which it holds, came again."""
    ground, c, t, n = _waiting(shortcuts, "ct")
    c.write([("insert", "K", Y)])
    c.write([("delete", "K", Y)])
    for _ in range(3):
        ground.pull(t, c)
        ground.pull(c, t)
    ground.pull(n, c)
    ground.pull(c, n)
    if c.rows("K") != {X: 1}:
        raise WrongError(f"c shows {dict(c.rows('K'))}")


def waiting_below(shortcuts):
    """f's version of x waits at n, and nobody else has it; c has deleted another, later, and forgotten that.
    u still holds the deletion.
    """
    ground = Ground(0, shortcuts)
    ground.sites = [Site(ground, name, "K", skew=0 if name == "n" else 500) for name in "cufn"]
    ground.meet_all(ground.sites)
    c, u, f, n = ground.sites
    f.write([("insert", "K", (0, 1))])
    ground.pull(n, f)
    ground.now += 10
    c.write([("insert", "K", X)])
    c.write([("delete", "K", X)])
    c.expire(n.inc)
    c.expire(f.inc)
    for _ in range(2):
        ground.pull(u, c)
        ground.pull(c, u)
        u.collect()
    ground.pull(c, u)
    c.collect()
    if c.tables["K"] or not u.tables["K"]:
        raise RuntimeError("the history does not set out as told")
    for reader, sender in ((n, c), (c, n), (u, n)):
        ground.pull(reader, sender)
    if u.rows("K") != c.rows("K"):
        raise WrongError(f"u shows {dict(u.rows('K'))}, and c {dict(c.rows('K'))}")


OF_CLOCKS = {
    "waiting stays": waiting_stays,
    "waiting is gone": waiting_is_gone,
    "waiting below": waiting_below,
}
