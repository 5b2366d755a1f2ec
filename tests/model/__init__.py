"""The executable specification of replication: sites, cuts, garbage, derivations; no store, no network."""
