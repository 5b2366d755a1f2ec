"""A view of many expressions over the rows of a relation, added to a program.

Views join, filter and group most rows away, and few of them show what a function gives. One more view shows
twelve values of every row; for Spark it is one more plan.
"""

import functools
import random
from dataclasses import replace

from everview.engines.spark.relational import compile_plan
from everview.errors import ProgramError
from everview.language.program import Program
from everview.language.types import Kind
from everview.testing.fuzz.domains import KINDS, Domain
from everview.testing.fuzz.expressions import expression
from everview.testing.fuzz.grammar import Column, Grammar

COUNT = 12
NUMBERS = (Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)


def with_expressions(case):
    """The same case with a view `e`."""
    return replace(case, program=extended(case.program))


@functools.lru_cache(maxsize=2)
def extended(program):
    rng = random.Random(program.text)
    relation = max(program.relations.values(), key=lambda one: len({f.type for f in one.schema}))
    scope = tuple(Column(f"t.{field.name}", field.type.kind) for field in relation.schema)
    columns = tuple((field.name, field.type.kind) for field in relation.schema)
    grammar = Grammar(rng, Domain.draw(rng), {relation.name: columns}, None)
    texts = []
    while len(texts) < COUNT:
        text = expression(grammar, rng.choice((*KINDS, *NUMBERS)), (scope,), 2)
        if "(" in text and is_on_spark(program, f"SELECT {text} AS x FROM {relation.name} AS t"):
            texts.append(f"{text} AS x{len(texts)}")
    view = f"CREATE MATERIALIZED VIEW e AS SELECT {', '.join(texts)} FROM {relation.name} AS t;"
    return Program.parse(f"{program.text}\n{view}\n")


def is_on_spark(program, query):
    try:
        compile_plan(program.bind_query(query).plan, lambda scan: scan.name)
    except ProgramError:
        return False
    return True
