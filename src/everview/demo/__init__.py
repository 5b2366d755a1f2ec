"""A search-and-rescue mission, live: `make demo`, or `python -m everview.demo --help`.

A hub on Spark, a command post, three teams' laptops and four drones, each a process with its own SQLite
file, lose each other, go on working, and meet again. Nothing is staged: what is shown is what they answer.
"""
