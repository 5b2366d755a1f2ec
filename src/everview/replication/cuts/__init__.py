"""Cuts: what a reader lacks, read in one snapshot and taken in one commit."""
