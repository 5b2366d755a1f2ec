"""A circuit whose recursions are run as a hub runs them, the rest by the reference: no Spark, no files."""

from tests.planner.circuit.plain import PlainCircuit

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub.memory import Memory
from everview.hub.recursing import recur
from everview.hub.routing import range_of
from everview.planner.circuit.parts import WEIGHT, changed_scan


class Kept:
    """What is kept, found by looking at all of it; it counts what it gives."""

    def __init__(self, kept):
        self.kept = kept
        self.read = 0

    def find(self, kept, keys):
        rows = [(*row, *sums) for row, sums in self.kept[kept.name].items()]
        if keys is not None:
            places = kept.keys or range(kept.width)
            wanted = set(map(repr, arrow_rows(keys, tuple(kept.schema[place] for place in places))))
            rows = [row for row in rows if repr(tuple(row[place] for place in places)) in wanted]
        self.read += len(rows)
        return arrow_table(kept.schema, rows)


class RecursiveCircuit(PlainCircuit):
    targets = 3
    """Into how many ranges a recursion falls apart, if it does."""

    read_by_recursions = 0
    """How many kept rows recursions have read."""

    def run(self, operator, tables):
        if operator.recursion is None:
            super().run(operator, tables)
            return
        tables[f"{operator.name}@delta"] = []
        if not any(tables[f"{source}@delta"] for source in operator.reads):
            return
        parts = self.targets if operator.recursion.stable else 1
        change = [row for part in range(parts) for row in self.part(operator, tables, part, parts)]
        tables[f"{operator.name}@delta"] = change

    def part(self, operator, tables, part, parts):
        memory, finder = Memory(), Kept(self.kept)
        for kept in operator.kept:
            rows = self.evaluate(kept.change, tables)
            memory.put(changed_scan(kept).name, kept.schema, arrow_table(kept.schema, rows))
        change = recur(memory, operator, finder, range_of(part, parts))
        memory.close()
        self.read_by_recursions += finder.read
        return arrow_rows(change, (*operator.schema, WEIGHT))
