"""How a subquery that is asked once per outer row becomes one plan for all rows.

::

    lift    the conditions that read the outer row move to the top of the subquery, into a join condition
    spread  the subquery for all outer rows at once: each of its rows beside the outer columns it is for
    attach  the value of a subquery as a further column of the outer rows
"""
