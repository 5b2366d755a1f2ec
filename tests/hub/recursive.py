"""A circuit whose recursions are run as a hub runs them, the rest by the reference: no Spark, no files."""

from tests.planner.circuit.plain import PlainCircuit

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub.memory import Memory
from everview.hub.recursing import recur
from everview.hub.routing import range_of
from everview.hub.tables import Hashed
from everview.planner.circuit.parts import WEIGHT, changed_scan, found_scan


class RecursiveCircuit(PlainCircuit):
    targets = 3
    """Into how many ranges a recursion falls apart, if it does."""

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
        memory = Memory()
        within = range_of(part, parts)
        for kept in operator.kept:
            rows = self.evaluate(kept.change, tables)
            memory.put(changed_scan(kept).name, kept.schema, arrow_table(kept.schema, rows))
        for lookup in operator.lookups:
            kept = lookup.kept
            rows = self.found(lookup, tables)
            if kept in operator.own and kept.keys:
                hashes = Hashed(kept.keys).of(kept.schema, arrow_table(kept.schema, rows))
                low, high = within
                rows = [row for row, at in zip(rows, hashes, strict=True) if low <= at <= high]
            memory.put(found_scan(kept).name, kept.schema, arrow_table(kept.schema, rows))
        change = recur(memory, operator.recursion, within)
        memory.close()
        return arrow_rows(change, (*operator.schema, WEIGHT))
