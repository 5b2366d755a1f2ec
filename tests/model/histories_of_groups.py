"""Small histories of sites that do not know each other yet: groups that meet, files in a folder, returns."""

from itertools import pairwise, permutations, product

from tests.model.copies import run_copies
from tests.model.ground import Ground, WrongError
from tests.model.site import Site
from tests.model.sync import push, receive

X, Y = (0, 0), (1, 1)


def two_groups(shortcuts, first, second, hosts="R"):
    """Sites named by these letters, in group g1 and in group g2, which has the greater name."""
    ground = Ground(0, shortcuts)
    groups = [[Site(ground, name, hosts) for name in names] for names in (first, second)]
    for number, sites in enumerate(groups, 1):
        ground.meet_all(sites, f"g{number}")
        ground.sites += sites
    return ground, *ground.sites


def sync(ground, a, b, rounds=2):
    for _ in range(rounds):
        ground.pull(a, b)
        ground.pull(b, a)


def _forget(ground, row, *sites):
    """The first inserts and deletes a row, all of them have it, and the first forgets it."""
    sites[0].write([("insert", "R", row)])
    sites[0].write([("delete", "R", row)])
    for _ in sites:
        for other in sites[1:]:
            sync(ground, sites[0], other)
    sites[0].collect()
    if row in sites[0].tables["R"]:
        raise RuntimeError("the history does not set out as told")


def no_shift(shortcuts):
    """p comes over to c, which has forgotten y: p's x is lifted above. Then q, which has deleted x, comes."""
    ground, c, t, p, q = two_groups(shortcuts, "ct", "pq")
    _forget(ground, Y, c, t)
    p.write([("insert", "R", X)])
    sync(ground, p, q)
    ground.pull(p, c)
    q.write([("delete", "R", X)])
    ground.pull(q, c)
    sync(ground, c, p)
    sync(ground, q, c)
    if q.rows("R")[X]:
        raise WrongError("q's delete is lost")


def write_below(shortcuts):
    """p has forgotten x, and comes over to c, where x lives; c, which has heard of all that, writes x again;
    then q comes, which still has the death that p has forgotten.
    """
    ground, c, p, q = two_groups(shortcuts, "c", "pq")
    p.write([("insert", "R", X), ("delete", "R", X), ("insert", "R", X)])
    _forget(ground, X, p, q)
    c.write([("insert", "R", X)])
    sync(ground, p, c)
    c.write([("delete", "R", X), ("insert", "R", X)])
    sync(ground, q, c)
    if not all(site.rows("R")[X] for site in (c, q)):
        raise WrongError("c's insertion, which had seen the deletion, is lost to it")


def heard_is_seen(shortcuts):
    """p has forgotten y, and comes over to c, which hears of it and has yet to read p. c deletes x, which t
    deletes and inserts again: t's chain is the longer one.
    """
    ground, c, t, p = two_groups(shortcuts, "ct", "p")
    p.write([("insert", "R", Y), ("delete", "R", Y), ("insert", "R", Y)])
    _forget(ground, Y, p)
    c.write([("insert", "R", X)])
    sync(ground, c, t)
    for _ in range(2):
        ground.pull(p, c)
    if c.apart != {"R": p.floors["R"]} or c.floors["R"]:
        raise RuntimeError("the history does not set out as told")
    c.write([("delete", "R", X)])
    t.write([("delete", "R", X), ("insert", "R", X)])
    sync(ground, c, t)
    ground.check(c)


def speak_for_others(shortcuts):
    """q takes x, which is o's, to c's group; o deletes it, and p, which has heard of that, comes after q."""
    ground, c, o, p, q = two_groups(shortcuts, "c", "opq")
    ground.owner = lambda row: "o"
    o.write([("insert", "R", X)])
    for site in (p, q):
        sync(ground, o, site)
    sync(ground, q, c)
    o.write([("delete", "R", X)])
    sync(ground, p, o)
    sync(ground, p, c)
    if not p.groups["R"] == c.groups["R"] == q.groups["R"] or c.own("R")[0][o.inc] < o.head:
        raise RuntimeError("the history does not set out as told")
    ground.check(c)


def deaths_once(shortcuts):
    """p has forgotten the death of x, comes over and finds x alive; q, which knows of it, comes too."""
    ground, c, t, p, q = two_groups(shortcuts, "ct", "pq")
    c.write([("insert", "R", X)])
    sync(ground, c, t)
    q.write([("insert", "R", X)])
    q.write([("delete", "R", X)])
    sync(ground, p, q, rounds=4)
    p.collect()
    sync(ground, p, c)
    sync(ground, t, c)
    for other in (c, p, t):
        ground.pull(q, other)
    q.collect()
    for _ in range(3):
        for other in (c, p, t):
            sync(ground, q, other)
    if any(site.rows("R") != q.rows("R") for site in (c, t, p)):
        raise WrongError("x is dead at q alone")


def two_ways(shortcuts):
    """p takes a row of a bag from q's group to b, deletes it there, and both forget the pair; q takes the row
    to c, where all meet.
    """
    ground, b, p, q = two_groups(shortcuts, "b", "pq", "B")
    c = Site(ground, "c", "B")
    ground.meet_all([c], "g0")
    p.write([("insert", "B", X)])
    sync(ground, p, q)
    sync(ground, p, b)
    p.write([("delete", "B", X)])
    sync(ground, p, b)
    for site in (p, b):
        site.collect()
    sync(ground, q, c)
    for site in (p, b, q):
        sync(ground, site, c)
    for site in (c, p, b, q):
        ground.check(site)


def return_anywhere(shortcuts):
    """A copy of a member founds a group, and forgets pairs of a bag that it shares with its old one.

    (Told without the rule on stores that were all put back, by which the two would see it.)
    """
    run_copies(460, shortcuts | {"who was asked", "names decide"})


def older_whole(shortcuts):
    """n has c's file, from after x was forgotten; then it finds an older file of e, with x alive.

    (Who knows what c has forgotten of a bag sees that too; so it is told without that.)
    """
    ground, c, e = two_groups(shortcuts | {"who was asked"}, "ce", "", "B")
    c.write([("insert", "B", X)])
    sync(ground, c, e)
    old = push(e, 0)
    c.write([("delete", "B", X)])
    sync(ground, c, e)
    c.collect()
    n = Site(ground, "n", "B")
    receive(n, push(c, 0))
    receive(n, old)
    ground.check(n)


def sponsor_forgets(shortcuts):
    """n has c's file with x alive; c deletes and forgets x, for it has never heard of n; n reads on."""
    ground, c, t = two_groups(shortcuts, "ct", "")
    c.write([("insert", "R", X)])
    n = Site(ground, "n", "R")
    receive(n, push(c, 0))
    head = c.head
    c.write([("delete", "R", X)])
    sync(ground, c, t)
    c.collect()
    receive(n, push(c, head))
    ground.check(n)


def provisional_to_all(shortcuts):
    """n has c's file; y comes and goes, and e forgets it. n, with no floor, inserts y; e reads n's file."""
    ground, c, e, t = two_groups(shortcuts, "cet", "")
    n = Site(ground, "n", "R")
    receive(n, push(c, 0))
    _forget(ground, Y, e, c, t)
    n.write([("insert", "R", Y)])
    receive(e, push(n, 0))
    ground.check(e)


def wait_in_line(shortcuts):
    """n has p's file, and p finds one of c's smaller group; p reaches c only through n, which waits for p.

    Told without the rule by which n goes to c's group at once.
    """
    ground, c, p = two_groups(shortcuts | {"guests stay"}, "c", "p")
    n = Site(ground, "n", "R")
    p.write([("insert", "R", X)])
    file = push(p, 0)
    receive(p, push(c, 0))
    receive(n, file)
    for _ in range(3):
        sync(ground, n, p)
        sync(ground, n, c)
    if not all("R" in site.joined for site in (c, p, n)):
        raise WrongError("n waits for p, and p for c")


def views_merge(shortcuts):
    """w is restored with x alive, forgotten by s with its consent, and joins a group that never had x."""
    ground, g, s = two_groups(shortcuts, "g", "s", "RKW")
    w = Site(ground, "w", ["v"])
    s.write([("insert", "R", X)])
    ground.pull(w, s)
    backup = w.backup()
    s.write([("delete", "R", X)])
    sync(ground, w, s)
    ground.pull(s, w)
    s.collect()
    w.restore(backup)
    ground.pull(w, g)
    sync(ground, s, g)
    ground.pull(w, g)
    if w.rows("v") != g.rows("v"):
        raise WrongError(f"w shows {dict(w.rows('v'))}, not {dict(g.rows('v'))}")


def views_wait(shortcuts):
    """w receives a view of u, and gives u up. u returns: alone, or with t, whom it has met meanwhile. Nobody
    else was in their group, so they found another, of a greater name; or none, before somebody asks.
    """
    for others in ("", "t"):
        ground = Ground(0, shortcuts)
        u, *rest = (Site(ground, name, "RKW") for name in ["u", *others])
        w = Site(ground, "w", ["v"])
        for site in (u, *rest):
            site.write([("insert", "R", Y)])
        sync(ground, w, u)
        w.expire(u.inc)
        u.write([("insert", "R", X)])
        for site in rest:
            sync(ground, site, u)
        for _ in range(2):
            sync(ground, u, w)
            for site in rest:
                sync(ground, site, u)
        if w.rows("v") != u.rows("v"):
            raise WrongError(f"w shows {dict(w.rows('v'))}, not {dict(u.rows('v'))}")


def copied(ground, site):
    twin = Site(ground, f"{site.name}c", site.hosts)
    twin.load(site.backup())
    twin.renew()
    return twin


def strangers(shortcuts):
    """o inserts x, and is copied before it has met anybody. The copy goes to m; o deletes x, founds alone,
    and forgets it. Then o comes to t, of m's group, which has not heard of x; and all meet. For every kind.
    """
    for relation in "RKBW":
        ground = Ground(0, shortcuts)
        m, t, o = (Site(ground, name, relation) for name in "mto")
        ground.meet_all([m, t], "a")
        o.write([("insert", relation, X)])
        twin = copied(ground, o)
        ground.pull(twin, m)
        ground.pull(m, twin)
        o.write([("delete", relation, X)])
        o.found(relation)
        o.collect()
        if o.tables[relation] and relation != "B":  # of that nothing is forgotten before it is told
            raise RuntimeError("the history does not set out as told")
        ground.pull(o, t)
        ground.pull(t, o)
        ground.sites = [m, t, o, twin]
        ground.links = {i: set(range(4)) - {i} for i in range(4)}
        ground.settle()
        ground.compare()


def listed_by_name(shortcuts):
    """o inserts x, and is copied before it has met anybody. The copy goes to a; o goes to m, whose group has
    the greater name. a has to come to m, where o is known, and the two only leave each other files.
    """
    for relation in "RKBW":
        ground, a, m = two_groups(shortcuts, "a", "m", relation)
        o = Site(ground, "o", relation)
        o.write([("insert", relation, X)])
        for site, other in ((copied(ground, o), a), (o, m)):
            sync(ground, site, other)
        m.write([("insert", relation, Y)])
        if not a.groups[relation] < m.groups[relation] or not a.rows(relation)[X]:
            raise RuntimeError("the history does not set out as told")
        for _ in range(2):
            receive(m, push(a, 0))
            receive(a, push(m, 0))
        if a.rows(relation) != m.rows(relation):
            raise WrongError("a, which has to come, is never listed")


def a_members_page(shortcuts):
    """o inserts x and is copied; m has x from the copy. o founds alone, and comes to m's group by t. m, which
    reads o for the first time, and as a member, is not sent x, for it has it; and hears that it joins anew.
    """
    for relation in "RKBW":
        ground = Ground(0, shortcuts)
        m, t, o = (Site(ground, name, relation) for name in "mto")
        ground.meet_all([m, t], "a")
        o.write([("insert", relation, X)])
        twin = copied(ground, o)
        ground.pull(twin, m)
        ground.pull(m, twin)
        o.found(relation)
        ground.pull(o, t)
        if o.groups[relation] != m.groups[relation] or not m.rows(relation):
            raise RuntimeError("the history does not set out as told")
        ground.pull(m, o)
        if not m.rows(relation):
            raise WrongError("x, which nobody has deleted, is lost")


def guests_wait(shortcuts):
    """v takes a file of q, which it never meets, and which does not list it. n, which has the view alone, is
    fed by c; so v can be, too, and w, which meets only v. Whether q has gone to c's group since, of which n
    hears nothing; or is gone, and its group has the smaller name.
    """
    for groups, stays in (("cq", True), ("qc", False)):
        ground = Ground(0, shortcuts)
        c, q = (Site(ground, name, "RW") for name in "cq")
        n, v, w = (Site(ground, name, "v") for name in "nvw")
        sites = {site.name: site for site in (c, q)}
        for number, name in enumerate(groups, 1):
            ground.meet_all([sites[name]], f"g{number}")
        c.write([("insert", "W", X)])
        q.write([("insert", "W", Y)])
        ground.pull(n, c)
        receive(v, push(q, 0))
        if "v" not in v.provisional or not v.rows("v"):
            raise RuntimeError("the history does not set out as told")
        ground.sites = [c, n, v, w]
        if stays:
            sync(ground, c, q)
            ground.sites.append(q)
        ground.links = {0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}}
        ground.settle()
        ground.compare()


def guests_stay(shortcuts):
    """p takes a file of q, which does not list it, and meets m; m is copied. The copy has to return to m, and
    reaches it only through p; and p reaches q only through the copy.
    """
    ground = Ground(0, shortcuts)
    q, p, m = (Site(ground, name, "R") for name in "qpm")
    ground.meet_all([q], "a")
    q.write([("insert", "R", (2, 2))])
    receive(p, push(q, 0))
    if "R" not in p.provisional:
        raise RuntimeError("the history does not set out as told")
    m.write([("insert", "R", X)])
    ground.pull(p, m)
    ground.pull(m, p)
    p.write([("insert", "R", Y)])
    twin = copied(ground, m)
    ground.sites = [q, twin, p, m]
    ground.links = {0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}}
    ground.settle()
    ground.compare()


def next_length(shortcuts):
    """All are put back: b to when x first lived, or had died, c to when it lived again, a to after it had
    forgotten x. In whichever order they meet, x is dead: also if a takes b's x for dead by the next length,
    or by the one it has, and then c comes, which has it longer.
    """
    first = (["insert"], ["delete", "insert"]), (["insert", "delete"], ["insert"])
    for order, (before_b, before_c) in product(permutations("abc"), first):
        ground, a, b, c = two_groups(shortcuts, "abc", "")
        backups = {}
        for saved, operations in (b, before_b), (c, before_c), (a, ["delete"]):
            a.write([(operation, "R", X) for operation in operations])
            for other in (b, c) * 2:
                sync(ground, a, other)
            if saved is a:
                a.collect()
            backups[saved] = saved.backup()
        if a.tables["R"]:
            raise RuntimeError("the history does not set out as told")
        for site, backup in backups.items():
            site.restore(backup)
        sites = {site.name: site for site in (a, b, c)}
        for reader, sender in pairwise(order):
            sync(ground, sites[reader], sites[sender])
        ground.links = {i: set(range(3)) - {i} for i in range(3)}
        ground.settle()
        ground.compare()
        if any(site.rows("R")[X] for site in sites.values()):
            raise WrongError("x is back, which all had seen deleted")


def leavers_forget(shortcuts):
    """z, of a smaller group, has come to p's, and p has read its x. z goes back to before that unnoticed,
    and writes y: its last commit has the number of the one that p has read. p leaves its group for the one
    that z is in again, and would take x for forgotten there.
    """
    ground, z, p = two_groups(shortcuts, "z", "p")
    backup = z.backup()
    z.leave("R")
    ground.pull(z, p)
    z.write([("insert", "R", X)])
    ground.pull(p, z)
    head = z.head
    z.load(backup)
    z.write([("insert", "R", Y)])
    if z.head != head or z.groups == p.groups or not p.rows("R")[X]:
        raise RuntimeError("the history does not set out as told")
    ground.pull(z, p)
    ground.links = {0: {1}, 1: {0}}
    ground.settle()
    ground.compare()


def guests_vouch(shortcuts):
    """p takes a file of q with x, and is not listed; q deletes x, which it forgets, and comes to t's group. p
    goes there, too, and joins from m: it brings x, and q's word from when x lived.
    """
    for relation in "RKW":
        ground, m, t = two_groups(shortcuts, "mt", "", relation)
        q, p = (Site(ground, name, relation) for name in "qp")
        ground.meet_all([q], "q")
        ground.sites += [q, p]
        q.write([("insert", relation, X)])
        receive(p, push(q, 0))
        q.write([("delete", relation, X)])
        ground.now += 10_000
        q.collect()
        if relation not in p.provisional or q.tables[relation]:
            raise RuntimeError("the history does not set out as told")
        ground.pull(q, t)
        ground.pull(t, q)
        ground.pull(p, m)
        ground.pull(m, p)
        ground.links = {i: set(range(4)) - {i} for i in range(4)}
        ground.settle()
        ground.compare()
        if any(site.rows(relation)[X] for site in ground.sites):
            raise WrongError("x is back, which its only writer has deleted")


MEETINGS = {
    "guests vouch": guests_vouch,
    "leavers forget": leavers_forget,
    "next length": next_length,
    "guests wait": guests_wait,
    "a member's page": a_members_page,
    "strangers": strangers,
    "listed by name": listed_by_name,
    "no shift": no_shift,
    "write below": write_below,
    "deaths once": deaths_once,
    "heard is seen": heard_is_seen,
    "speak for others": speak_for_others,
    "two ways": two_ways,
    "return anywhere": return_anywhere,
    "older whole": older_whole,
    "sponsor forgets": sponsor_forgets,
    "provisional to all": provisional_to_all,
    "guests stay": guests_stay,
    "wait in line": wait_in_line,
    "views merge": views_merge,
    "views wait": views_wait,
}
