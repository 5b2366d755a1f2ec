"""Long random runs, one area a module: `make long AREA=algebra CASES=100000`."""
