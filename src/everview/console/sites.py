"""A site, as the console looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from everview.console.pictures import Box, Picture, words_of
from everview.console.subject import status_of
from everview.engines.sqlite.inspecting import Rows
from everview.engines.sqlite.trials import Turn
from everview.language.plan import Plan, Scan
from everview.language.program import Program
from everview.planner.published import is_published, view_of
from everview.planner.why.answer import Provenance
from everview.site import Site

__all__ = ["SiteSubject"]

Row = tuple[Any, ...]


class SiteSubject:
    """A site that is served."""

    kind: Literal["site", "hub"] = "site"

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def name(self) -> str:
        """The site's label."""
        return self._site.name

    @property
    def program(self) -> Program:
        """What it runs."""
        return self._site.program

    def hosted(self) -> Sequence[str]:
        """What is shown here; relations that Everview keeps for itself are left out."""
        relations = self.program.relations
        return [n for n in self._site.inspection.hosted() if n not in relations or not relations[n].system]

    def mark(self, head: int) -> str:
        """There is something new with each commit."""
        return str(head)

    def count(self, name: str) -> tuple[int, bool]:
        """How many rows there are."""
        return self._site.inspection.count(name), True

    def rows(self, name: str, offset: int, limit: int) -> Rows:
        """Some rows."""
        return self._site.inspection.rows(name, offset, limit)

    def why(self, name: str, row: Row) -> Provenance:
        """Why a row is there."""
        return self._site.why(name, row)

    def without(self, relation: str, row: Row, names: Iterable[str]) -> Mapping[str, Turn] | None:
        """Tried in a transaction that is undone."""
        inspection = self._site.inspection
        return inspection.without(relation, row, names) if inspection.holds(relation) else None

    def is_monotone_here(self, view: str) -> bool:
        """Whether no row keeps a row away, and no proof is chosen among several."""
        return self._site.inspection.is_monotone(view)

    def picture(self, view: str) -> Picture:
        """The plan as it is kept here; its commits are counted while somebody looks."""
        kept = self._site.inspection.kept(view)
        counts = kept.tallied.counts if kept.tallied is not None else None
        numbers = {plan: number for number, plan in enumerate(kept.operators, start=1)}
        root = next(iter(numbers))
        boxes = [self._box(0, "view", view, "", (1,), counts, root)]
        for plan, below in kept.operators.items():
            title, detail = self._source(plan.name) if isinstance(plan, Scan) else words_of(plan)
            kind = self._kind(plan)
            reads = tuple(dict.fromkeys(numbers[part] for part in below))
            boxes.append(self._box(numbers[plan], kind, title, detail, reads, counts, plan))
        return Picture(tuple(boxes), kept.tallied.commit if kept.tallied is not None else None, "commit")

    def _box(
        self,
        number: int,
        kind: Literal["view", "relation", "operator"],
        title: str,
        detail: str,
        reads: tuple[int, ...],
        counts: Mapping[Plan, Any] | None,
        plan: Plan,
    ) -> Box:
        known = counts is not None and self._site.inspection.is_counted(plan)
        found = counts.get(plan) if counts is not None else None
        more, less = (found.appeared, found.disappeared) if found is not None else (0, 0)
        return Box(number, kind, title, detail, reads, more if known else None, less if known else None)

    def _kind(self, plan: Plan) -> Literal["view", "relation", "operator"]:
        if not isinstance(plan, Scan):
            return "operator"
        return "view" if plan.name in self.program.views else "relation"

    def _source(self, name: str) -> tuple[str, str]:
        """What is read: a relation or view that is here, or by what it is made from what others send."""
        if name in self.program.views:
            return name, "another view"
        if name in self.program.relations:
            return name, self.program.relations[name].semantics.value.replace("_", "-") + " relation"
        if is_published(name):
            view = view_of(name)
            return view, f"published by {self.program.views[view].authority}"
        return ", ".join(self._site.inspection.inputs(name)) or name, "comes from other sites"

    def explain(self, name: str) -> str:
        """How a view is kept, in words."""
        return self._site.explain(name)

    def insert(self, relation: str, row: Row) -> str:
        """Insert a row."""
        return "inserted" if self._site.insert(relation, [row]) else "it was there already"

    def delete(self, relation: str, row: Row) -> str:
        """Delete a row."""
        return "deleted" if self._site.delete(relation, [row]) else "it was not there"

    def status(self) -> Mapping[str, Any]:
        """Sites, peers, alarms; and who came here since this process began."""
        return status_of(self._site.replica)

    def refreshes(self) -> Mapping[str, Any] | None:
        """A site has none: its views are right after each commit."""
        return None
