"""PostgreSQL-flavoured text to plans, through sqlglot's syntax trees.

::

    dialect, source     text → tokens → syntax trees; where in the text a tree stands; refusals
    misspelt            keywords that were probably meant
    typenames, names    names of types and of columns
    coerce              implicit conversions, made explicit
    scalars, calls      expressions
    grouping, windows   aggregates and window functions inside expressions
    tables              FROM
    queries             SELECT, VALUES, set operations, WITH
    declarations        CREATE TABLE, CREATE MATERIALIZED VIEW
    writes              INSERT, UPDATE, DELETE
"""
