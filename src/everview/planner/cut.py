"""Cut: what of a view must come from elsewhere, and what is computed where the view is hosted.

Above its first operators that are not monotone, seen from the relations, a plan is a local circuit. Below
them are the cores, whose derivations travel. A core that would be nothing but a relation with all its columns
is the relation itself, and so is a relation whose rows are merged, and a view that its authority publishes.
Where a core would have too many branches, it is cut once more below its uppermost operator. An aggregate over
rows that only their owners write is cut above: what each owner's rows come to travels (see `partials`).

Cores are named by what they say alone. So equal parts of two views are one core, and come from any site that
hosts either view.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from everview.language.expressions import Column, Expression
from everview.language.plan import Plan, Scan, Schema, UnionAll, Values, walk_plan
from everview.language.relations import WHOLE, Relation
from everview.planner.branches import Branch, branch_plan, branches_of, passing
from everview.planner.partials import Partials, may_be_partials, partials_of
from everview.planner.walking import over

__all__ = ["Core", "Cut", "cut", "plan_of"]


@dataclass(frozen=True, slots=True)
class Core:
    """A part of a view that travels as derivations: its rows are those of the branches, all with atoms."""

    name: str
    view: str
    schema: Schema
    branches: tuple[Branch, ...]
    inputs: tuple[str, ...]
    """The base relations it is made from, in the order of their names."""

    def passing(self, relation: Relation) -> Expression:
        """Return the condition on rows of an input whose liveness travels."""
        return passing(self.branches, relation)


@dataclass(frozen=True, slots=True)
class Cut:
    """A view's plan over cores, partial aggregates and whole relations, and what of these travels."""

    plan: Plan
    cores: tuple[Core, ...]
    partials: tuple[Partials, ...] = ()
    whole: tuple[str, ...] = ()
    """Why aggregates over owners' rows do not travel as partial ones."""

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations, and what else has no ids, that are read whole."""
        names = {core.name for core in self.cores}
        names |= {partials.name for partials in self.partials}
        found = {node.name for node in walk_plan(self.plan) if isinstance(node, Scan)}
        return tuple(sorted(found - names))


def cut(
    view: str,
    plan: Plan,
    relations: Mapping[str, Relation],
    held: frozenset[str] = frozenset(),
    opaque: frozenset[str] = frozenset(),
) -> Cut:
    """Cut a plan over base relations; a core over nothing but `held` relations stays part of the plan.

    `opaque` are what it scans besides, whose rows have no ids. Cores have the same names whatever is held.
    """
    found = _found(view, plan, relations, opaque)
    cores: dict[str, Core] = {}
    partials: dict[str, Partials] = {}

    def replaced(node: Plan) -> Plan:
        if node in found.partials:
            apart = found.partials[node]
            if held.issuperset(apart.inputs):
                return node
            partials[apart.name] = apart
            return apart.merged
        if node not in found.cores:
            return over(node, replaced)
        core, constants = found.cores[node]
        if held.issuperset(core.inputs):
            return node
        cores[core.name] = core
        scan = Scan(core.name, core.schema)
        if not constants:
            return scan
        names = [column.name for column in core.schema]
        return UnionAll((scan, *(branch_plan(branch, names) for branch in constants)))

    return Cut(replaced(plan), tuple(cores.values()), tuple(partials.values()), tuple(found.whole))


@dataclass(frozen=True, slots=True)
class _Found:
    """What can travel of a plan, by the node that it stands for; equal nodes are one."""

    cores: dict[Plan, tuple[Core, tuple[Branch, ...]]] = field(default_factory=dict)
    """With the constant rows of each."""
    partials: dict[Plan, Partials] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)


def _found(view: str, plan: Plan, relations: Mapping[str, Relation], opaque: frozenset[str]) -> _Found:
    whole = {name for name, relation in relations.items() if relation.semantics in WHOLE} | opaque
    owned = {name for name, relation in relations.items() if relation.owner is not None}
    all_found = _Found()
    found = all_found.cores

    def visit(node: Plan) -> None:
        scans = {part.name for part in walk_plan(node) if isinstance(part, Scan)}
        if isinstance(node, Scan | Values) or not scans or node in found or node in all_found.partials:
            return
        if may_be_partials(node) and scans & owned:
            apart = partials_of(view, node, relations)
            if isinstance(apart, Partials):
                all_found.partials[node] = apart
                return
            all_found.whole.append(apart)
        branches = None if scans & whole else branches_of(node)
        if branches is None:
            for child in node.inputs:
                visit(child)
            return
        travelling = tuple(branch for branch in branches if branch.atoms)
        if not all(map(_is_whole, travelling)):
            name = f"#{_digest(travelling, 16)}"
            inputs = tuple(sorted({atom.name for branch in travelling for atom in branch.atoms}))
            constants = tuple(branch for branch in branches if not branch.atoms)
            found[node] = Core(name, view, node.schema, travelling, inputs), constants

    visit(plan)
    return all_found


def plan_of(core: Core) -> Plan:
    """Return a core as a plan over relations."""
    names = tuple(field.name for field in core.schema)
    return UnionAll(tuple(branch_plan(branch, names) for branch in core.branches))


def _is_whole(branch: Branch) -> bool:
    """Whether a branch is one relation with all its columns, perhaps in another order."""
    if len(branch.atoms) != 1 or branch.conditions:
        return False
    shown = {found.index for found in branch.expressions if isinstance(found, Column)}
    return len(shown) == len(branch.atoms[0].schema)


def _digest(branches: tuple[Branch, ...], length: int) -> str:
    return hashlib.sha256(repr(branches).encode()).hexdigest()[:length]
