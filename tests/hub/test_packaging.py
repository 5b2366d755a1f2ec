"""The archive for executors: what is in it, and what a task imports from it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.hub.cluster import bare_python, environment
from typer.testing import CliRunner

import everview
from everview.cli.app import app
from everview.errors import StoreError
from everview.hub import shipping
from everview.hub.packaging import archive, archive_name, write_package

TASKS = (
    "everview.engines.spark.by_python",
    "everview.hub.changes",
    "everview.hub.compact",
    "everview.hub.following",
    "everview.hub.lookup",
    "everview.hub.offering",
    "everview.hub.reading",
    "everview.hub.sending",
    "everview.hub.source",
    "everview.hub.stations",
    "everview.hub.streaming",
)
"""The modules whose functions Spark gives to tasks; the rest is what these import."""


def test_the_same_sources_give_the_same_bytes(tmp_path):
    """Also when they are themselves imported from an archive, and whenever they were written."""
    made = archive()
    first = tmp_path / "everview.zip"
    first.write_bytes(made)
    again = "from everview.hub.packaging import *; import pathlib; write_package(pathlib.Path('again.zip'))"
    path = {**os.environ, "PYTHONPATH": str(first)}
    subprocess.run([sys.executable, "-c", again], check=True, cwd=tmp_path, env=path)
    assert (tmp_path / "again.zip").read_bytes() == made
    assert archive_name(made) == archive_name(archive())


def test_an_archive_has_all_sources_and_nothing_else(tmp_path):
    write_package(tmp_path / "everview.zip")
    root = Path(everview.__file__).parents[1]
    sources = {str(path.relative_to(root)) for path in (root / "everview").rglob("*.py")}
    with zipfile.ZipFile(tmp_path / "everview.zip") as package:
        names = package.namelist()
    assert names == sorted(names)
    others = {name for name in set(names) - sources if not name.startswith("everview/console/static/")}
    assert others == {
        "everview/py.typed",
        "everview/demo/rescue.sql",
        "everview/engines/spark/log4j2.properties",
    }
    assert sources <= set(names)


def test_a_task_needs_three_modules_beside_pyspark(tmp_path):
    """In a Python that has no others: not the parser, not the codec, nothing that a server or table needs."""
    python = bare_python(tmp_path / "python", ("numpy", "pyarrow", "xxhash", "pyspark", "py4j"))
    write_package(tmp_path / "everview.zip")
    imports = "; ".join(f"import {name}" for name in TASKS)
    told = subprocess.run(
        [python, "-c", f"{imports}; print(everview.__file__)"],
        env={**environment(), "PYTHONPATH": str(tmp_path / "everview.zip")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stderr == ""
    assert told.stdout.startswith(str(tmp_path / "everview.zip"))


def test_the_command_writes_the_archive_and_the_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["package", "--entry", "everview-hub.py"])
    assert told.exit_code == 0
    assert told.output.splitlines() == [
        f"wrote everview.zip, {len(archive()) / 1e6:.1f} MB",
        f"wrote everview-hub.py, {Path('everview-hub.py').stat().st_size} B",
    ]
    assert Path("everview.zip").read_bytes() == archive()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["everview-hub.py", "everview.zip"]
    helped = subprocess.run(
        [sys.executable, "everview-hub.py", "--help"],
        env={**os.environ, "PYTHONPATH": "everview.zip"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--once" in helped.stdout


def test_names_that_spark_would_not_understand_are_refused(tmp_path):
    with pytest.raises(StoreError, match=r"has to end in \.zip"):
        write_package(tmp_path / "everview.tar")
    with pytest.raises(StoreError, match="cannot write"):
        write_package(tmp_path / "no" / "everview.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2, 4]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://localhost:7077", False),
        ("yarn", False),
        ("k8s://https://localhost:6443", False),
    ],
)
def test_only_executors_elsewhere_are_sent_the_package(master, local):
    assert shipping.is_local(master) is local


@pytest.mark.parametrize(
    ("origin", "archive"),
    [
        (
            "/tmp/spark-1/userFiles-2/everview.zip/everview/__init__.py",
            "/tmp/spark-1/userFiles-2/everview.zip",
        ),
        ("/usr/lib/python3/dist-packages/everview/__init__.py", ""),
        ("/data/other.zip/everview/__init__.py", ""),
    ],
)
def test_a_driver_that_got_the_package_by_spark_submit_has_nothing_to_send(monkeypatch, origin, archive):
    files = "file:///data/everview.zip,file:///data/more.py"
    context = SimpleNamespace(getConf=lambda: {"spark.submit.pyFiles": files})
    monkeypatch.setattr(everview, "__file__", origin)
    assert shipping._archive_of_driver(context) == archive
