"""A circuit whose recursions are run as a hub runs them, the rest by the reference: no Spark, no files."""

from tests.planner.circuit.plain import PlainCircuit

from everview.engines.spark.types import arrow_rows, arrow_table
from everview.hub.memory import Memory
from everview.hub.recursing import recur
from everview.planner.circuit.parts import WEIGHT, changed_scan, found_scan


class RecursiveCircuit(PlainCircuit):
    def run(self, operator, tables):
        if operator.recursion is None:
            super().run(operator, tables)
            return
        tables[f"{operator.name}@delta"] = []
        if not any(tables[f"{source}@delta"] for source in operator.reads):
            return
        memory = Memory()
        for kept in operator.kept:
            rows = self.evaluate(kept.change, tables)
            memory.put(changed_scan(kept).name, kept.schema, arrow_table(kept.schema, rows))
        for lookup in operator.lookups:
            kept = lookup.kept
            rows = self.found(lookup, tables)
            memory.put(found_scan(kept).name, kept.schema, arrow_table(kept.schema, rows))
        change = recur(memory, operator.recursion)
        memory.close()
        tables[f"{operator.name}@delta"] = arrow_rows(change, (*operator.schema, WEIGHT))
