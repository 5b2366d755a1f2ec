"""Relations as rows under dots: what a store has seen and does not hold is gone (docs/REPLICATION.md)."""
