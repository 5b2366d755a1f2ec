"""Stand-ins for Javas, and a machine that has none."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture
def fake_java(tmp_path):
    """Makes a Java home in which bin/java is the given shell script, and returns the home."""

    def make(name, script):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        return tmp_path / name

    return make


@pytest.fixture
def java_of_version(fake_java):
    """Makes a Java home whose Java only tells a version."""

    def make(version):
        return fake_java(f"java {version}", f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")

    return make


@pytest.fixture
def without_java(tmp_path):
    """A process environment in which no Java is found, with the few programs that Spark's scripts run."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "chmod", "dirname", "ls", "ps", "rm", "sh", "uname"):
        found = shutil.which(name)
        # Only bash, chmod, dirname, rm and sh are indispensable, and every POSIX machine has those.
        if found:
            (programs / name).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG", "TMPDIR"}}
    assert not shutil.which("java", path=str(programs))
    return {**kept, "PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path / "cache")}
