"""What is wanted: types, expressions, plans, and the text they are written in.

::

    types ← values, order, casts          what a cell may hold
    types ← functions ← expressions       scalar expressions and the operators they may use
    expressions ← plan ← statements       relational plans, and writes as plans
    plan ← sql/ ← program                 from PostgreSQL-flavoured text to plans
"""
