"""The Datalog reference: every construct as a program that the compiler takes, and its tables of names."""

from __future__ import annotations

import re

from everview.errors import ProgramError
from everview.language.datalog.declared import TYPES
from everview.language.datalog.terms import CASTS, SOUFFLE
from everview.language.functions import FUNCTIONS
from everview.language.program import Program
from references.markdown import code, generated, table

__all__ = ["page"]

_DECLARED = ".decl q(x: number, y: number)\n.decl r(x: number)\n.decl w(s: symbol)\n"

ACCEPTED = [
    ("a relation", ".decl p(x: number, name: symbol)"),
    ("another name for a type", ".type Id = number"),
    ("a type of its own", ".type Name <: symbol"),
    ("a fact", '.decl p(x: number, s: symbol)\np(1, "a").'),
    ("a rule", ".decl p(x: number)\np(x) :- q(x, _), x < 3."),
    ("negation", ".decl p(x: number)\np(x) :- q(x, _), !r(x)."),
    ("alternatives", ".decl p(x: number)\np(x) :- (q(x, _) ; r(x)), x > 0."),
    ("several heads", ".decl a(x: number)\n.decl b(x: number)\na(x), b(x) :- r(x)."),
    ("recursion", ".decl p(x: number, y: number)\np(x, y) :- q(x, y).\np(x, z) :- p(x, y), q(y, z)."),
    (
        "recursion that computes, with a bound",
        ".decl p(x: number)\np(x) :- r(x).\np(x + 1) :- p(x), x < 100.",
    ),
    ("arithmetic", ".decl p(x: number)\np(z) :- q(x, y), z = x * y + x % 2."),
    ("texts", '.decl p(s: symbol)\np(cat(s, "!")) :- w(s), strlen(s) > 2.'),
    ("an aggregate of matches", ".decl p(x: number, n: number)\np(x, n) :- r(x), n = count : { q(x, _) }."),
    ("a sum of matches", ".decl p(n: number)\np(n) :- n = sum y : { q(_, y) }."),
    ("an aggregate in the head", ".decl p(x: number, m: number)\np(x, min<y>) :- q(x, y)."),
    ("a count in the head", ".decl p(x: number, n: number)\np(x, count<*>) :- q(x, _)."),
    ("a file of facts", ".input r"),
    ("a file with its name", '.input q(filename="q.csv", delimiter=",")'),
    ("marks for results", ".decl p(x: number)\np(x) :- r(x).\n.output p\n.printsize p"),
    ("where rows live", ".decl at(@place: symbol, x: number)"),
]

REFUSED = [
    ".decl p(x: number)\np(x) :- !r(x).",
    ".decl p(x: number)\np(y) :- r(x).",
    ".decl p(x: number)\np(x) :- r(x), !p(x).",
    ".decl p(x: number)\np(x) :- r(x).\np(x + 1) :- p(x).",
    ".decl p(x: number)\np(x) :- q(x).",
    ".decl p(x: nosuch)",
    ".decl p(x: number)\np([1, 2]) :- r(x).",
    ".comp C { }",
]


def page() -> str:
    """The whole page."""
    about = (
        "What the compiler accepts, after Soufflé's syntax; every example below was compiled when this page "
        "was written. [Recursive views and Datalog](../RECURSION.md#in-datalog) explains it."
    )
    lines = generated("Datalog reference", about)
    lines += ["The examples have these declarations before them:", "", "```", _DECLARED.strip(), "```", ""]
    lines += ["## Constructs", ""]
    rows = []
    for what, text in ACCEPTED:
        Program.parse(_DECLARED + text, language="datalog")
        rows.append((what, _short(text)))
    lines += table(("", "such as"), rows)
    lines += ["## Types", "", "Columns are never NULL.", ""]
    lines += table(("written", "is"), ((code(name), str(kind)) for name, kind in TYPES.items()))
    lines += ["## Functions", "", "Soufflé's names, and what they are here:", ""]
    known = [
        (code(name), code(FUNCTIONS[meant].sql), FUNCTIONS[meant].meaning) for name, meant in SOUFFLE.items()
    ]
    known += [(code(name), code(f"CAST(a AS {kind})"), "") for name, kind in CASTS.items()]
    known += [(code("substr(s, start, count)"), code("substr(s, start + 1, count)"), "Soufflé counts from 0")]
    lines += table(("written", "is", "meaning"), known)
    lines += ["All [functions of SQL](sql.md#functions-and-operators) may be called by their names, too.", ""]
    lines += ["## Refused, and what the compiler says", ""]
    lines += table(("written", "the answer"), ((_short(t), _answer(t)) for t in REFUSED))
    return "\n".join(lines).rstrip() + "\n"


def _short(text: str) -> str:
    """An example without the declarations of what it defines, unless it is nothing else."""
    lines = text.split("\n")
    rules = [line for line in lines if not line.startswith(".decl")]
    return code(" ".join(rules or lines))


def _answer(text: str) -> str:
    try:
        Program.parse(_DECLARED + text, language="datalog")
    except ProgramError as error:
        said = re.sub(r" on line \d+", "", error.message)
        return said + (f" ({error.hint})" if error.hint else "")
    raise AssertionError(f"the compiler takes {text}")
