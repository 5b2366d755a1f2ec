import subprocess
import sys

import everview as ev


def test_the_public_names():
    assert sorted(ev.__all__) == [
        "AsyncSite",
        "DataError",
        "EverviewError",
        "LimitError",
        "MissingDependencyError",
        "NonDeterminismError",
        "Program",
        "ProgramError",
        "Provenance",
        "Site",
        "StoreError",
        "SyncError",
        "SyncReport",
        "crdt",
        "streams",
        "testing",
        "windowed",
    ]
    for module in (ev, ev.crdt, ev.streams, ev.testing, ev.windowed):
        assert all(hasattr(module, name) for name in module.__all__)


def test_every_error_is_an_everview_error():
    errors = [value for name in ev.__all__ if name.endswith("Error") and (value := getattr(ev, name))]
    assert len(errors) == 8
    assert all(issubclass(error, ev.EverviewError) for error in errors)


def test_a_program_error_says_where_and_what_to_do():
    error = ev.ProgramError("no column 'nmae'", line=3, column=9, hint="did you mean 'name'?")
    assert str(error) == "line 3, column 9: no column 'nmae' (did you mean 'name'?)"
    assert str(ev.ProgramError("empty")) == "empty"


def test_the_device_brings_neither_spark_nor_arrow_nor_numpy():
    heavy = ("pyspark", "pyarrow", "pandas", "numpy", "datasketches", "hypothesis")
    script = f"import sys, everview.windowed; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_site_that_meets_nobody_loads_neither_client_nor_server():
    script = (
        "import sys, everview as ev; ev.Site.open(':memory:', ev.Program.parse('CREATE TABLE r (n BIGINT)'));"
        "print([m for m in ('httpx', 'starlette', 'uvicorn', 'anyio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_serving_says_what_to_install(tmp_path):
    (tmp_path / "p.sql").write_text("CREATE TABLE r (n BIGINT);")
    script = (
        "import sys; sys.modules['uvicorn'] = None; from everview.cli import main;"
        "sys.argv = ['everview', 'serve', '--store', 's.db', '--program', 'p.sql', '--insecure']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr == "error: serving needs uvicorn: pip install 'everview[server]'\n"


def test_the_hub_is_loaded_when_asked_for():
    script = "import sys, everview as ev; assert 'pyspark' not in sys.modules; print(ev.Hub.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Hub"


def test_without_spark_the_hub_says_what_to_install():
    script = "import sys; sys.modules['pyspark'] = None; import everview as ev; ev.Hub"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: everview.Hub needs pyspark" in done.stderr
    assert "pip install 'everview[hub]'" in done.stderr
