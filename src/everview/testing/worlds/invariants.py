"""What must hold of a site at any time, and of all sites in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from everview.engines.reference import evaluate, evaluate_views
from everview.engines.sqlite.rows import peers, serving
from everview.language.expressions import Expression
from everview.language.plan import Filter, Scan
from everview.language.relations import Relation
from everview.testing.worlds.history import Dot, Live, Row, Vector, shown
from everview.testing.worlds.sites import part_of, stream_of

if TYPE_CHECKING:
    from everview.testing.worlds.sites import Site
    from everview.testing.worlds.world import World


class Wrong(AssertionError):  # noqa: N818 - it names what was found; tests read better so
    """A state that breaks what was promised."""


def check_site(world: World, site: Site) -> None:
    """A site holds what the commits that it has seen make, shows what it holds, and its views follow.

    Vectors only grow, and no commit is seen in part. Of relations that a liar may write only the last holds.
    """
    tables: dict[str, list[Row]] = {}
    expected: dict[str, Counter[Row]] = {}
    for part in site.shares:
        (name, _), live = stream_of(part), site.live(part)
        if world.is_sound(part):
            _check_seen(world, site, part, live)
        expected.setdefault(name, Counter()).update(shown(site.program.relations[name], live))
    for name, held in expected.items():
        rows = site.rows(name)
        same(f"{site.name} shows {name}", rows, held)
        tables[name] = list(rows.elements())
    for stream, name in site.hollow.items():
        if world.is_sound(name):
            _check_seen(world, site, stream, site.live(stream), of=name)
    if world.case.transfers and "torn" in site.views() and (rows := site.rows("torn")):
        raise Wrong(f"{site.name} shows transfers in part: {sorted(rows)}")
    for name in site.views():
        if site.is_published(name) and site.rows(name) not in world.published.get(name, [Counter()]):
            raise Wrong(f"{site.name} shows {name} as its authority never did: {site.rows(name)}")
    here = site.views()
    others = any(name not in here and site.is_published(name) for name in site.program.views)
    if len(tables) == len(site.program.relations) and not site.hollow and not others:
        foreign = {name: list(site.rows(name).elements()) for name in site.views() if site.is_published(name)}
        made = world.views_of(tables | foreign)
        for name in site.views():
            rows = site.rows(name)
            if name not in foreign:
                same(f"{site.name} keeps view {name}", rows, made[name])


def _check_seen(world: World, site: Site, stream: str, live: Live, *, of: str = "") -> None:
    """`of` is the relation of which a view's host keeps an input: the dots, and not the values."""
    name, vector = of or stream, site.vector(stream)
    before = site.seen.get(stream, {})
    if not includes(vector, before) and not (of and site.knows_of_losses()):
        raise Wrong(f"{site.name} has seen {vector} of {stream}, and had seen {before}")
    site.seen[stream] = vector
    if site.fork is None:
        seen, more = vector, []
    else:
        fork = site.fork
        own = min(vector.get(fork.incarnation, 0), fork.own.get(name, 0))
        seen = vector | {fork.incarnation: own}
        seen = {one: upto for one, upto in seen.items() if upto}
        more = [event for event in fork.events if event.relation == stream]
    if not world.history.is_whole(name, seen):
        raise Wrong(f"{site.name} has seen commits of {name} in part: {vector}")
    expected = world.history.live(name, seen, more)
    if of:  # of which only dots are kept, and only of rows that a view can show
        hollow: Any = site.store.engine.hollow[stream]
        relation = site.program.relations[name]
        expected = dict.fromkeys(passing(relation, hollow.reduced.passing, expected), ())
        live = dict.fromkeys(live, ())
    if live != expected:
        raise Wrong(f"{site.name} holds {stream} {_differ(live, expected)}")


def passing(relation: Relation, condition: Expression, live: Live) -> Iterator[Dot]:
    """Yield the dots of the rows for which a condition is true."""
    scan, width = Filter(Scan(relation.name, relation.schema), condition), len(relation.schema)
    found = {row[:width] for row in live.values()}
    passes = set(map(tuple, evaluate(scan, {relation.name: found}).rows))
    return (dot for dot, row in live.items() if row[:width] in passes)


def check_rest(world: World) -> None:
    """In the end all that hold a relation hold the same, digests say so, and views are of the same rows."""
    honest = [site for name, site in sorted(world.sites.items()) if world.is_honest(name)]
    for name in sorted({part for site in honest for part in site.shares}):
        holders = [site for site in honest if name in site.shares]
        if not world.is_sound(name) or not holders:
            continue
        first = holders[0]
        for site in holders:
            if site.vector(name) != first.vector(name):
                vectors = f"{site.vector(name)}, {first.vector(name)}"
                raise Wrong(
                    f"in the end {site.name} and {first.name} have seen different parts of {name}: {vectors}"
                )
            if site.live(name) != first.live(name):
                raise Wrong(f"in the end {site.name} and {first.name} hold {name} differently")
    for site in honest:
        check_site(world, site)
        _check_digests(world, site)
    _check_views(world, honest)


def _check_views(world: World, sites: Iterable[Site]) -> None:
    """Views are the same at all sites that have seen of their inputs what whoever holds those has seen."""
    sites = list(sites)
    whole = [site for site in sites if site.hosts is None]
    if not whole or world.case.grants or world.case.wild:
        return
    for site in sites:
        if site.choices:  # its views are over the values that it hosts
            continue
        if any(site.vector(stream) != whole[0].vector(name) for stream, name in site.hollow.items()):
            raise Wrong(f"in the end {site.name} has not seen all inputs of its views, or more of them")
        for name in site.views():
            authority = world.program.views[name].authority
            if authority is None or authority in world.sites:
                model = whole[0] if authority is None else world.sites[authority]
                if authority is None and (
                    _reads_published(world, name) or _is_of_the_lost(world, site, name)
                ):
                    continue
                if name in model.views():
                    same(f"in the end {site.name} shows view {name}", site.rows(name), model.rows(name))


def _is_of_the_lost(world: World, site: Site, view: str) -> bool:
    """Whether aggregates of owners' rows may be of owners that are gone: who has no such rows keeps those."""
    names = [view]
    for name in names:
        declared = world.program.views.get(name)
        names += [one for one in (declared.reads if declared else ()) if one not in names]
    owned = (name for name in names if name in world.program.relations)
    gone = world.counts["left"] + world.counts["never found out"]
    return gone > 0 and any(world.program.relations[n].owner and n not in site.shares for n in owned)


def _reads_published(world: World, view: str) -> bool:
    """Whether a program has published views: what is made of them is not the same everywhere at once."""
    return bool(world.published) and view == "over"


def _check_digests(world: World, site: Site) -> None:
    with site.store.writing() as connection:
        head = serving.head(connection).version
        alarms = [one[:3] for one in peers.alarms(connection) if world.is_sound(part_of(*one[:2]))]
        if alarms:
            raise Wrong(f"{site.name} has alarms: {alarms}")
        for name, stored in site.shares.items():
            number = site.store.ledger.partition(connection, *stream_of(name)).number
            kept, given = serving.digest_of(connection, stored, number, head), {"partition": number}
            if kept != serving.sum_rows(connection, stored.all_rows(within=True), given):
                raise Wrong(f"{site.name} has kept another digest of {name} than its rows have")


def expected_views(program: Any, tables: Mapping[str, list[Row]]) -> dict[str, Counter[Row]]:
    """What the reference makes of these rows."""
    return {name: Counter(found.rows) for name, found in evaluate_views(program, dict(tables)).items()}


def includes(vector: Vector, other: Vector) -> bool:
    """Whether a vector covers all that another one does."""
    return all(vector.get(one, 0) >= upto for one, upto in other.items())


def same(what: str, found: Counter[Row], expected: Counter[Row]) -> None:
    """Raise Wrong unless these are the same rows."""
    if not dict.__eq__(found, expected):
        more, less = list((found - expected).elements()), list((expected - found).elements())
        raise Wrong(f"{what} with {_listed(more)} too much, and without {_listed(less)}")


def _differ(found: Live, expected: Live) -> str:
    more = [item for item in found.items() if item not in expected.items()]
    less = [item for item in expected.items() if item not in found.items()]
    return f"with {_listed(more)} too much, and without {_listed(less)}"


def _listed(rows: Iterable[Any]) -> str:
    return ", ".join(sorted(map(repr, rows))[:5]) or "nothing"
