"""Random typed expressions: every node, every function, to a given depth."""

from tests.engines.sqlite.edge_values import DECIMAL_TYPES, TYPES, draw

from everview.language.casts import can_cast
from everview.language.expressions import (
    And,
    Call,
    Case,
    Cast,
    Column,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
)
from everview.language.functions import FUNCTIONS, NoSignatureError, resolve
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Kind

PLAIN = {kind.kind: kind for kind in (BOOLEAN, BIGINT, DOUBLE, TEXT, BLOB, DATE, TIMESTAMP)}


class Generator:
    """Makes expressions over columns of these types; `used` counts what it made."""

    def __init__(self, rng, types):
        self.rng = rng
        self.types = types
        self.used = {}

    def any(self, depth):
        """An expression of whatever type the chosen function has."""
        return self.of(self.rng.choice(TYPES), depth)

    def of(self, wanted, depth):
        """An expression of type `wanted`."""
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf(wanted)
        makers = [self.call, self.call, self.call, self.cast, self.case]
        if wanted == BOOLEAN:
            makers += [self.logic, self.logic]
        made = self.rng.choice(makers)(wanted, depth - 1)
        if made is None:
            return self.leaf(wanted)
        if not isinstance(made, Call):
            self.used[type(made).__name__] = self.used.get(type(made).__name__, 0) + 1
        return made

    def leaf(self, wanted):
        columns = [index for index, kind in enumerate(self.types) if kind == wanted]
        if columns and self.rng.random() < 0.8:
            return Column(self.rng.choice(columns), wanted)
        return Literal(draw(self.rng, wanted), wanted)

    def cast(self, wanted, depth):
        sources = [kind for kind in TYPES if kind != wanted and can_cast(kind, wanted)]
        return Cast(self.of(self.rng.choice(sources), depth), wanted) if sources else None

    def case(self, wanted, depth):
        branches = tuple(
            (self.of(BOOLEAN, depth), self.of(wanted, depth)) for _ in range(self.rng.randrange(1, 3))
        )
        return Case(branches, self.of(wanted, depth))

    def logic(self, _wanted, depth):
        several = tuple(self.of(BOOLEAN, depth) for _ in range(self.rng.randrange(2, 4)))
        kind = self.rng.choice(TYPES)
        left, right, third = (self.of(kind, depth) for _ in range(3))
        return self.rng.choice(
            [
                And(several),
                Or(several),
                Not(several[0]),
                IsNull(left),
                IsDistinct(left, right),
                InList(left, (right, third)),
            ]
        )

    def call(self, wanted, depth):
        """A call whose type is `wanted`, or is cast to it."""
        for _ in range(20):
            name = self.rng.choice(list(FUNCTIONS))
            types, result = self.typing(name, wanted)
            if result is None or not (result == wanted or can_cast(result, wanted)):
                continue
            if name == "round" and len(types) == 2:
                digits = Literal(self.rng.randrange(-3, 6), BIGINT)
                call = Call(name, (self.of(types[0], depth), digits), result)
            else:
                call = Call(name, tuple(self.of(kind, depth) for kind in types), result)
            self.used[name] = self.used.get(name, 0) + 1
            return call if result == wanted else Cast(call, wanted)
        return None

    def typing(self, name, wanted):
        function = FUNCTIONS[name]
        if function.unified is not None:
            least, most = function.arity
            count = self.rng.randrange(least, (most or 3) + 1)
            kind = TEXT if name == "concat" else self.rng.choice([wanted, *TYPES])
            types = (kind,) * count
        else:
            signature = self.rng.choice(function.signatures)
            types = tuple(
                self.rng.choice(DECIMAL_TYPES) if kind is Kind.DECIMAL else PLAIN[kind]
                for kind in signature.parameters
            )
        try:
            return types, resolve(name, types)[1]
        except NoSignatureError:
            return types, None
