"""The first sync of a device: however many rows there are, neither side holds more than a few pages of them.

`python -m benchmarks.hub_first_sync` does the same with millions of rows, and Spark behind the gate.
"""

import json
import subprocess
import sys

ROWS = 250_000
FEW_MB = 7
"""What memory may differ by, between this many rows and half of them: so that also half are more than the
100,000 which wait at most for the views to be brought up to date.
"""


def test_the_memory_of_hub_and_device_does_not_follow_the_rows(tmp_path):
    words = [sys.executable, "-m", "tests.hub.served_gate", str(tmp_path), str(ROWS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)  # the devices have seen to it that all rows are there
    for side in ("hub", "device"):
        few, many = (told[f"{name}_{side}_growth_mb"] for name in ("few", "many"))
        assert many < few + FEW_MB, told
