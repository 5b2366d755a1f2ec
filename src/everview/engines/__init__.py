"""What runs plans: the reference, SQLite, Spark."""
