"""The reference: the naive evaluation of a plan, the oracle of every test.

It is written to be read against the SQL standard and PostgreSQL's manual. Bags of rows are lists,
joins are nested loops, subqueries run once per row; nothing is clever and nothing is cached.
"""

from everview.engines.reference.evaluate import Result, Tables, evaluate, evaluate_views

__all__ = ["Result", "Tables", "evaluate", "evaluate_views"]
