"""Small histories, told step by step: what goes wrong when a rule is left out. Each raises on its shortcut.

They are the worked examples of docs/REPLICATION.md, for shortcuts that random runs meet rarely or late.
"""

from tests.model.driver import run
from tests.model.ground import Ground, WrongError
from tests.model.histories_of_bags import OF_BAGS
from tests.model.histories_of_clocks import OF_CLOCKS
from tests.model.histories_of_groups import MEETINGS
from tests.model.histories_of_views import OF_VIEWS
from tests.model.site import Site
from tests.model.sync import push, receive

X = (0, 0)


def _ground(shortcuts, **hosts):
    ground = Ground(0, shortcuts)
    ground.sites = [Site(ground, name, streams) for name, streams in hosts.items()]
    ground.meet_all(ground.sites)
    return ground, *ground.sites


def _newcomer(ground, hosts, skew=0):
    site = Site(ground, "n", hosts, skew=skew)
    ground.sites.append(site)
    return site


def _sync(ground, a, b, rounds=2):
    for _ in range(rounds):
        ground.pull(a, b)
        ground.pull(b, a)


def _collected(ground, c, t, relation="R"):
    """c inserts and deletes x; t has both; c has forgotten x, t holds it dead."""
    c.write([("insert", relation, X)])
    c.write([("delete", relation, X)])
    _sync(ground, c, t)
    if relation == "K":
        t.collect()  # it forgets nothing yet, and tells c next what it knows all to have passed
        _sync(ground, c, t)
    c.collect()
    if not t.tables[relation] or c.tables[relation]:
        raise RuntimeError("the history does not set out as told")


def floor_stays(shortcuts):
    """A newcomer inserts x at 1: where x is still held dead at 2, the insertion is lost."""
    ground, c, t = _ground(shortcuts, c="R", t="R")
    _collected(ground, c, t)
    n = _newcomer(ground, "R")
    ground.pull(n, c)
    n.write([("insert", "R", X)])
    ground.pull(t, n)
    ground.check(t)


def floor_leaves_clock(shortcuts):
    """A newcomer's clock is far behind: its write to a forgotten key is older than the delete t holds."""
    ground, c, t = _ground(shortcuts, c="K", t="K")
    _collected(ground, c, t, "K")
    n = _newcomer(ground, "K", skew=-500)
    ground.pull(n, c)
    n.write([("insert", "K", X)])
    ground.pull(c, n)
    ground.check(c)


def slow_guests(shortcuts):
    """The same, and n joins from t, which holds the delete; c has not heard of n when it forgets it."""
    ground, c, t = _ahead(shortcuts, "ct")
    n = _newcomer(ground, "K")
    ground.pull(n, t)
    _written_below(ground, n, c, t)


def slow_guests_of_the_late(shortcuts):
    """t does not know, as c does, that u has passed the delete too, so n's clock is not moved; and c must not
    forget the delete before it has heard from t that it knows.
    """
    ground, c, t, u = _ahead(shortcuts, "ctu")
    n = _newcomer(ground, "K")
    ground.pull(n, t)
    _sync(ground, c, u)
    _written_below(ground, n, c, t)


def _ahead(shortcuts, names):
    """Sites whose clocks are all ahead, and have met; c has deleted x since, and knows that t has that."""
    ground = Ground(0, shortcuts)
    ground.sites = [Site(ground, name, "K", skew=500) for name in names]
    ground.meet_all(ground.sites)
    c, t, *_ = ground.sites
    for other in reversed(ground.sites[1:]):
        _sync(ground, c, other)
    ground.now += 10
    c.write([("insert", "K", X)])
    c.write([("delete", "K", X)])
    for _ in range(2):
        _sync(ground, c, t)
        t.collect()
    return ground, *ground.sites


def _written_below(ground, n, c, t):
    """c forgets the delete; n, whom it does not know, writes x."""
    c.collect()
    if not t.tables["K"]:
        raise RuntimeError("the history does not set out as told")
    n.write([("insert", "K", X)])
    for site in (c, t):
        receive(site, push(n, 0))
    if c.rows("K") != t.rows("K"):
        raise WrongError(f"c shows {dict(c.rows('K'))}, and t {dict(t.rows('K'))}")


def no_lift(shortcuts):
    """An expired member returns with an unseen insertion of x at 1; c has forgotten that x reached 2."""
    ground, c, t, n = _ground(shortcuts, c="R", t="R", n="R")
    c.expire(n.inc)
    n.write([("insert", "R", X)])
    _collected(ground, c, t)
    for _ in range(2):
        ground.pull(n, c)
    ground.check(n)
    ground.pull(t, n)
    ground.check(t)


def send_before_joining(shortcuts):
    """A store that never joined wrote x at 1; c, which has forgotten x at 2, reads from it."""
    ground, c, t = _ground(shortcuts, c="R", t="R")
    _collected(ground, c, t)
    n = _newcomer(ground, "R")
    n.write([("insert", "R", X)])
    ground.pull(c, n)
    ground.check(c)


def merge_on_return(shortcuts):
    """A backup holds x alive; x was deleted and forgotten since, with the lost store's consent."""
    ground, c, n = _ground(shortcuts, c="R", n="R")
    c.write([("insert", "R", X)])
    _sync(ground, c, n)
    backup = n.backup()
    c.write([("delete", "R", X)])
    _sync(ground, c, n)
    c.collect()
    n.restore(backup)
    ground.pull(n, c)
    ground.check(n)


def unlisted_join(shortcuts):
    """A newcomer takes c's snapshot with x alive, and c does not know it: x dies and is forgotten."""
    ground, c, t = _ground(shortcuts, c="R", t="R")
    c.write([("insert", "R", X)])
    n = _newcomer(ground, "R")
    ground.pull(n, c)
    c.write([("delete", "R", X)])
    _sync(ground, c, t)
    c.collect()
    ground.pull(n, c)
    ground.check(n)


def orphans_stay(shortcuts):
    """c sponsors n, n sponsors m, c is expired before anyone hears of them; u collects x unasked."""
    ground, u, v, c = _ground(shortcuts, u="R", v="R", c="R")
    u.write([("insert", "R", X)])
    _sync(ground, u, c)
    n, m = _newcomer(ground, "R"), _newcomer(ground, "R")
    ground.pull(n, c)
    ground.pull(m, n)
    u.expire(c.inc)
    u.write([("delete", "R", X)])
    _sync(ground, u, v)
    u.collect()
    for _ in range(3):
        for guest in (n, m):
            ground.pull(guest, u)
            ground.check(guest)


def accept_covered(shortcuts):
    """m's insertion reaches c over t, x is deleted and forgotten; then m's first batch arrives at c."""
    ground, c, t, m = _ground(shortcuts, c="R", t="R", m="R")
    m.write([("insert", "R", X)])
    late = push(m, 0)
    _sync(ground, t, m)
    _sync(ground, c, t)
    c.write([("delete", "R", X)])
    for _ in range(2):
        _sync(ground, c, t)
        _sync(ground, t, m)
    _sync(ground, c, t)
    c.collect()
    receive(c, late)
    ground.check(c)


def believe_all(shortcuts):
    """w, which holds only derivations, tells t that m has x's death; t forgets x; m's old batch arrives."""
    ground, s, m, t, w = _ground(shortcuts, s="RK", m="R", t=["R", "j"], w=["j"])
    m.write([("insert", "R", X)])
    late = push(m, 0)
    s.write([("insert", "R", X)])
    s.write([("delete", "R", X)])
    ground.pull(t, s)
    ground.pull(m, s)
    ground.pull(s, m)
    ground.pull(w, s)
    ground.pull(t, w)
    t.collect()
    receive(t, late)
    ground.check(t)


def drop_the_dead(shortcuts):
    """w hears from b that x is dead, then gets x·q from a, then that x lives again; a never saw x dead."""
    ground, a, b, w = _ground(shortcuts, a="RK", b="RK", w=["j"])
    a.write([("insert", "R", X)])
    ground.pull(b, a)
    a.write([("insert", "K", X)])
    b.write([("delete", "R", X)])
    ground.pull(w, b)
    ground.pull(w, a)
    b.write([("insert", "R", X)])
    ground.pull(a, b)
    ground.pull(w, a)
    if w.rows("j") != a.rows("j"):
        raise WrongError(f"w shows {dict(w.rows('j'))}, not {dict(a.rows('j'))}")


def from_the_future(shortcuts):
    """b's clock is far ahead: until the time of its version comes, a goes on showing its own."""
    ground, a = _ground(shortcuts, a="K")
    b = Site(ground, "b", "K", skew=500)
    ground.meet_all([a, b])
    a.write([("insert", "K", X)])
    b.write([("insert", "K", (0, 1))])
    ground.pull(a, b)
    if a.rows("K") != {X: 1}:
        raise WrongError(f"a shows {dict(a.rows('K'))}")


def ignore_clocks(shortcuts):
    """m's clock is far behind c's delete, which it has; c forgets the delete, and m writes below it."""
    ground, c, t = _ground(shortcuts, c="K", t="K")
    m = Site(ground, "m", "K", skew=-500)
    ground.meet_all([c, t, m])
    c.write([("insert", "K", X)])
    c.write([("delete", "K", X)])
    for _ in range(2):
        _sync(ground, c, t)
        _sync(ground, c, m)
    c.collect()
    m.write([("insert", "K", X)])
    ground.pull(c, m)
    ground.check(c)


def sponsor_takes_anyway(shortcuts):
    """A random run, told without the rule on stores that were all put back, which would see it too."""
    run(10_234, shortcuts | {"who was asked"})


def clock_goes_back(shortcuts):
    """c forgets the delete; t's clock is set right, and t writes x below the delete, which it still holds."""
    ground, c, t = _ahead(shortcuts, "ct")
    c.collect()
    if c.tables["K"] or not t.tables["K"]:
        raise RuntimeError("the history does not set out as told")
    t.set_clock(0)
    t.write([("insert", "K", X)])
    ground.heal()


def untold_waits_not(shortcuts):
    """t's clock is ahead; it tells c of x, deletes it, and its clock is set right. When the time of x comes,
    x is dead: its deletion had seen it.
    """
    ground = Ground(0, shortcuts)
    c, t = ground.sites = [Site(ground, name, "K", skew=skew) for name, skew in {"c": 0, "t": 1_000}.items()]
    ground.meet_all(ground.sites)
    t.write([("insert", "K", X)])
    ground.pull(c, t)
    t.write([("delete", "K", X)])
    t.set_clock(0)
    ground.now += 10_000
    for site in ground.sites:
        site.tick()
        ground.check(site)
    ground.heal()
    if c.rows("K"):
        raise WrongError("what was deleted has come back")


HISTORIES = (
    MEETINGS
    | OF_BAGS
    | OF_CLOCKS
    | OF_VIEWS
    | {
        "clock goes back": clock_goes_back,
        "untold waits not": untold_waits_not,
        "ignore clocks": ignore_clocks,
        "future now": from_the_future,
        "future supersedes": from_the_future,
        "drop the dead": drop_the_dead,
        "floor stays": floor_stays,
        "floor leaves clock": floor_leaves_clock,
        "sponsor takes anyway": sponsor_takes_anyway,
        "slow guests": slow_guests,
        "one reading": slow_guests_of_the_late,
        "no lift": no_lift,
        "send before joining": send_before_joining,
        "merge on return": merge_on_return,
        "unlisted join": unlisted_join,
        "orphans stay": orphans_stay,
        "believe all": believe_all,
        "accept covered": accept_covered,
    }
)
