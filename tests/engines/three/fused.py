"""Many plans over many states as one Spark job.

Planning a query takes Spark longer than running it over a few rows, and a job longer than both. So a plan is
asked about all its states at once (see `lift`), and many plans are one UNION ALL. Tables and results cross
the border as texts that keep every value, because the columns of the plans differ: a result comes with the
types that Spark gave it.

A table is one literal, split by Spark. It has one partition, and so has everything that is made of it:
nothing is shuffled.
"""

import datetime as dt
import decimal
from dataclasses import dataclass

from everview.engines.spark.by_python import register_functions
from everview.engines.spark.relational import compile_plan
from everview.engines.spark.text import quoted
from everview.engines.spark.types import column_names, sql_type
from everview.language.types import BIGINT, Kind
from everview.language.values import canonical_double
from everview.planner.circuit.parts import WEIGHT, table_of

from .lift import STATES, lifted

SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
AT_ONCE = 20
"""How many plans make a job."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NULL = "~"


def session_of(spark):
    """A session like the given one, set up for plans over a few rows."""
    session = spark.newSession()
    kept = (
        "spark.sql.ansi.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.decimalOperations.allowPrecisionLoss",
    )
    for name, value in (SETTINGS | {name: spark.conf.get(name) for name in kept}).items():
        session.conf.set(name, value)
    return register_functions(session)


@dataclass(frozen=True, slots=True)
class Query:
    """The text of a plan over all its states; `number` stands for its place in a job."""

    asked: object
    text: str

    @property
    def depth(self):
        """Spark resolves names from the inside out, all of a job as often as its deepest query needs."""
        return self.text.count("->"), self.text.count("SELECT")


def query(asked, *, lift=True):
    """The query that asks; ProgramError if Spark refuses the plan. Not lifted, it asks about one state."""
    plan = lifted(asked.plan) if lift else asked.plan

    def table(scan):
        return _table(scan.name, scan.schema[:-1] if lift else scan.schema, asked.states)

    text = compile_plan(plan, table)
    fields = asked.plan.schema
    names = column_names(len(fields))
    state = f"c{len(fields)}" if lift else "0L"
    types = ", ".join(f"typeof({name})" for name in names) or "''"
    cells = ", ".join(_told(name, f.type) for name, f in zip(names, fields, strict=True))
    listed = f"array({cells})" if cells else "CAST(array() AS ARRAY<STRING>)"
    return Query(asked, f"{state} AS s, concat_ws(',', {types}) AS types, {listed} AS cells FROM ({text})")


def jobs(queries):
    """The queries in parts, those that Spark plans quickly together."""
    ordered = sorted(queries, key=lambda one: one.depth)
    return [ordered[start : start + AT_ONCE] for start in range(0, len(ordered), AT_ONCE)]


def answers(spark, queries):
    """For each query the rows of every state, and the types that they came with."""
    found = [([[] for _ in one.asked.states], set()) for one in queries]
    text = " UNION ALL ".join(f"(SELECT {n} AS q, {one.text})" for n, one in enumerate(queries))
    # In one task, because each would be sent all the plans of the job.
    for row in spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM ({text})").toArrow().to_pylist():
        fields = queries[row["q"]].asked.plan.schema
        states, types = found[row["q"]]
        cells = (_read(cell, field.type) for cell, field in zip(row["cells"], fields, strict=True))
        states[row["s"]].append(tuple(cells))
        types.add(row["types"])
    return found


def wanted_types(asked):
    return ",".join(sql_type(field.type).lower() for field in asked.plan.schema)


def _table(scanned, fields, states):
    """The FROM item of a table: the rows of all states, the number of the state last."""
    if scanned == STATES:
        return f"(SELECT CAST(id AS BIGINT) AS c0 FROM range(0, {len(states)}, 1, 1))"
    name, bag = table_of(scanned)
    if bag:
        fields = [*fields, WEIGHT]
    lines = [
        "|".join([*(_written(cell, f.type) for cell, f in zip(row, fields, strict=True)), str(number)])
        for number, state in enumerate(states)
        for row in state.tables[name]
    ]
    types = [*(field.type for field in fields), BIGINT]
    names = column_names(len(types))
    if not lines:
        nothing = ", ".join(
            f"CAST(NULL AS {sql_type(kind)}) AS {n}" for n, kind in zip(names, types, strict=True)
        )
        read = f"SELECT {nothing} WHERE false"
    else:
        cells = ", ".join(
            f"{_taken(i, kind)} AS {n}" for i, (n, kind) in enumerate(zip(names, types, strict=True))
        )
        each = f"explode(split({quoted(chr(10).join(lines))}, '\\n')) AS t(x)"
        read = f"SELECT /*+ COALESCE(1) */ {cells} FROM {each}"
    if not bag:
        return f"({read})"
    *shown, often, state = names
    repeated = f"SELECT *, explode(sequence(1L, {often})) AS copy FROM ({read}) WHERE {often} > 0"
    listed = ", ".join(f"{n} AS c{i}" for i, n in enumerate((*shown, state)))
    return f"(SELECT {listed} FROM ({repeated}))"


def _written(value, kind):
    if value is None:
        return _NULL
    match kind.kind:
        case Kind.TEXT:
            return value.encode().hex()
        case Kind.BLOB:
            return value.hex()
        case Kind.DATE:
            return str((value - _EPOCH.date()).days)
        case Kind.TIMESTAMP:
            return str((value - _EPOCH) // dt.timedelta(microseconds=1))
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.DOUBLE:
            return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
        case _:
            return str(value)


def _taken(place, kind):
    text = f"nullif(split_part(x, '|', {place + 1}), '{_NULL}')"
    match kind.kind:
        case Kind.TEXT:
            return f"CAST(unhex({text}) AS STRING)"
        case Kind.BLOB:
            return f"unhex({text})"
        case Kind.DATE:
            return f"date_from_unix_date(CAST({text} AS INT))"
        case Kind.TIMESTAMP:
            return f"timestamp_micros(CAST({text} AS BIGINT))"
        case _:
            return f"CAST({text} AS {sql_type(kind)})"


def _told(name, kind):
    match kind.kind:
        case Kind.TEXT:
            return f"hex({name})"
        case Kind.BLOB:
            return f"hex({name})"
        case Kind.DATE:
            return f"CAST(unix_date({name}) AS STRING)"
        case Kind.TIMESTAMP:
            return f"CAST(unix_micros({name}) AS STRING)"
        case _:
            return f"CAST({name} AS STRING)"


def _read(text, kind):
    if text is None:
        return None
    match kind.kind:
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[text]
        case Kind.BIGINT:
            return int(text)
        case Kind.DOUBLE:
            return canonical_double(float(text))
        case Kind.DECIMAL:
            return decimal.Decimal(text)
        case Kind.TEXT:
            return bytes.fromhex(text).decode()
        case Kind.BLOB:
            return bytes.fromhex(text)
        case Kind.DATE:
            return _EPOCH.date() + dt.timedelta(days=int(text))
        case Kind.TIMESTAMP:
            return _EPOCH + dt.timedelta(microseconds=int(text))
        case _:
            raise AssertionError(kind)
