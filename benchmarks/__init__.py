"""Benchmarks, each a module with `run(quick) -> Result`; `python -m benchmarks NAME` runs one."""
