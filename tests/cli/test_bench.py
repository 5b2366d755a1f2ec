"""`everview bench` runs what lies in a clone."""


def test_elsewhere_there_is_nothing_to_run(fails):
    assert fails("bench") == "there are no benchmarks here; run it in the folder of a clone of the project"


def test_in_a_clone_they_are_run(here, run, capfd):
    (here / "benchmarks").mkdir()
    (here / "benchmarks" / "__main__.py").write_text("import sys; print('run', *sys.argv[1:])")
    run("bench", "join", "--quick")
    assert capfd.readouterr().out == "run join --quick\n"
