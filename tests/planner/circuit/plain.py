"""A circuit run by the reference engine over lists of rows: slow, short, the specification of a refresh."""

import functools
from collections import Counter
from contextlib import nullcontext

from everview.engines.reference import evaluate
from everview.language.plan import Scan, walk_plan
from everview.planner.circuit import build_circuit
from everview.planner.circuit.parts import table_of
from everview.planner.circuit.weighted import consolidated, united
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import rewrite
from everview.planner.rules.share import share
from everview.testing.fuzz.model import Model


def circuit_of(program):
    facts = Facts(catalog_of(program))
    plans = {name: rewrite(view.plan, facts=facts) for name, view in program.views.items()}
    return build_circuit(share(plans).plans)


class PlainCircuit:
    """What is kept, and one method: a change goes through."""

    def __init__(self, program):
        self.program = program
        self.circuit = circuit_of(program)
        self.kept = {name: {} for name in self.circuit.kept}
        self.started = False
        self.read = 0

    def rows(self, name):
        kept = self.kept[self.circuit.views[name].name]
        return [row for row, (weight,) in kept.items() for _ in range(weight)]

    def refresh(self, deltas):
        tables = {}
        for name in self.program.relations:
            tables[f"{name}@delta"] = [(*row, w) for row, w in deltas.get(name, {}).items() if w]
        for operator in self.circuit.operators.values():
            self.run(operator, tables)
        for kept in self.circuit.kept.values():
            self.keep(kept, self.evaluate(kept.change, tables))
        self.started = True

    def run(self, operator, tables):
        plans = []
        if any(tables[f"{source}@delta"] for source in operator.reads):
            for kept in operator.kept:
                tables[f"{kept.name}@delta"] = self.evaluate(kept.change, tables)
            for lookup in operator.lookups:
                found = tables.setdefault(f"{lookup.kept.name}@found", [])
                known = set(found)
                fresh = [row for row in self.found(lookup, tables) if row not in known]
                self.read += len(fresh) if lookup.keys is not None else 0
                found += fresh
            for name, plan in operator.steps:
                tables[name] = self.evaluate(plan, tables)
            plans.append(operator.change)
        if not self.started:
            plans.append(operator.first)
        plan = united(plans)
        tables[f"{operator.name}@delta"] = self.evaluate(consolidated(plan), tables) if plan else []

    def found(self, lookup, tables):
        rows = self.kept[lookup.kept.name]
        if lookup.keys is None:
            return [(*row, *sums) for row, sums in rows.items()]
        wanted = Counter(self.evaluate(lookup.keys, tables))
        chosen = [row for row in rows if self.key(lookup.kept, row) in wanted]
        if lookup.take is not None:
            chosen = list(self.taken(lookup, chosen, wanted))
        return [(*row, *rows[row]) for row in chosen]

    def taken(self, lookup, chosen, wanted):
        groups = {}
        for row in chosen:
            groups.setdefault(self.key(lookup.kept, row), []).append(row)
        for key, rows in groups.items():
            ranks = [Ranked(row, lookup.kept.order) for row in rows]
            ranked = [rank.row for rank in sorted(ranks, reverse=lookup.last)]
            yield from ranked[: wanted[key] + lookup.take]

    def key(self, kept, row):
        return tuple(row[place] for place in kept.keys)

    def keep(self, kept, change):
        rows = self.kept[kept.name]
        for changed in change:
            row, more = changed[: kept.width], changed[kept.width :]
            sums = tuple(a + b for a, b in zip(rows.get(row, (0,) * len(more)), more, strict=True))
            if any(sums):
                rows[row] = sums
            else:
                rows.pop(row, None)

    def evaluate(self, plan, tables):
        given = {}
        for node in walk_plan(plan):
            if isinstance(node, Scan):
                table, bag = table_of(node.name)
                rows = tables.get(table, [])
                given[node.name] = [row[:-1] for row in rows for _ in range(row[-1])] if bag else rows
        return evaluate(plan, given).rows


@functools.total_ordering
class Ranked:
    """A row among those of its key."""

    def __init__(self, row, order):
        self.row = row
        self.order = order

    def __eq__(self, other):
        return self.row == other.row

    __hash__ = None

    def __lt__(self, other):
        for key in self.order:
            mine, theirs = (row[key.expression.index] for row in (self.row, other.row))
            if mine is None or theirs is None:
                if (mine is None) != (theirs is None):
                    return (mine is None) == key.nulls_first
            elif plain(mine) != plain(theirs):
                return (plain(mine) < plain(theirs)) != key.descending
        return False


def plain(value):
    """NaN is greatest; text goes by its bytes."""
    if isinstance(value, float):
        return (value != value, value if value == value else 0.0)
    return value.encode() if isinstance(value, str) else value


class CircuitStore:
    """A circuit behind a model of the relations, as the fuzzer's checks want it."""

    def __init__(self, program, run=PlainCircuit):
        self.model = Model(program)
        self.circuit = run(program)
        self.circuit.refresh({})

    def insert(self, relation, rows):
        return self._write(relation, lambda: self.model.insert(relation, rows))

    def delete(self, relation, rows):
        return self._write(relation, lambda: self.model.delete(relation, rows))

    def _write(self, relation, write):
        before = Counter(self.model.tables[relation])
        count = write()
        change = Counter(self.model.tables[relation])
        change.subtract(before)
        self.circuit.refresh({relation: change})
        return count

    def together(self):
        return nullcontext()

    def rows(self, name):
        return self.model.rows(name) if name in self.model.tables else self.circuit.rows(name)

    def faults(self):
        return []

    def close(self):
        pass
