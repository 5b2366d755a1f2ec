"""Random histories of windows on stores; `make long AREA=event_windows` runs many."""

import pytest
from tests.replication.window_histories import run_history


@pytest.mark.parametrize("seed", [0, 104, 106])
def test_a_final_row_never_changes_and_everything_becomes_final(tmp_path, seed):
    history = run_history(tmp_path, seed)
    assert history.final["tumbling"]
