"""Replication in one rule: what a store has seen and does not hold is gone.

Read the files in this order; each has one idea.

  vectors       a dot names a row, a vector says which dots a store has seen
  rows          a row never changes; digests prove equality
  kinds         what the live rows of one key show, and what a write replaces
  lattices      kinds whose rows are joined; rows merged column by column
  relations     live rows, a vector and a bounded log of removals
  stores        a store changes by whole commits
  transactions  a commit numbers the rows that it adds
  cuts          what travels
  answers       a sender answers from its present snapshot, page by page
  transfers     a reader stages pages and applies them together
  merges        a cut is applied whole or not at all
  views         derivations name rows and go with them
  partitions    one relation for each value of a column
  folders       files that fit every reader that has seen enough
  incarnations  stores that were copied or went back in time
  repairs       digests that differ, and how relations become equal again
  refusals      a refused write is undone by a write
  publications  states that only their owner writes
  endings       stores that are lost for good

`rules` names the rules that carry weight; `worlds` runs all this at random against an exact oracle.
"""
