"""Pipelines on Spark: partitions are tasks, hollow replicas are the rows between them."""
