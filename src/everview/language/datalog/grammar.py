"""The grammar of Datalog programs, after Soufflé's: for lark, without conflicts (LALR(1)).

In a body a parenthesis may begin a group of literals or a term, and `f(x)` may be an atom or a call; so both
are read as one, and the reader of the tree tells them apart.
"""

GRAMMAR = r"""
start: statement*

?statement: declaration | type_alias | directive | rule | unsupported

declaration: DECL names "(" [columns] ")" QUALIFIER*
names: NAME ("," NAME)*
columns: column ("," column)*
column: [AT] any_name ":" type_name
type_name: TYPE_WORD ["(" NUMBER ["," NUMBER] ")"]
type_alias: TYPE NAME ("=" | "<:") TYPE_WORD
directive: DIRECTIVE names ["(" option ("," option)* ")"]
option: any_name "=" (STRING | NAME | NUMBER)
unsupported: UNSUPPORTED

rule: heads [":-" body] "."
heads: head ("," head)*
head: NAME "(" [head_arguments] ")"
head_arguments: head_argument ("," head_argument)*
?head_argument: AT (term | fold) -> located
    | term
    | fold
fold: FOLD_WORD _LESS (term | STAR) _MORE

body: conjunction (";" conjunction)*
conjunction: literal ("," literal)*
?literal: term
    | term compare term -> comparison
    | "!" literal -> negation

!?compare: "<=" | ">=" | "!=" | "=" | _LESS | _MORE

?term: sum
?sum: product | sum SUM_SIGN product -> binary
?product: unary | product PRODUCT_SIGN unary -> binary
?unary: power | MINUS unary -> negative
?power: primary | primary POWER_SIGN unary -> binary
?primary: simple
    | MIN group -> extreme
    | MAX group -> extreme
    | COUNT ":" matches -> aggregate
    | (SUM | MEAN | MIN | MAX) (simple | group) ":" matches -> aggregate
    | group
?simple: NAME -> variable
    | UNDERSCORE -> anonymous
    | NUMBER -> number
    | FLOAT -> float_
    | STRING -> string
    | TRUE -> truth
    | FALSE -> truth
    | applied
applied: NAME "(" [arguments] ")"
arguments: argument ("," argument)*
?argument: AT term -> located
    | term
group: "(" body ")"
?matches: "{" body "}"
    | applied

?any_name: NAME | COUNT | SUM | MEAN | MIN | MAX

DECL: ".decl"
TYPE: ".type"
AT: "@"
STAR: "*"
MINUS: "-"
UNDERSCORE: "_"
SUM_SIGN: "+" | "-"
PRODUCT_SIGN: "*" | "/" | "%"
POWER_SIGN: "^"
COUNT: "count"
SUM: "sum"
MEAN: "mean"
MIN: "min"
MAX: "max"
_LESS: "<"
_MORE: ">"
TRUE: "true"
FALSE: "false"
FOLD_WORD.3: /(count|sum|mean|min|max)(?=\s*<)/
DIRECTIVE: /\.(input|output|printsize)\b/
UNSUPPORTED: /\.(comp|init|functor|pragma|plan|limitsize|override|lattice)\b|#[a-z]+/
QUALIFIER.3: /((no_)?(inline|magic)|btree(_delete)?|brie|eqrel|input|output|printsize)\b(?!\s*\()/
NUMBER: /0x[0-9a-fA-F]+|0b[01]+|[0-9]+/
FLOAT.2: /[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?/
STRING: /"(\\.|[^"\\\n])*"/
TYPE_WORD: /[A-Za-z_][A-Za-z0-9_]*/
NAME: /[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]+/

COMMENT: /\/\/[^\n]*/ | /\/\*(.|\n)*?\*\//
%ignore COMMENT
%ignore /\s+/
"""
