"""The oracle: the text's own rules, before they are localised, over all facts at once, naively."""

import operator

from everview.language.datalog.ast import Anonymous, Atom, Constant, Operation, Variable
from everview.language.datalog.parser import parse

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "cat": lambda *texts: "".join(texts)}


def evaluate(text, base):
    """All facts, (relation, row), that follow from base facts."""
    rules = parse(text).rules
    known = set(base)
    while True:
        found = set()
        for rule in rules:
            for bound in solutions(list(rule.body), {}, known):
                found.add((rule.head.relation, tuple(value(term, bound) for term in rule.head.arguments)))
        if found <= known:
            return known
        known |= found


def solutions(body, bound, known):
    if not body:
        yield bound
        return
    literal, *rest = body
    if isinstance(literal, Atom):
        for relation, row in known:
            if relation == literal.relation and (more := unify(literal.arguments, row, bound)) is not None:
                yield from solutions(rest, more, known)
        return
    left, right = literal.left, literal.right
    if isinstance(left, Variable) and left.name not in bound:
        yield from solutions(rest, bound | {left.name: value(right, bound)}, known)
    elif COMPARE[literal.operator](value(left, bound), value(right, bound)):
        yield from solutions(rest, bound, known)


def unify(terms, row, bound):
    bound = dict(bound)
    for term, cell in zip(terms, row, strict=True):
        match term:
            case Anonymous():
                continue
            case Variable(name) if bound.setdefault(name, cell) == cell:
                continue
            case Constant(given) if given == cell:
                continue
            case _:
                return None
    return bound


def value(term, bound):
    match term:
        case Variable(name):
            return bound[name]
        case Constant(given):
            return given
        case Operation(name, arguments):
            return COMPUTE[name](*(value(argument, bound) for argument in arguments))
