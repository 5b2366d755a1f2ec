"""Replication: sites exchange lattice deltas and converge, whatever the network does."""
