"""The references: pages that are written from the code, so that they say what it does.

`make references` writes them into `docs/reference/`; a test compares them with what would be written now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from references import api, commands, datalog, sql

__all__ = ["FOLDER", "PAGES"]

FOLDER = Path(__file__).parents[1] / "docs" / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "sql.md": sql.page,
    "datalog.md": datalog.page,
    "commands.md": commands.page,
    "python.md": api.page,
}
"""The pages, and what writes each."""
