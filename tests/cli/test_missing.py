"""A device lacks what the extras bring: a command that needs one of them says which."""

import subprocess
import sys

import pytest

LIGHT = """
import sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"starlette", "uvicorn", "pyspark", "pyarrow", "pandas", "numpy"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
from everview.cli import main
main()
"""


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        (["serve", "--store", "s.db", "--insecure"], "starlette", "server"),
        (["console", "s.db"], "starlette", "server"),
        (["hub", "--store", "h", "--program", "p.sql", "--insecure"], "starlette", "server"),
        (["insert", "s.db", "r", "rows.parquet"], "pyarrow", "hub"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_names_the_extra_that_it_lacks(tmp_path, command, module, extra):
    (tmp_path / "p.sql").write_text("CREATE TABLE r (a BIGINT PRIMARY KEY);")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    for words in (["init", "s.db", "--program", "p.sql"], command):
        done = subprocess.run(
            [sys.executable, "-c", LIGHT, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert module in done.stderr
    assert f"pip install 'everview[{extra}]'" in done.stderr
    assert "defect" not in done.stderr
