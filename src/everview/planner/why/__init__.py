"""Why a row is there: which rows of relations it stands on, whoever keeps them.

::

    answer     what is answered: monomials, and the rows behind their ids
    evidence   what a store of rows is asked: which rows of a plan meet these
    tracing    a row followed through its plan, down to rows of relations   ← evidence
"""
