"""Random histories of sources and readers of windows, on stores and on the model."""

import tempfile

from tests.model.windows import run_windows
from tests.replication.window_histories import run_history

PARALLEL = True


def case(seed):
    for step in range(20):
        run_windows(20 * seed + step)
    with tempfile.TemporaryDirectory() as folder:
        history = run_history(folder, seed)
    return {"late": history.late, "refused": history.refused}
