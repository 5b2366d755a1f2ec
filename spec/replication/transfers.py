"""A reader stages pages, and applies all of them with the last one in one commit.

Each request says what the reader has applied and staged so far, and the cursor at which the transfer began.
Both sides may change between pages as they like. A transfer that no longer fits is abandoned and begun again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spec.replication.answers import answer
from spec.replication.cuts import Ask, Cut, Page, Part, Request, ViewAsk, ViewPart
from spec.replication.relations import START, Cursor
from spec.replication.rows import Rows
from spec.replication.rules import Rule, holds
from spec.replication.stores import Store
from spec.replication.vectors import Vector, extent, includes, join
from spec.replication.views import Derivation, Monomial


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a reader has staged of one sender."""

    sender: str
    cursors: Mapping[str, Cursor]
    """How far each relation and view had been read when the transfer began."""
    heard: Cursor = START
    rows: Mapping[str, Rows] = field(default_factory=dict)
    derivations: Mapping[str, Mapping[Monomial, Derivation]] = field(default_factory=dict)
    positions: Mapping[str, tuple[int, Monomial]] = field(default_factory=dict)
    required: Mapping[str, Vector] = field(default_factory=dict)
    """What the reader had applied, at any request of this transfer."""


class Abandoned(Exception):  # noqa: N818 - it is no error: the reader begins again
    """The sender is not what it was when the transfer began."""


def begun(store: Store, sender: str) -> Transfer:
    """Return a transfer that has staged nothing."""
    cursors = {name: relation.cursors.get(sender, START) for name, relation in store.relations.items()}
    cursors |= {title: view.cursors.get(sender, START) for title, view in store.views.items()}
    return Transfer(sender, cursors, max(cursors.values(), key=lambda cursor: cursor.version))


def request(store: Store, transfer: Transfer, limit: int | None = None) -> Request:
    """Return the question for the next page."""
    asks = {
        name: Ask(relation.vector, extent(transfer.rows.get(name, {})), transfer.cursors.get(name, START))
        for name, relation in store.relations.items()
    }
    views = {
        title: ViewAsk(transfer.cursors.get(title, START), transfer.positions.get(title))
        for title in store.views
    }
    known = [relation.cursors.get(transfer.sender, START) for relation in store.relations.values()]
    heard = max(transfer.heard, *known, key=lambda cursor: cursor.version)
    return Request(store.incarnation, transfer.sender, asks, views, limit, heard)


def staged(transfer: Transfer, question: Request, page: Page) -> Transfer:
    """Return the transfer with the answer to this request staged."""
    if page.sender != transfer.sender:
        raise Abandoned
    rows = {name: {**transfer.rows.get(name, {}), **page.rows.get(name, {})} for name in question.relations}
    derivations = {
        title: {**transfer.derivations.get(title, {}), **page.derivations.get(title, {})}
        for title in question.views
    }
    ends = {
        title: (derivation.version, monomial)
        for title, found in page.derivations.items()
        for monomial, derivation in found.items()  # in their order: the last one stays
    }
    required = {
        name: join(transfer.required.get(name, {}), ask.vector) for name, ask in question.relations.items()
    }
    return replace(
        transfer,
        heard=page.at,
        rows=rows,
        derivations=derivations,
        positions={**transfer.positions, **ends},
        required=required,
    )


def assembled(transfer: Transfer, last: Cut) -> Cut:
    """Return the cut that the staged pages and the last one make; staged rows that went are dropped."""
    parts: dict[str, Part] = {}
    for name, part in last.parts.items():
        pages = transfer.rows.get(name, {})
        if not includes(part.vector, extent(pages)):
            raise Abandoned  # the sender has forgotten the relation meanwhile, and begun it again
        kept = {dot: row for dot, row in pages.items() if not (part.drops(dot) and holds(Rule.DROPPED))}
        required = join(transfer.required.get(name, {}), part.required)
        parts[name] = replace(part, rows={**kept, **part.rows}, required=required)
    views = {
        title: ViewPart(view.start, {**transfer.derivations.get(title, {}), **view.derivations})
        for title, view in last.views.items()
    }
    return replace(last, parts=parts, views=views)


def cut_for(sender: Store, reader: Store) -> Cut:
    """Return what the reader lacks of the sender, in one page."""
    last = answer_to(sender, reader).last
    if last is None:
        raise Abandoned
    return last


def answer_to(sender: Store, reader: Store) -> Page:
    """Return the one page that answers a request without a limit."""
    return answer(sender, request(reader, begun(reader, sender.incarnation)))
