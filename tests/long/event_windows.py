"""Random histories of sources and readers of windows, on stores."""

import tempfile

from tests.engines.sqlite.windows.worlds import run_history

PARALLEL = True


def case(seed):
    with tempfile.TemporaryDirectory() as folder:
        history = run_history(folder, seed)
    return {"late": history.late, "refused": history.refused}
