import subprocess
import sys

import pytest


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_demo_agrees_with_spark():
    done = subprocess.run(
        [sys.executable, "-m", "everview.demo"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "│ ⟨a1, c2⟩ │ t1·t3 + t2 │" in done.stdout
    assert done.stdout.count("t1·t3 + t2 │ absent  │ absent") == 1
    assert done.stdout.rstrip().endswith("agree at every step.")
