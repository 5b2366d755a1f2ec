"""Random histories of a hub's gate among sites, with crashes, backups put back, and lost machines."""

import tempfile
import warnings
from pathlib import Path

from tests.hub.gates import run
from tests.hub.shipped import FarWorld

PARALLEL = True


def case(seed):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "what the gate had noted is still there")
        if seed % 3 == 2:
            run(Path(folder) / "hub", seed, FarWorld)
        else:
            run(Path(folder) / "hub", seed, losses=seed % 2)
