"""A plan over many states at once: every row says in its last column which state it belongs to.

For each state the lifted plan denotes what the plan itself denotes over the tables of that state; so one
query answers for all of them. What a row does by itself stays as it is. What brings rows together does so
within a state: joins ask for equal states; groups, partitions and duplicates have it as one more column.
Only what has rows over nothing, and LIMIT, becomes something else (see `keeps_shape`).
"""

from dataclasses import replace

from everview.language.aggregates import WindowCall
from everview.language.expressions import And, Call, Column, Literal
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    map_inputs,
    walk_plan,
)
from everview.language.types import BIGINT, BOOLEAN, Field
from everview.planner.circuit.weighted import moved

STATE = Field("state", BIGINT, nullable=False)
STATES = "@states"
"""The table of all states, for the nodes that have rows where their inputs have none."""

_TRUE = Literal(True, BOOLEAN)


def lifted(plan):
    match plan:
        case Scan(name, schema):
            return Scan(name, (*schema, STATE))
        case Values():
            return Join(JoinKind.INNER, plan, Scan(STATES, (STATE,)), _TRUE)
        case Filter() | UnionAll() | Distinct() | Intersect() | Except():
            return map_inputs(plan, lifted)
        case Project(child, expressions, names):
            below = lifted(child)
            return Project(below, (*expressions, state_of(below)), (*names, STATE.name))
        case Join():
            return join(plan, lifted(plan.left), lifted(plan.right))
        case Aggregate():
            return aggregate(plan, lifted(plan.input))
        case Window(child, calls, names):
            below = lifted(child)
            inside = tuple(replace(call, partition=(*call.partition, state_of(below))) for call in calls)
            wide = Window(below, inside, names)
            return chosen(
                wide, [i for i in range(len(wide.schema)) if i != len(child.schema)], len(child.schema)
            )
        case TopK():
            return top(plan, lifted(plan.input))
        case _:
            raise AssertionError(plan)


def keeps_shape(plan):
    """Whether the lifted plan has the plan's own nodes."""
    return not any(
        isinstance(node, TopK | Values) or (isinstance(node, Aggregate) and not node.keys)
        for node in walk_plan(plan)
    )


def column(plan, place):
    return Column(place, plan.schema[place].type, plan.schema[place].name)


def state_of(plan):
    return column(plan, len(plan.schema) - 1)


def chosen(plan, places, state):
    """These columns of a plan, and the one that is the state at the end."""
    kept = [column(plan, place) for place in places]
    last = column(plan, state) if isinstance(state, int) else state
    return Project(plan, (*kept, last), (*(c.name for c in kept), STATE.name))


def equal(left, right):
    return Call("=", (left, right), BOOLEAN)


def join(plan, left, right):
    one, other = len(plan.left.schema), len(plan.right.schema)
    mine, theirs = state_of(left), Column(one + 1 + other, BIGINT, STATE.name)
    condition = And((equal(mine, theirs), moved(plan.condition, one, 1)))
    joined = Join(plan.kind, left, right, condition)
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return joined
    state = {
        JoinKind.RIGHT: theirs,
        JoinKind.FULL: Call("coalesce", (mine, theirs), BIGINT),
    }.get(plan.kind, mine)
    return chosen(joined, [*range(one), *range(one + 1, one + 1 + other)], state)


def aggregate(plan, below):
    keys = len(plan.keys)
    names = (*plan.names[:keys], STATE.name, *plan.names[keys:])
    grouped = Aggregate(below, (*plan.keys, state_of(below)), plan.aggregates, names)
    places = [i for i in range(len(names)) if i != keys]
    if keys:
        return chosen(grouped, places, keys)
    # The one group is there in every state; over no rows its counts are 0, and all else is NULL.
    states = Scan(STATES, (STATE,))
    every = Join(JoinKind.LEFT, states, grouped, equal(column(states, 0), Column(1, BIGINT)))
    found = [column(every, 1 + place) for place in places]
    filled = [
        Call("coalesce", (value, Literal(0, BIGINT)), BIGINT) if call.function == "count" else value
        for value, call in zip(found, plan.aggregates, strict=True)
    ]
    return Project(every, (*filled, column(every, 0)), (*plan.names, STATE.name))


def top(plan, below):
    if plan.limit is None and plan.offset is None:
        return below
    order = WindowCall("row_number", (), (state_of(below),), plan.order, plan.ties, None, BIGINT)
    numbered = Window(below, (order,), ("place",))
    place = column(numbered, len(below.schema))
    first = plan.offset.value if plan.offset is not None else 0
    conditions = [Call(">", (place, Literal(first, BIGINT)), BOOLEAN)]
    if plan.limit is not None:
        last = min(first + plan.limit.value, 2**63 - 1)
        conditions.append(Call("<=", (place, Literal(last, BIGINT)), BOOLEAN))
    width = len(plan.schema)
    return chosen(Filter(numbered, And(tuple(conditions))), range(width), width)
