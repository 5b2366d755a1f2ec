"""Random worlds for the specification, with an exact oracle.

Run them by `python -m spec.replication.worlds --runs 1000`.
"""
