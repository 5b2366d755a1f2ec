"""Random histories of a hub's gate among sites, with crashes and backups that are put back."""

import tempfile
from pathlib import Path

from tests.hub.gates import run

PARALLEL = True


def case(seed):
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "hub", seed, losses=seed % 2)
