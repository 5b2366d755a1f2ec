"""Pipelines of computational CRDTs (Titan)."""
