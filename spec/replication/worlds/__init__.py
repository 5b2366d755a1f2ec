"""Random worlds for the specification, with an exact oracle.

Run them by `make long AREA=rule CASES=1000`.
"""
