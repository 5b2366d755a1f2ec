"""Cut: what of a view must come from elsewhere, and what is computed where the view is hosted.

Above its first operators that are not monotone, seen from the relations, a plan is a local circuit. Below
them are the cores, whose derivations travel. A core that would be nothing but a relation with all its
columns is the relation itself, and so is a bag, whose rows are counted and not identified, and a view that
its authority publishes. Where a core would have too many branches, it is cut once more below its uppermost
operator.

Cores are named by the view and by what they say, so they have the same name at every site that runs the
program, and another one where another version of this library would cut otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from everview.language.expressions import Column, Expression
from everview.language.plan import Plan, Scan, Schema, UnionAll, Values, walk_plan
from everview.language.relations import Relation, Semantics
from everview.planner.branches import Branch, branch_plan, branches_of, passing
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
    """A view's plan over cores and whole relations, and the cores that it reads."""

    plan: Plan
    cores: tuple[Core, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations, and what else has no ids, that are read whole."""
        names = {core.name for core in self.cores}
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
    cores = _cores(view, plan, relations, opaque)
    kept: dict[str, Core] = {}

    def replaced(node: Plan) -> Plan:
        if node not in cores:
            return over(node, replaced)
        core, constants = cores[node]
        if held.issuperset(core.inputs):
            return node
        kept[core.name] = core
        scan = Scan(core.name, core.schema)
        if not constants:
            return scan
        names = [field.name for field in core.schema]
        return UnionAll((scan, *(branch_plan(branch, names) for branch in constants)))

    return Cut(replaced(plan), tuple(kept.values()))


def _cores(
    view: str, plan: Plan, relations: Mapping[str, Relation], opaque: frozenset[str]
) -> dict[Plan, tuple[Core, tuple[Branch, ...]]]:
    """The cores of a plan by the node that each stands for, with its constant rows; equal nodes are one."""
    bags = {name for name, relation in relations.items() if relation.semantics is Semantics.BAG} | opaque
    found: dict[Plan, tuple[Core, tuple[Branch, ...]]] = {}

    def visit(node: Plan) -> None:
        scans = {part.name for part in walk_plan(node) if isinstance(part, Scan)}
        if isinstance(node, Scan | Values) or not scans or node in found:
            return
        branches = None if scans & bags else branches_of(node)
        if branches is None:
            for child in node.inputs:
                visit(child)
            return
        travelling = tuple(branch for branch in branches if branch.atoms)
        if not all(map(_is_whole, travelling)):
            name = f"{view}#{len(found)}.{_digest(travelling)}"
            inputs = tuple(sorted({atom.name for branch in travelling for atom in branch.atoms}))
            constants = tuple(branch for branch in branches if not branch.atoms)
            found[node] = Core(name, view, node.schema, travelling, inputs), constants

    visit(plan)
    return found


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


def _digest(branches: tuple[Branch, ...]) -> str:
    return hashlib.sha256(repr(branches).encode()).hexdigest()[:8]
