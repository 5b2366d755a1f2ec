"""Rewrite plans, say what is known of them, and decide how views are kept.

::

    conditions, walking ← facts ← join_graph    small questions; keys and equalities; inner joins as graphs
    unnest/ ← rules/ ← rewrite                  subqueries as joins; one rewrite a file; all in one order
    outer ← why/                                outer joins taken apart; rows traced to rows of relations
    expression_text ← explain                   plans as text

A program's views go through `rewrite` one by one and then through `rules.share` together. Every rewrite
keeps the bag of rows and the names and types of columns, for views: a failing call is NULL there. How
many failures are counted may change.
"""
